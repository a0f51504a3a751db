"""Databases, and changes of tables: ALTER, DROP, COMMENT ON, USE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from lakekit.names import quote
from lakekit.schema import parse_type
from lakekit.sql import frames
from lakekit.sql.context import Context
from lakekit.sql.failures import SyntaxAt
from lakekit.sql.parse import Cursor
from lakekit.sql.statement import Statement
from lakekit.table import alter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from lakekit.table.table import Table

_DATABASE = ("DATABASE", "SCHEMA", "NAMESPACE")


def _accept_database(cursor: Cursor) -> bool:
    return any(cursor.accept(word) for word in _DATABASE)


def _database(context: Context, parts: Sequence[str]) -> str | None:
    """Returns the database that a name means; None for one of another catalog."""
    if len(parts) == 1:
        return parts[0]
    # A name of a table in the same place tells whether the catalog is ours.
    return parts[1] if len(parts) == 2 and context.table_name((*parts, "t")) is not None else None


def create_database(context: Context, statement: Statement) -> DataFrame | None:
    """Runs CREATE DATABASE."""
    cursor = statement.cursor(1)
    if not _accept_database(cursor):
        return None
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = _database(context, context.parts(cursor.name(), statement.text))
    if name is None:
        return None
    comment = None
    while not cursor.done:
        if cursor.accept("COMMENT"):
            comment = cursor.string("the comment in quotes")
        elif cursor.at("LOCATION"):
            raise cursor.error("a database is a folder of the warehouse, leave LOCATION out")
        elif cursor.accept("WITH", "DBPROPERTIES"):
            raise cursor.error("databases of the lake have no properties")
        else:
            raise cursor.error("not expected in CREATE DATABASE")
    context.lake.create_database(name, if_not_exists=if_not_exists, comment=comment)
    return frames.status(context, f"Database {name.lower()} is there.")


def drop_database(context: Context, statement: Statement) -> DataFrame | None:
    """Runs DROP DATABASE."""
    cursor = statement.cursor(1)
    if not _accept_database(cursor):
        return None
    if_exists = cursor.accept("IF", "EXISTS")
    name = _database(context, context.parts(cursor.name(), statement.text))
    if name is None:
        return None
    cascade = cursor.accept("CASCADE")
    cursor.accept("RESTRICT")
    context.lake.drop_database(name, if_exists=if_exists, cascade=cascade)
    return frames.status(context, f"Dropped database {name.lower()}.")


def use(context: Context, statement: Statement) -> DataFrame | None:
    """Runs USE; ``USE CATALOG arctic`` does nothing, as the lake has one catalog."""
    cursor = statement.cursor()
    cursor.accept("USE") or cursor.accept("SET")
    if cursor.accept("CATALOG"):
        catalog = cursor.identifier("a catalog").name
        ours = context.table_name((catalog, "d", "t")) is not None
        return frames.status(context, f"The catalog is {catalog}.") if ours else None
    _accept_database(cursor)
    name = _database(context, context.parts(cursor.name(), statement.text))
    if name is None or not cursor.done:
        return None
    context.lake.use(name)
    return frames.status(context, f"The current database is {name.lower()}.")


def drop_table(context: Context, statement: Statement) -> DataFrame | None:
    """Runs DROP TABLE; tables of others, and names of nothing, go to Spark."""
    cursor = statement.cursor(1)
    if not cursor.accept("TABLE"):
        return None
    if_exists = cursor.accept("IF", "EXISTS")
    parts = context.parts(cursor.name(), statement.text)
    name = context.table_name(parts)
    if name is None or not context.lake.catalog.exists(name) or context.is_view(parts):
        return None
    cursor.accept("PURGE")
    if not cursor.done:
        raise cursor.error("not expected in DROP TABLE")
    context.lake.catalog.drop(name, if_exists=if_exists)
    return frames.status(context, f"Dropped table {name}.")


def comment_on(context: Context, statement: Statement) -> DataFrame | None:
    """Runs COMMENT ON DATABASE, TABLE or COLUMN."""
    cursor = statement.cursor()
    cursor.expect("COMMENT", "ON")
    if _accept_database(cursor):
        database = _database(context, context.parts(cursor.name(), statement.text))
        if database is None:
            return None
        context.lake.catalog.set_database_comment(database, _comment(cursor))
        return frames.status(context, f"Commented on database {database}.")
    column = None
    if cursor.accept("COLUMN"):
        *parts, column = context.parts(cursor.name(), statement.text)
    elif cursor.accept("TABLE"):
        parts = list(context.parts(cursor.name(), statement.text))
    else:
        return None
    table = context.find(parts) if parts else None
    if table is None:
        return None
    if column is None:
        alter.set_comment(table, _comment(cursor))
    else:
        alter.set_column_comment(table, column, _comment(cursor))
    return frames.status(context, f"Commented on {column or table.name}.")


def _comment(cursor: Cursor) -> str | None:
    cursor.expect("IS")
    text = None if cursor.accept("NULL") else cursor.string("the comment in quotes, or NULL")
    if not cursor.done:
        raise cursor.error("not expected behind the comment")
    return text


def alter_table(context: Context, statement: Statement) -> DataFrame | None:
    """Runs ALTER TABLE on a table of the lake; None for others, and for CHECK constraints, which are Delta's."""
    cursor = statement.cursor(1)
    if not cursor.accept("TABLE"):
        return None
    table = context.find(context.parts(cursor.name(), statement.text))
    if table is None or cursor.at("ADD", "CONSTRAINT") or cursor.at("DROP", "CONSTRAINT"):
        return None
    done = _altered(context, cursor, statement, table)
    if not cursor.done:
        raise cursor.error("not expected in ALTER TABLE")
    return frames.status(context, done())


def _altered(context: Context, cursor: Cursor, statement: Statement, table: Table) -> Callable[[], str]:
    """Reads what to change, and returns the function that changes it and tells what it did."""
    if cursor.accept("RENAME", "TO"):
        return _rename(context, cursor, statement, table)
    if cursor.accept("SET", "TBLPROPERTIES"):
        properties = cursor.properties()
        return lambda: f"Version {alter.set_properties(table, properties)} has the properties."
    if cursor.accept("UNSET", "TBLPROPERTIES"):
        if_exists = cursor.accept("IF", "EXISTS")
        keys = cursor.property_keys()
        return lambda: (
            f"Version {alter.unset_properties(table, keys, if_exists=if_exists)} lacks the properties."
        )
    if cursor.accept("ADD", "COLUMNS") or cursor.accept("ADD", "COLUMN"):
        columns = _new_columns(cursor, statement)
        return lambda: f"Version {alter.add_columns(table, columns)} has the columns."
    if cursor.at("ALTER") or cursor.at("CHANGE"):
        cursor.index += 1
        cursor.accept("COLUMN")
        return _change_column(cursor, statement, table)
    raise SyntaxAt(
        cursor.peek().start,
        f"ALTER TABLE {cursor.peek().text} … is not possible for table {table.name}.",
        "There are RENAME TO, SET and UNSET TBLPROPERTIES, ADD COLUMNS, ALTER COLUMN … TYPE, ALTER COLUMN … COMMENT,"
        " ADD and DROP CONSTRAINT.",
    )


def _rename(context: Context, cursor: Cursor, statement: Statement, table: Table) -> Callable[[], str]:
    parts = context.parts(cursor.name(), statement.text)
    # A new name without a database stays in the old one's.
    full = parts if len(parts) > 1 else (table.name.database, *parts)
    new = context.lake.catalog.resolve(".".join(quote(p) for p in full))

    def done() -> str:
        context.lake.catalog.rename(table.name, new)
        return f"Table {table.name} is now {new}."

    return done


def _new_columns(cursor: Cursor, statement: Statement) -> StructType:
    in_parentheses = cursor.accept("(")
    fields = []
    while True:
        name = cursor.identifier("a column").name
        start = cursor.index
        depth = 0
        while not cursor.done:
            token = cursor.peek()
            if depth == 0 and (
                token.at(",") or token.at(")") or token.keyword in ("COMMENT", "NOT", "FIRST", "AFTER")
            ):
                break
            if token.at("("):
                cursor.skip_group()
                continue
            depth += token.at("<") - token.at(">")
            cursor.index += 1
        data_type = parse_type(str(statement.slice((start, cursor.index))))
        nullable = not cursor.accept("NOT", "NULL")
        metadata = {"comment": cursor.string("the comment in quotes")} if cursor.accept("COMMENT") else {}
        if cursor.at("FIRST") or cursor.at("AFTER"):
            raise cursor.error("new columns come behind the others")
        fields.append(StructField(name, data_type, nullable, metadata))
        if not cursor.accept(","):
            break
    if in_parentheses:
        cursor.expect(")")
    return StructType(fields)


def _change_column(cursor: Cursor, statement: Statement, table: Table) -> Callable[[], str]:
    column = cursor.identifier("a column").name
    if cursor.accept("COMMENT"):
        comment = cursor.string("the comment in quotes")
        return lambda: f"Version {alter.set_column_comment(table, column, comment)} has the comment."
    if not cursor.accept("TYPE"):
        raise cursor.error("expected TYPE or COMMENT; a column cannot be renamed, moved or made NOT NULL")
    start = cursor.index
    cursor.skip_until(lambda c: c.at("COMMENT"))
    new_type = str(statement.slice((start, cursor.index)))
    if not new_type:
        raise cursor.error("expected the new type")
    parse_type(new_type)
    return lambda: (
        f"Version {alter.widen_column(table, column, new_type)} has {column} as {new_type.upper()}."
    )
