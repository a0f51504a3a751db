"""SHOW and DESCRIBE for tables of the lake; what they show leaves the hidden bucket column out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakekit.errors import ColumnNotFoundError
from lakekit.names import BUCKET_COLUMN
from lakekit.sql import frames
from lakekit.sql.context import VIEW_PREFIX, Context
from lakekit.sql.lexer import Kind
from lakekit.sql.parse import QUERY_STARTS, Cursor
from lakekit.sql.statement import Statement
from lakekit.table import describe as facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from lakekit.table.table import Table


def show(context: Context, statement: Statement) -> DataFrame | None:
    """Runs SHOW; None for what Spark can tell itself."""
    cursor = statement.cursor(1)
    if cursor.accept("TABLES"):
        return _tables(context, cursor)
    if any(cursor.accept(word) for word in ("DATABASES", "SCHEMAS", "NAMESPACES")):
        matches = _pattern(cursor)
        if matches is None:
            return None
        names = [name for name in context.lake.databases() if matches(name)]
        return frames.texts(context, {"namespace": list(names)})
    for words, answer in _ABOUT_TABLE.items():
        if cursor.accept(*words):
            table = _table(context, cursor, statement)
            return None if table is None else answer(context, cursor, table)
    return None


def _pattern(cursor: Cursor) -> Callable[[str], bool] | None:
    """Reads ``LIKE 'a*|b*'``; returns what tells whether a name fits, None if something else is there."""
    cursor.accept("LIKE")
    if cursor.done:
        return lambda _name: True
    if cursor.peek().kind is not Kind.STRING:
        return None
    text = cursor.string()
    each = [re.escape(p.strip()).replace(r"\*", ".*") for p in text.split("|")]
    pattern = re.compile("|".join(f"(?:{p})\\Z" for p in each), re.IGNORECASE)
    return lambda name: pattern.match(name) is not None


def _tables(context: Context, cursor: Cursor) -> DataFrame | None:
    database = context.lake.current_database
    if cursor.accept("FROM") or cursor.accept("IN"):
        parts = cursor.name().parts
        name = context.table_name((*parts, "t")) if parts else None
        if name is None or len(parts) > 2:
            return None
        database = name.database
    matches = _pattern(cursor)
    if matches is None:
        return None
    lake_tables = set(context.lake.tables(database))
    rows = dict.fromkeys(lake_tables, False)
    # Views, and tables of other formats, that only this session knows.
    known = context.lake.spark.catalog.listTables(database) if _spark_has(context, database) else []
    for other in known:
        if not other.name.startswith(VIEW_PREFIX) and other.name not in lake_tables:
            rows[other.name] = bool(other.isTemporary)
    names = sorted(name for name in rows if matches(name))
    listing = [
        {"namespace": "" if rows[n] else database, "tableName": n, "isTemporary": rows[n]} for n in names
    ]
    schema = pa.schema([("namespace", pa.string()), ("tableName", pa.string()), ("isTemporary", pa.bool_())])
    return frames.arrow(context, pa.Table.from_pylist(listing, schema))


def _spark_has(context: Context, database: str) -> bool:
    return bool(context.lake.spark.catalog.databaseExists(database))


def _table(context: Context, cursor: Cursor, statement: Statement) -> Table | None:
    if not cursor.peek().is_identifier:
        return None
    parts = context.parts(cursor.name(), statement.text)
    if len(parts) == 1 and (cursor.accept("FROM") or cursor.accept("IN")):
        parts = (*context.parts(cursor.name(), statement.text), *parts)
    return context.find(parts)


def _columns(context: Context, _cursor: Cursor, table: Table) -> DataFrame:
    return frames.texts(context, {"col_name": list(table.schema.names)})


def _create(context: Context, _cursor: Cursor, table: Table) -> DataFrame:
    return frames.texts(context, {"createtab_stmt": [facts.show_create(table)]})


def _properties(context: Context, cursor: Cursor, table: Table) -> DataFrame:
    found = table.properties
    if cursor.accept("("):
        key = cursor.string("the name of a property")
        cursor.expect(")")
        found = {key: found.get(key, f"Table {table.name} does not have the property {key}")}
    return frames.texts(context, {"key": list(found), "value": list(found.values())})


def _partitions(context: Context, _cursor: Cursor, table: Table) -> DataFrame:
    columns = table.partition_by
    values = {tuple(f.partition_values.get(c) for c in columns) for f in table.snapshot().files.values()}
    texts = ["/".join(f"{c}={v}" for c, v in zip(columns, row, strict=True)) for row in values if columns]
    return frames.texts(context, {"partition": sorted(texts)})


_ABOUT_TABLE = {
    ("CREATE", "TABLE"): _create,
    ("TBLPROPERTIES",): _properties,
    ("COLUMNS", "FROM"): _columns,
    ("COLUMNS", "IN"): _columns,
    ("PARTITIONS",): _partitions,
}


def describe(context: Context, statement: Statement) -> DataFrame | None:
    """Runs DESCRIBE of a table; None for queries, databases, functions, history and tables of others."""
    cursor = statement.cursor(1)
    if cursor.peek().keyword in (*QUERY_STARTS, "QUERY") and not cursor.at("TABLE"):
        return None
    if any(
        cursor.at(w) for w in ("HISTORY", "DETAIL", "DATABASE", "SCHEMA", "NAMESPACE", "FUNCTION", "CATALOG")
    ):
        return None
    cursor.accept("TABLE")
    extended = cursor.accept("EXTENDED") or cursor.accept("FORMATTED")
    table = _table(context, cursor, statement)
    if table is None or cursor.at("PARTITION"):
        return None
    if not cursor.done:
        return _one_column(context, cursor, table)
    columns = facts.columns(table).to_pylist()
    rows: list[tuple[str, str, str | None]] = [(c["column"], c["type"], c["comment"]) for c in columns]
    if table.primary_key:
        rows += [("", "", ""), ("# Primary Key", "", "")]
        rows += [(c["column"], c["type"], c["comment"]) for c in _ordered(columns, "key")]
    if table.partition_by:
        rows += [("", "", ""), ("# Partition Information", "", "")]
        rows += [(c["column"], c["type"], c["comment"]) for c in _ordered(columns, "partition")]
    if extended:
        rows += [("", "", ""), ("# Detailed Table Information", "", "")]
        rows += [(d["property"], d["value"], "") for d in facts.details(table).to_pylist()]
    names = ("col_name", "data_type", "comment")
    return frames.texts(context, {name: [row[i] for row in rows] for i, name in enumerate(names)})


def _ordered(columns: list[dict[str, Any]], position: str) -> list[dict[str, Any]]:
    return sorted((c for c in columns if c[position] is not None), key=lambda c: int(c[position]))


def _one_column(context: Context, cursor: Cursor, table: Table) -> DataFrame:
    name = cursor.identifier("a column").name
    found = next((c for c in facts.columns(table).to_pylist() if c["column"].lower() == name.lower()), None)
    if found is None or name.lower() == BUCKET_COLUMN:
        raise ColumnNotFoundError.of(str(table.name), name, table.schema.names)
    values = {"col_name": found["column"], "data_type": found["type"], "comment": found["comment"] or "NULL"}
    return frames.texts(context, {"info_name": list(values), "info_value": list(values.values())})
