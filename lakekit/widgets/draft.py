"""A table that is being described: what is wrong with it, and the SQL that creates it. Nothing here touches a lake."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.types import DataType, StructField, StructType

from lakekit import properties
from lakekit.errors import InvalidOptionError, LakeError
from lakekit.names import TableName, quote
from lakekit.options import PREFIX
from lakekit.schema import (
    check_columns,
    check_key,
    check_partitions,
    declared_type,
    field_text,
    parse_type,
    type_text,
)
from lakekit.table.buckets import suggested_buckets
from lakekit.table.create import define
from lakekit.table.describe import create_statement


@dataclass(eq=False)
class Column:
    """A column as it stands in the form; `source` is the one of the given rows, and `source_type` its type."""

    name: str
    type: str
    nullable: bool = True
    comment: str = ""
    source: str | None = None
    source_type: str | None = None

    @classmethod
    def of(cls, known: StructField) -> Column:
        """Returns the column for one of the given rows; it can be null whatever they say."""
        kind = type_text(declared_type(known))
        comment = (known.metadata or {}).get("comment", "")
        return cls(known.name, kind, True, comment, source=known.name, source_type=kind)

    def parsed(self) -> StructField:
        """Returns the column with its type.

        Raises:
            SchemaMismatchError: if the type is none.
        """
        metadata = {"comment": self.comment} if self.comment else {}
        return StructField(self.name, parse_type(self.type), self.nullable, metadata)


@dataclass
class Draft:
    """What the form says, as texts; key and partitions in the order in which they were chosen."""

    name: str = ""
    columns: list[Column] = field(default_factory=list)
    primary_key: list[Column] = field(default_factory=list)
    partition_by: list[Column] = field(default_factory=list)
    comment: str = ""
    expected_rows: str = ""
    buckets: str = ""
    log: bool = False
    topic: str = ""
    address: str = "embedded"

    def problems(self, resolve: Callable[[str], TableName], at_least: int) -> dict[str, LakeError]:
        """Returns the first thing that is wrong with each part: name, columns, key, partitions, buckets, log.

        Args:
            resolve: returns the full name of a table, or raises.
            at_least: buckets of a table of which nothing is known.
        """
        found: dict[str, LakeError] = {}

        def check(part: str, work: Callable[[], Any]) -> Any:
            try:
                return work()
            except LakeError as error:
                found.setdefault(part, error)
                return None

        table = str(check("name", lambda: resolve(self.name)) or self.name or "?")
        schema = check("columns", self.schema)
        if schema is not None:
            check("columns", lambda: check_columns(table, schema))
        if found.keys() <= {"name"}:
            key = check("key", lambda: check_key(table, schema, _names(self.primary_key)))
            if key is not None:
                check("partitions", lambda: check_partitions(table, schema, _names(self.partition_by), key))
        check("buckets", lambda: self.bucket_options(at_least))
        check("log", lambda: properties.normalise(self.log_options(table)))
        if not found:
            check("columns", lambda: self._define(table, at_least))
        return found

    def schema(self) -> StructType:
        """Returns the columns.

        Raises:
            SchemaMismatchError: if a type cannot be read, naming the column.
        """
        return StructType([_named(column) for column in self.columns])

    def suggested(self, at_least: int) -> int:
        """Returns the number of buckets that suits the expected rows."""
        rows = properties.normalise({"expected-rows": self.expected_rows or 1})[properties.EXPECTED_ROWS]
        try:
            schema = self.schema()
        except LakeError:
            return at_least
        return suggested_buckets(schema, int(rows), at_least)

    def bucket_options(self, at_least: int) -> dict[str, str]:
        """Returns the options that say how many buckets there are; none for a table without a key."""
        number = properties.parse_bucket(self.buckets) if self.buckets else self.suggested(at_least)
        if not self.primary_key:
            if self.buckets or self.expected_rows:
                raise InvalidOptionError(
                    "A table without a primary key has no buckets.", "Choose key columns."
                )
            return {}
        rows = {"expected-rows": self.expected_rows} if self.expected_rows else {}
        return {"bucket": str(number), **rows}

    def log_options(self, table: str) -> dict[str, str]:
        """Returns the options of the log; none without one."""
        if not self.log:
            return {}
        given = {"topic": self.topic or table, "address": self.address}
        return {"log-store.enabled": "true"} | {f"log-store.{name}": text for name, text in given.items()}

    def create_sql(self, name: TableName, at_least: int) -> str:
        """Returns the CREATE TABLE statement of a draft that has no problems."""
        options = self.bucket_options(at_least) | self.log_options(str(name))
        stored = properties.normalise(options)
        return create_statement(
            name,
            [field_text(f) for f in self.schema()],
            _names(self.primary_key),
            _names(self.partition_by),
            self.comment,
            {option.removeprefix(PREFIX): value for option, value in stored.items()},
        )

    def insert_sql(self, name: TableName, view: str) -> str:
        """Returns the INSERT of given rows, which are a view; columns with another type than theirs are cast."""
        taken = [c for c in self.columns if c.source is not None]
        columns = ", ".join(quote(c.name) for c in taken)
        values = ",\n  ".join(_value(c) for c in taken)
        return f"INSERT INTO {name.sql} ({columns})\nSELECT\n  {values}\nFROM {quote(view)}"

    def _define(self, table: str, at_least: int) -> None:
        """Checks all of it together, as a create does."""
        define(
            table,
            self.schema(),
            primary_key=_names(self.primary_key),
            partition_by=_names(self.partition_by),
            properties=self.bucket_options(at_least) | self.log_options(table),
            comment=self.comment or None,
            default_buckets=at_least,
        )


def columns_of(schema: StructType) -> list[Column]:
    """Returns the columns of given rows as they stand in the form at first."""
    return [Column.of(known) for known in schema]


def _named(column: Column) -> StructField:
    try:
        return column.parsed()
    except LakeError as error:
        raise type(error)(f"Column '{column.name}': {error.message}", error.hint) from None


def _names(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns]


def _value(column: Column) -> str:
    source = quote(column.source or "")
    kind: DataType = parse_type(column.type)
    same = column.source_type is not None and parse_type(column.source_type) == kind
    value = source if same else f"CAST({source} AS {type_text(kind)})"
    return value if value == quote(column.name) else f"{value} AS {quote(column.name)}"
