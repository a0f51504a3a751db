"""``%%lakesql`` and ``%lakesql``: SQL cells over the lake that is open."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand
from IPython.display import display

from lakekit.errors import LakeError, QueryError
from lakekit.notebook.display import Note, ResultTable, commit_note, duration
from lakekit.notebook.options import OPTIONS, parse_cell, parse_line
from lakekit.notebook.running import run_cancellable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.lake import Lake

T = TypeVar("T")

_SCALARS = (str, int, float, bool, Decimal, dt.date, dt.datetime, dt.timedelta, bytes, bytearray)

_HELP = """Runs Spark SQL and lakekit's additions on the lake that is open.

    %%lakesql [NAME <<] [options]      %lakesql [NAME <<] [options] SQL
    SQL; more SQL

The lake is that of the last lakekit.connect(); without one, it is opened with the warehouse ./warehouse.
`:name` in the SQL is the value of --param name=…, or of the notebook's variable of that name; it is bound,
never pasted. With several statements each shows its own result.

Options (only on the magic's own line):
    NAME <<             the same as --into NAME
"""


@magics_class
class LakeMagics(Magics):
    """The SQL magics of lakekit."""

    # Without no_var_expand IPython would rewrite {…} and $name in SQL: JSON, and system tables (t$files).
    @no_var_expand
    @line_cell_magic
    def lakesql(self, line: str, cell: str | None = None) -> None:  # noqa: D102 (set below: it lists the options)
        options, text = parse_line(line) if cell is None else parse_cell(line, cell)
        statements = _statements(text if cell is None else f"\n{text}")
        if not statements:
            raise QueryError("There is no SQL to run.", f"For help: {'%' if cell is None else '%%'}lakesql?")
        lake = _open_lake()
        for number, statement in enumerate(statements, start=1):
            params = self._bind(statement, options.params)
            into = options.into if number == len(statements) else None
            self._run(lake, statement, params, options.limit, into)

    lakesql.__doc__ = _HELP + "\n".join(f"    {name} {text}" for name, text in OPTIONS.items())

    @no_var_expand
    @line_magic
    def lakemode(self, line: str) -> None:
        """Chooses where queries read tables that have a log: ``%lakemode log`` or ``%lakemode file``.

        In mode log a SELECT has the files with the log's newer changes over them; in mode file, the default, the
        files alone. Without a word it says which it is. The same as ``SET lake.read.mode = …``.
        """
        lake, mode = _open_lake(), line.strip().lower()
        rows = lake.sql(f"SET lake.read.mode = {mode}" if mode else "SET lake.read.mode").collect()
        now = "log: the files, with the log's newer changes over them" if rows[0].value == "log" else "file"
        _show(Note(f"Queries read mode {now}"))

    @property
    def _variables(self) -> dict[str, Any]:
        return self.shell.user_ns  # type: ignore[union-attr]

    def _run(
        self, lake: Lake, statement: str, params: Mapping[str, Any], limit: int, into: str | None
    ) -> None:
        started = time.monotonic()
        if into is not None:
            frame = _run_safely(lake, statement, lambda: lake.sql(statement, **params))
            self._variables[into] = frame
            _show(Note(f"{into}: Spark DataFrame ({', '.join(frame.columns)}) · nothing was fetched"))
            return
        columns, rows = _run_safely(
            lake, statement, lambda: _fetch(lake, lake.sql(statement, **params), limit)
        )
        seconds = time.monotonic() - started
        said = _in_words(statement, columns, rows)
        if said is None:
            _show(ResultTable(columns, rows[:limit], len(rows) > limit, seconds))
        else:
            _show(Note(f"{said} · {duration(seconds)}"))

    def _bind(self, statement: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the values of the names that stand in the statement."""
        from lakekit.sql import parameters

        bound: dict[str, Any] = {}
        for name in parameters.names(statement):
            if name in given:
                bound[name] = given[name]
            elif name in self._variables:
                bound[name] = _sql_value(name, self._variables[name])
            else:
                raise QueryError(
                    f"The SQL names :{name}, and the notebook has no variable '{name}'.",
                    f"Set {name} = … in a cell, or add --param {name}=… on the magic's line.",
                )
        return bound


def _show(result: ResultTable | Note) -> None:
    display(result)  # type: ignore[no-untyped-call]


def _in_words(statement: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str | None:
    """Returns the result of a write or a definition in words; None for rows that are to be shown."""
    from lakekit.sql.frames import COMMIT_SCHEMA, STATUS_SCHEMA
    from lakekit.sql.lexer import tokenize
    from lakekit.sql.statement import QUERY_STARTS

    first = tokenize(statement)[0]
    if first.keyword in QUERY_STARTS or first.at("("):
        return None
    if not columns:
        return "done"
    if list(columns) == COMMIT_SCHEMA.names and len(rows) == 1:
        return commit_note(dict(zip(columns, rows[0], strict=True)))
    if list(columns) == STATUS_SCHEMA.names and len(rows) == 1:
        return str(rows[0][0])
    return None


def _statements(text: str) -> list[str]:
    """Returns the statements, each behind as much blank space as there is text before it.

    So the line and column that an error names are those of the cell, whose first line is the magic's.
    """
    from lakekit.sql.lexer import split_spans

    return [re.sub(r"\S", " ", text[:start]) + text[start:end] for start, end in split_spans(text)]


def _open_lake() -> Lake:
    from lakekit.session.connect import connect, current

    lake = current()
    return connect() if lake is None or lake.stopped else lake


def _fetch(lake: Lake, frame: DataFrame, limit: int) -> tuple[list[str], list[list[Any]]]:
    """Returns the column names and at most limit + 1 rows, in one Spark job."""
    columns = list(frame.columns)
    if not columns:
        return columns, []
    from pyspark.sql.types import TimestampType

    rows = [list(row) for row in frame.take(limit + 1)]
    instants = [i for i, f in enumerate(frame.schema.fields) if isinstance(f.dataType, TimestampType)]
    if instants:
        # PySpark hands out the time of this machine; SQL means that of the session.
        zone = ZoneInfo(lake.spark.conf.get("spark.sql.session.timeZone") or "UTC")
        for row in rows:
            for i in instants:
                row[i] = row[i] and row[i].astimezone(zone).replace(tzinfo=None)
    return columns, rows


def _run_safely(lake: Lake, statement: str, work: Callable[[], T]) -> T:
    """Runs Spark work; whatever fails is a LakeError that points at its place in the statement."""
    try:
        return run_cancellable(lake.spark, work)
    except LakeError:
        raise
    except Exception as error:
        from lakekit.sql.failures import translate
        from lakekit.sql.text import SqlText

        raise translate(error, SqlText.user(statement), statement) from error


def _sql_value(name: str, value: Any) -> Any:
    """Returns a variable as a value Spark can bind; NumPy and pandas scalars become Python's."""
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    elif hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if value is None or isinstance(value, _SCALARS):
        return value
    if isinstance(value, (list, tuple)) and all(v is None or isinstance(v, _SCALARS) for v in value):
        return list(value)
    raise QueryError(
        f":{name} is a {type(value).__name__}, which is no SQL value.",
        "Bind a string, number, boolean, date, time, bytes, None, or a list of them.",
    )
