"""The table creator: a form, the SQL it stands for, and a button that runs exactly that."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import ipywidgets as ipw
from pyspark.sql.types import StructType

from lakekit.errors import InvalidOptionError, LakeError
from lakekit.names import TableName
from lakekit.notebook.display import commit_note
from lakekit.table.buckets import default_buckets
from lakekit.table.rows import to_dataframe
from lakekit.units import counted
from lakekit.widgets import parts
from lakekit.widgets.base import LakeWidget, button, row
from lakekit.widgets.draft import Column, Draft, columns_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.lake import Lake
    from lakekit.table.rows import Rows
    from lakekit.table.table import Table

PAGE = 20
"""Columns of the form that are shown at once."""

_TYPES = (
    "STRING", "BIGINT", "INT", "DOUBLE", "DECIMAL(18, 2)", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ",
    "SMALLINT", "TINYINT", "FLOAT", "BINARY", "VARCHAR(100)", "ARRAY<STRING>", "MAP<STRING, STRING>", "VARIANT",
)  # fmt: skip
_READERS: dict[str, Callable[[Any, str], Any]] = {
    ".csv": lambda reader, path: reader.option("header", True).option("inferSchema", True).csv(path),
    ".json": lambda reader, path: reader.json(path),
    ".jsonl": lambda reader, path: reader.json(path),
    ".ndjson": lambda reader, path: reader.json(path),
    ".parquet": lambda reader, path: reader.parquet(path),
}
_PARTS = ("name", "columns", "key", "partitions", "buckets", "log")
_numbers = itertools.count(1)


class TableCreator(LakeWidget):
    """A form for a new table; see `create_table()`."""

    def __init__(self, lake: Lake, rows: Rows | None = None) -> None:
        """Shows the form, with the columns of the rows if there are some."""
        super().__init__(lake, "New table")
        self._draft = Draft()
        self._rows: DataFrame | None = None
        self._view = f"lakekit_rows_{next(_numbers)}"
        self._buckets_known = default_buckets(lake)
        self._statements: list[str] = []
        self._page = 0
        self._created: TableName | None = None
        self._done: parts.Part | None = None
        self._build()
        if rows is not None:
            self._now("Reading the columns", lambda: self._frame(rows), self._take_rows)
        if not self._draft.columns:
            self._draft.columns.append(Column("", "STRING"))
        self._list_columns()
        self._check()

    @property
    def table(self) -> Table | None:
        """The table that was created, or None."""
        return None if self._created is None else self._lake.table(self._created.sql)

    @property
    def sql_text(self) -> str:
        """The statements that the button runs; empty while something is wrong."""
        return ";\n\n".join(self._statements)

    # The form

    def _build(self) -> None:
        wide = ipw.Layout(width="min(480px, 95%)")
        self.name = ipw.Text(description="Name", placeholder="database.table", layout=wide)
        self.comment = ipw.Text(description="Comment", layout=wide)
        self.path = ipw.Text(
            description="File", placeholder="path to a CSV, JSON or Parquet file", layout=wide
        )
        self.read = button("Read columns", "Take the columns of the file, as Spark reads it")
        self.columns = ipw.VBox()
        self.add = button("Add column", "Add a column")
        self.back, self.on = button("Previous", "Earlier columns"), button("Next", "Later columns")
        self._place = ipw.HTML()
        short = ipw.Layout(width="220px")
        self.expected_rows = ipw.Text(description="Expected rows", placeholder="not known", layout=short)
        self.expected_rows.style.description_width = "100px"
        self.buckets = ipw.Text(description="Buckets", layout=short)
        self.log_store = ipw.Checkbox(
            description="Log store (Kafka)", indent=False, layout=ipw.Layout(width="auto")
        )
        self.topic = ipw.Text(description="Topic", layout=ipw.Layout(width="280px"))
        self.address = ipw.Text(description="Address", value="embedded", layout=ipw.Layout(width="320px"))
        self.insert = ipw.Checkbox(
            description="Insert the rows", indent=False, layout=ipw.Layout(width="auto", display="none")
        )
        self.create = button("Create", "Run exactly the SQL above", style="primary")
        self._errors = {part: ipw.HTML() for part in _PARTS}
        self._sql_view = ipw.HTML()
        for part in ("name", "comment", "expected_rows", "buckets", "log_store", "topic", "address"):
            self._on(getattr(self, part), self._typed, "value")
        self._on(self.insert, self._check, "value")
        self._on(self.read, self._read_file)
        self._on(self.add, self._add_column)
        self._on(self.back, lambda: self._turn(-1))
        self._on(self.on, lambda: self._turn(1))
        self._on(self.create, self._create)
        self._log_fields = row(self.topic, self.address)
        self._show(
            self.name,
            self._errors["name"],
            self.comment,
            row(self.path, self.read),
            self.columns,
            row(self.add, self.back, self.on, self._place),
            *(self._errors[part] for part in ("columns", "key", "partitions")),
            row(self.expected_rows, self.buckets),
            self._errors["buckets"],
            row(self.log_store, self._log_fields),
            self._errors["log"],
            self._sql_view,
            row(self.insert, self.create),
            steering=[self.read],
        )

    def _typed(self) -> None:
        draft = self._draft
        draft.name, draft.comment = self.name.value.strip(), self.comment.value
        draft.expected_rows, draft.buckets = self.expected_rows.value.strip(), self.buckets.value.strip()
        draft.log, draft.topic = self.log_store.value, self.topic.value.strip()
        draft.address = self.address.value.strip()
        self._check()

    def _list_columns(self) -> None:
        """Fills the list with a page of the columns."""
        old = self.columns.children
        total = len(self._draft.columns)
        self._page = max(0, min(self._page, (total - 1) // PAGE))
        first = self._page * PAGE
        self.columns.children = [self._line(c) for c in self._draft.columns[first : first + PAGE]]
        for line in old:
            for child in (*line.children, line):
                child.close()
        many = "" if total > PAGE else "none"
        self.back.layout.display = self.on.layout.display = many
        last = min(first + PAGE, total)
        self._place.value = f"columns {first + 1} to {last} of {total}" if total > PAGE else ""

    def _line(self, column: Column) -> ipw.HBox:
        name = ipw.Text(value=column.name, placeholder="column", layout=ipw.Layout(width="180px"))
        kind = ipw.Combobox(value=column.type, options=_TYPES, layout=ipw.Layout(width="170px"))
        comment = ipw.Text(value=column.comment, placeholder="comment", layout=ipw.Layout(width="180px"))
        draft = self._draft
        ticks = {
            "key": column in draft.primary_key,
            "partition": column in draft.partition_by,
            "not null": not column.nullable,
        }
        boxes = [
            ipw.Checkbox(
                value=v, description=n, indent=False, layout=ipw.Layout(width="auto", margin="0 6px")
            )
            for n, v in ticks.items()
        ]
        remove = button("Remove", "Remove this column")

        def changed() -> None:
            column.name, column.type, column.comment = name.value.strip(), kind.value, comment.value
            for box, chosen in zip(boxes, (draft.primary_key, draft.partition_by), strict=False):
                if box.value and column not in chosen:
                    chosen.append(column)
                elif not box.value and column in chosen:
                    chosen.remove(column)
            column.nullable = not boxes[2].value
            self._check()

        for each in (name, kind, comment, *boxes):
            self._on(each, changed, "value")
        self._on(remove, lambda: self._remove(column))
        return row(name, kind, *boxes, comment, remove)

    def _add_column(self) -> None:
        self._draft.columns.append(Column("", "STRING"))
        self._page = len(self._draft.columns) // PAGE
        self._list_columns()
        self._check()
        self.columns.children[-1].children[0].focus()

    def _remove(self, column: Column) -> None:
        for listed in (self._draft.columns, self._draft.primary_key, self._draft.partition_by):
            if column in listed:
                listed.remove(column)
        self._list_columns()
        self._check()

    def _turn(self, pages: int) -> None:
        self._page += pages
        self._list_columns()

    # Rows that were given

    def _frame(self, rows: Rows) -> DataFrame:
        return to_dataframe(self._lake.spark, rows, StructType([]))

    def _read_file(self) -> None:
        path = self.path.value.strip()
        ends = next((end for end in _READERS if path.lower().removesuffix(".gz").endswith(end)), None)
        if ends is None:
            raise InvalidOptionError.bad_value("File", path, f"a path that ends in {', '.join(_READERS)}")
        reader = self._lake.spark.read
        self._run("Reading the columns", lambda: _READERS[ends](reader, path), self._take_rows)

    def _take_rows(self, rows: DataFrame) -> None:
        draft = self._draft
        draft.columns, draft.primary_key, draft.partition_by = columns_of(rows.schema), [], []
        self._rows, self._page = rows, 0
        self.insert.layout.display = ""
        self._list_columns()
        self._check()

    # Checks and SQL

    def _check(self) -> None:
        """Says beside each field what is wrong with it, and shows the SQL."""
        problems = self._draft.problems(self._lake.catalog.resolve, self._buckets_known)
        untouched = {"name"} if not self._draft.name else set()
        if all(not column.name for column in self._draft.columns):
            untouched.add("columns")
        for part, view in self._errors.items():
            error = problems.get(part)
            view.value = parts.Failure.of(error)._repr_html_() if error and part not in untouched else ""
        self._log_fields.layout.display = "" if self._draft.log else "none"
        self.topic.placeholder = self._draft.name or "database.table"
        if "buckets" not in problems:
            self.buckets.placeholder = f"{self._draft.suggested(self._buckets_known)} (suggested)"
        self._statements = [] if problems else self._sql()
        self.create.disabled = bool(problems) or self.busy
        waiting: parts.Part = parts.Note("The SQL is shown here when name and columns are right.")
        shown: list[parts.Part] = [parts.Code(self.sql_text) if self._statements else waiting]
        self._sql_view.value = parts.as_html([*shown, self._note()] if self._inserts() else shown)

    def _sql(self) -> list[str]:
        name = self._lake.catalog.resolve(self._draft.name)
        create = self._draft.create_sql(name, self._buckets_known)
        return [create, self._draft.insert_sql(name, self._view)] if self._inserts() else [create]

    def _inserts(self) -> bool:
        return self._rows is not None and self.insert.value

    def _note(self) -> parts.Part:
        return parts.Note(f"{self._view} is a view of the rows that were given.")

    def _create(self) -> None:
        statements = list(self._statements)
        name = self._lake.catalog.resolve(self._draft.name)
        rows = self._rows if self._inserts() else None
        self.create.disabled = True
        self._run("Creating the table", lambda: self._execute(statements, name, rows), self._take_result)

    def _execute(self, statements: Sequence[str], name: TableName, rows: DataFrame | None) -> list[str]:
        """Runs what was shown; of an INSERT that fails the error says that the table is there."""
        said = []
        try:
            if rows is not None:
                rows.createOrReplaceTempView(self._view)
            for statement in statements:
                said.append(_said(self._lake.sql(statement).collect()[0].asDict()))
                self._created = name
        except LakeError as error:
            if not said:
                raise
            raise type(error)(f"{said[0]} Its rows were not inserted: {error.message}", error.hint) from error
        finally:
            if rows is not None:
                self._lake.spark.catalog.dropTempView(self._view)
        return said

    def _take_result(self, said: Sequence[str]) -> None:
        self._done = parts.Note(" ".join(said))
        self._say(self._done)

    def _set_busy(self, busy: bool) -> None:
        super()._set_busy(busy)
        self.create.disabled = busy or not self._statements

    def _parts(self) -> Sequence[parts.Part]:
        draft = self._draft
        columns = [
            [
                c.name,
                c.type,
                _position(c, draft.primary_key),
                _position(c, draft.partition_by),
                "" if c.nullable else "not null",
                c.comment,
            ]
            for c in draft.columns
            if c.name
        ]
        known = {"name": draft.name or None, "comment": draft.comment or None}
        shown: list[parts.Part] = [parts.facts(known)] if any(known.values()) else []
        names = ["column", "type", "key", "partition", "null", "comment"]
        shown.append(parts.rows(names, columns, counted(len(columns), "column")))
        shown += [parts.Code(self.sql_text)] if self._statements else []
        return shown + ([self._done] if self._done else [])


def _position(column: Column, chosen: Sequence[Column]) -> int | None:
    return chosen.index(column) + 1 if column in chosen else None


def _said(row: dict[str, Any]) -> str:
    return str(row["status"]) if "status" in row else commit_note(row) + "."
