"""CREATE TABLE for tables of the lake, in the dialects of Spark and Flink."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from lakekit.errors import AlreadyExistsError, InvalidOptionError, QueryError
from lakekit.names import quote
from lakekit.schema import parse_type
from lakekit.sql import frames
from lakekit.sql.context import Context
from lakekit.sql.failures import SyntaxAt
from lakekit.sql.parse import QUERY_STARTS, Cursor, Name
from lakekit.sql.rewrite import rewrite
from lakekit.sql.statement import Statement
from lakekit.table.create import create_table
from lakekit.units import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.table.table import Table

LAKE_FORMATS = frozenset({"lake", "lakekit", "arctic", "mixed", "mixed_iceberg", "mixed_hive"})
"""What USING may say for a table of the lake."""

_COLUMN_ENDS = {"NOT", "NULL", "COMMENT", "PRIMARY", "DEFAULT", "GENERATED", "CONSTRAINT", "UNIQUE", "CHECK"}
_FLINK_PRECISION = re.compile(r"\b(TIMESTAMP(?:_LTZ|_NTZ)?)\s*\(\s*\d\s*\)", re.IGNORECASE)
_FLINK_BYTES = re.compile(r"\bBYTES\b", re.IGNORECASE)


@dataclass
class Definition:
    """What a CREATE TABLE statement says."""

    name: Name
    if_not_exists: bool = False
    replaces: bool = False
    columns: list[StructField] = field(default_factory=list)
    primary_key: list[str] = field(default_factory=list)
    partition_by: list[str] = field(default_factory=list)
    bucket_columns: list[str] = field(default_factory=list)
    buckets: int | None = None
    properties: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    location: str | None = None
    query: int | None = None


def is_lake_table(statement: Statement) -> bool:
    """Tells whether a CREATE TABLE statement makes a table of the lake, without judging the rest of it.

    It does if USING says so, or if there is no USING but a primary key or Flink's ``WITH (…)``.
    """
    cursor = statement.cursor()
    declares_key = with_options = False
    depth = 0
    while not cursor.done:
        token = cursor.peek()
        if token.at("(") or token.at(")"):
            depth += 1 if token.at("(") else -1
        elif depth == 0 and cursor.at("USING"):
            return cursor.peek(1).name.lower() in LAKE_FORMATS
        elif depth == 0 and cursor.at("STORED", "AS"):
            return False
        elif cursor.at("PRIMARY", "KEY") and depth <= 1:
            declares_key = True
        elif depth == 0 and cursor.at("WITH", "("):
            with_options = True
        elif (
            depth == 0 and token.keyword in QUERY_STARTS and not cursor.at("TABLE") and not cursor.at("WITH")
        ):
            break
        cursor.index += 1
    return declares_key or with_options


def create(context: Context, statement: Statement) -> DataFrame | None:
    """Runs CREATE TABLE; None if it makes no table of the lake."""
    if not is_lake_table(statement):
        return None
    wanted = parse_create(statement)
    return _created(context, statement, wanted)


def create_like(context: Context, statement: Statement) -> DataFrame | None:
    """Runs ``CREATE TABLE a LIKE b`` for a table b of the lake; None for others."""
    cursor = statement.cursor(1)
    if not cursor.accept("TABLE"):
        return None
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name()
    if not cursor.accept("LIKE"):
        return None
    source = context.find(context.parts(cursor.name(), statement.text))
    if source is None:
        return None
    if cursor.accept("USING") and cursor.identifier("a format").name.lower() not in LAKE_FORMATS:
        return None
    if not cursor.done:
        raise cursor.error("not expected in CREATE TABLE … LIKE for a table of the lake")
    wanted = Definition(
        name,
        if_not_exists,
        columns=list(source.schema.fields),
        primary_key=list(source.primary_key),
        partition_by=list(source.partition_by),
        properties=source.properties,
        comment=source.comment,
    )
    return _created(context, statement, wanted)


def _created(context: Context, statement: Statement, wanted: Definition) -> DataFrame:
    parts = context.parts(wanted.name, statement.text)
    name = context.table_name(parts)
    if name is None:
        # Says what is wrong with the name.
        name = context.lake.catalog.resolve(".".join(quote(p) for p in parts))
    if wanted.replaces:
        raise QueryError(
            f"Table {name} cannot be replaced in one statement.", f"Use DROP TABLE IF EXISTS {name} first."
        )
    _check_buckets(wanted, str(name))
    if context.lake.catalog.exists(name):
        if wanted.if_not_exists:
            return frames.status(context, f"Table {name} exists already; nothing was done.")
        raise AlreadyExistsError(
            f"Table '{name}' exists already.", "Choose another name, or use IF NOT EXISTS."
        )
    rows = None
    if wanted.query is not None:
        rows = context.sql(rewrite(context, statement.rest(wanted.query)))
    table = create_table(
        context.lake,
        name.sql,
        StructType(wanted.columns) if wanted.columns else None,
        primary_key=wanted.primary_key,
        partition_by=wanted.partition_by,
        buckets=wanted.buckets,
        properties=wanted.properties,
        comment=wanted.comment,
        if_not_exists=wanted.if_not_exists,
        location=wanted.location,
        as_=rows,
    )
    return frames.status(context, _described(table))


def _described(table: Table) -> str:
    key = (
        f"primary key ({', '.join(table.primary_key)}), {counted(table.buckets, 'bucket')}"
        if table.primary_key and table.buckets
        else "append"
    )
    rows = table.options.expected_rows
    expected = f", {counted(rows, 'row')} expected" if rows else ""
    return f"Created table {table.name}: {key}{expected}."


def _check_buckets(wanted: Definition, name: str) -> None:
    given = {c.lower() for c in wanted.bucket_columns}
    if given and given != {c.lower() for c in wanted.primary_key}:
        raise InvalidOptionError(
            f"Table {name} cannot be bucketed by ({', '.join(wanted.bucket_columns)}).",
            "A table of the lake is bucketed by its primary key: name its columns, or leave the columns out"
            " and give the option 'bucket'.",
        )


def parse_create(statement: Statement) -> Definition:
    """Reads a CREATE TABLE statement of a table of the lake.

    Raises:
        SyntaxAt: if it cannot be read.
    """
    cursor = statement.cursor()
    replaces = cursor.accept("REPLACE") or cursor.accept("CREATE", "OR", "REPLACE")
    if not replaces:
        cursor.expect("CREATE")
    cursor.accept("EXTERNAL")
    if cursor.at("TEMPORARY") or cursor.at("TEMP"):
        raise cursor.error("a table of the lake cannot be temporary")
    cursor.expect("TABLE")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    wanted = Definition(cursor.name(), if_not_exists, replaces)
    if cursor.at("(") and not cursor.at_query():
        _elements(cursor, statement, wanted)
    while not cursor.done and wanted.query is None:
        _clause(cursor, statement, wanted)
    if wanted.query is not None and wanted.columns:
        raise SyntaxAt(
            cursor.peek().start,
            "CREATE TABLE … AS SELECT takes its columns from the query.",
            "Keep PRIMARY KEY (…) in the parentheses and remove the columns, or create the table and INSERT.",
        )
    return wanted


def _elements(cursor: Cursor, statement: Statement, wanted: Definition) -> None:
    cursor.expect("(")
    while True:
        if cursor.accept("CONSTRAINT"):
            cursor.identifier("the name of the constraint")
        if cursor.at("PRIMARY", "KEY"):
            _primary_key(cursor, wanted)
        elif cursor.at("WATERMARK", "FOR") or any(cursor.at(w, "(") for w in ("UNIQUE", "CHECK", "FOREIGN")):
            raise cursor.error(f"{cursor.peek().keyword} is not supported")
        else:
            _column(cursor, statement, wanted)
        if not cursor.accept(","):
            break
    cursor.expect(")")


def _primary_key(cursor: Cursor, wanted: Definition, column: str | None = None) -> None:
    place = cursor.peek().start
    cursor.expect("PRIMARY", "KEY")
    if wanted.primary_key:
        raise SyntaxAt(
            place, "The primary key is given twice.", "List all of its columns in one PRIMARY KEY (a, b)."
        )
    wanted.primary_key = [column] if column is not None else cursor.identifiers()
    # A promise of uniqueness that other systems do not check; here it always holds.
    cursor.accept("NOT", "ENFORCED")
    cursor.accept("RELY") or cursor.accept("NORELY")


def _column(cursor: Cursor, statement: Statement, wanted: Definition) -> None:
    name = cursor.identifier("a column").name
    data_type = _type(cursor, statement)
    nullable, comment = True, None
    while not (cursor.at(",") or cursor.at(")")) and not cursor.done:
        if cursor.accept("NOT", "NULL"):
            nullable = False
        elif cursor.accept("COMMENT"):
            comment = cursor.string("the comment in quotes")
        elif cursor.at("PRIMARY", "KEY"):
            _primary_key(cursor, wanted, name)
        elif cursor.at("DEFAULT") or cursor.at("GENERATED"):
            raise cursor.error("columns of the lake have no defaults and are not computed")
        elif not cursor.accept("NULL"):
            raise cursor.error(f"not expected after the type of column '{name}'")
    metadata = {"comment": comment} if comment else {}
    wanted.columns.append(StructField(name, parse_type(data_type), nullable, metadata))


def _type(cursor: Cursor, statement: Statement) -> str:
    """Reads the text of a type, with Flink's names as Spark calls them."""
    start = cursor.index
    depth = 0
    while not cursor.done:
        token = cursor.peek()
        if depth == 0 and (token.at(",") or token.at(")") or token.keyword in _COLUMN_ENDS):
            break
        if token.at("("):
            cursor.skip_group()
            continue
        depth += token.at("<") - token.at(">")
        cursor.index += 1
    if cursor.index == start:
        raise cursor.error("expected the type of the column")
    text = str(statement.slice((start, cursor.index)))
    return _FLINK_BYTES.sub("BINARY", _FLINK_PRECISION.sub(r"\1", text))


def _clause(cursor: Cursor, statement: Statement, wanted: Definition) -> None:
    if cursor.accept("USING"):
        cursor.identifier("a format")
    elif cursor.accept("PARTITIONED", "BY"):
        _partitions(cursor, statement, wanted)
    elif cursor.accept("CLUSTERED", "BY"):
        wanted.bucket_columns = cursor.identifiers()
        if cursor.at("SORTED"):
            raise cursor.error("rows are sorted by the primary key, leave SORTED BY out")
        cursor.expect("INTO")
        wanted.buckets = cursor.integer("the number of buckets")
        cursor.expect("BUCKETS")
    elif cursor.accept("COMMENT"):
        wanted.comment = cursor.string("the comment in quotes")
    elif any(cursor.at(word, "(") for word in ("TBLPROPERTIES", "WITH", "OPTIONS")):
        cursor.index += 1
        wanted.properties |= cursor.properties()
    elif cursor.accept("LOCATION"):
        wanted.location = cursor.string("the location in quotes")
    elif cursor.at("PRIMARY", "KEY"):
        _primary_key(cursor, wanted)
    elif cursor.accept("AS") or cursor.at_query():
        wanted.query = cursor.index
    else:
        raise cursor.error("not expected in CREATE TABLE for a table of the lake")


def _partitions(cursor: Cursor, statement: Statement, wanted: Definition) -> None:
    """Reads ``(a, b)``, Hive's ``(a INT, b STRING)`` with new columns, and Spark's ``bucket(4, key)``."""
    cursor.expect("(")
    while True:
        if cursor.at("BUCKET", "("):
            cursor.index += 2
            wanted.buckets = cursor.integer("the number of buckets")
            while cursor.accept(","):
                wanted.bucket_columns.append(cursor.identifier("a column").name)
            cursor.expect(")")
        else:
            name = cursor.identifier("a column").name
            if cursor.at("("):
                raise cursor.error("a table of the lake is partitioned by columns, not by functions of them")
            wanted.partition_by.append(name)
            if not (cursor.at(",") or cursor.at(")")):
                wanted.columns.append(StructField(name, parse_type(_type(cursor, statement))))
        if not cursor.accept(","):
            break
    cursor.expect(")")
