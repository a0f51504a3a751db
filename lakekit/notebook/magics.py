"""``%%lakesql`` and ``%lakesql``: SQL cells over the lake that is open."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand
from IPython.display import display

from lakekit.errors import LakeError, QueryError
from lakekit.notebook import verbs
from lakekit.notebook.display import JsonRows, Note, PlainText, ResultTable, commit_note, fetch
from lakekit.notebook.options import OPTIONS, Options, parse_cell, parse_line
from lakekit.notebook.progress import Progress
from lakekit.notebook.running import run_cancellable
from lakekit.session.connect import open_lake
from lakekit.units import counted, duration

if TYPE_CHECKING:
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
    NAME <<  the same as --into NAME
"""

_VERBS_HELP = """Does one thing with the lake that is open, without SQL.

    %lake VERB [arguments]

Verbs:
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
        lake = open_lake()
        for number, statement in enumerate(statements, start=1):
            params = self._bind(statement, options.params)
            is_last = number == len(statements)
            self._run(lake, statement, params, options if is_last else replace(options, into=None))

    lakesql.__doc__ = _HELP + "\n".join(f"    {name} {text}" for name, text in OPTIONS.items())

    @no_var_expand
    @line_magic
    def lake(self, line: str) -> object:  # noqa: D102 (set below: it lists the verbs)
        return self._do(line)

    lake.__doc__ = _VERBS_HELP + "\n".join(f"    {verb.usage}: {verb.help}" for verb in verbs.VERBS.values())

    @no_var_expand
    @line_magic
    def lakemode(self, line: str) -> None:
        """Chooses where queries read tables that have a log: the same as ``%lake mode``.

        In mode log a SELECT has the files with the log's newer changes over them; in mode file, the default, the
        files alone. Without a word it says which it is. The same as ``SET lake.read.mode = …``.
        """
        self._do(f"mode {line}")

    def _do(self, line: str) -> object:
        result = verbs.run(line, self._variables)
        if not isinstance(result, (Note, ResultTable)):
            return result  # a handle or a widget, which the notebook may want to keep
        display(result)  # type: ignore[no-untyped-call]
        return None

    @property
    def _variables(self) -> dict[str, Any]:
        return self.shell.user_ns  # type: ignore[union-attr]

    def _run(self, lake: Lake, statement: str, params: Mapping[str, Any], options: Options) -> None:
        progress, started = Progress(), time.monotonic()

        def run(work: Callable[[], T]) -> T:
            return _run_safely(lake, statement, lambda: _reading(options, statement, work), options, progress)

        try:
            if options.explain:
                result: object = run(lambda: lake.explain(statement.strip(), **params))
            elif options.into is not None:
                frame = run(lambda: lake.sql(statement, **params))
                self._variables[options.into] = frame
                names = ", ".join(frame.columns)
                result = Note(f"{options.into}: Spark DataFrame ({names}) · nothing was fetched")
            else:
                columns, rows, more = run(lambda: fetch(lake.sql(statement, **params), options.limit))
                table = ResultTable(columns, rows, more, time.monotonic() - started)
                result = _result(statement, table, options)
        except BaseException:
            progress.fail()
            raise
        for each in result if isinstance(result, list) else [result]:
            progress.end(each)

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


def _result(statement: str, table: ResultTable, options: Options) -> object:
    """Returns what a cell shows of the rows that were fetched."""
    said = _in_words(statement, table.columns, table.rows)
    if said is not None:
        return Note(f"{said} · {duration(table.seconds)}")
    if options.chart is not None:
        from lakekit.notebook.charts import chart

        return [chart(table.columns, table.rows, options.chart), Note(table.note)]
    if options.display == "none":
        more = "more than " if table.more else ""
        return Note(f"{more}{counted(len(table.rows), 'row')}, not shown · {duration(table.seconds)}")
    if options.display == "plain":
        return PlainText(repr(table))
    return JsonRows(table) if options.display == "json" else table


def _reading(options: Options, statement: str, work: Callable[[], T]) -> T:
    """Does work with the read mode and the version that the magic's line asked for."""
    if options.at is None and options.mode is None:
        return work()
    from lakekit.sql.context import Reads, reading

    if options.at is not None and not _is_query(statement):
        raise QueryError("--at is for queries, and this statement is none.", "Leave --at out.")
    with reading(Reads(options.mode, options.at)):
        return work()


def _is_query(statement: str) -> bool:
    from lakekit.sql.statement import Statement
    from lakekit.sql.text import SqlText

    return Statement(SqlText.user(statement)).is_query


def _in_words(statement: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str | None:
    """Returns the result of a write or a definition in words; None for rows that are to be shown."""
    from lakekit.sql.frames import COMMIT_SCHEMA, STATUS_SCHEMA

    if _is_query(statement):
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


def _run_safely(lake: Lake, statement: str, work: Callable[[], T], options: Options, progress: Progress) -> T:
    """Runs Spark work; whatever fails is a LakeError that points at its place in the statement."""
    try:
        return run_cancellable(lake.spark, work, timeout=options.timeout, tell=progress.show)
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
