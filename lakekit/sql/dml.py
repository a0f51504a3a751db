"""INSERT, DELETE, UPDATE and TRUNCATE on tables of the lake.

The expressions are evaluated by Spark in a query over the table at one version; its rows are the changes, which the
table applies in one commit. A commit of another writer in between makes the query run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakekit.errors import ColumnNotFoundError, QueryError, SchemaMismatchError
from lakekit.filestore.layout import OPERATION
from lakekit.names import quote
from lakekit.schema import type_text
from lakekit.sql import frames, hints, parameters
from lakekit.sql.assign import projection, read_assignments, resolve_assignments
from lakekit.sql.context import Context
from lakekit.sql.failures import SyntaxAt
from lakekit.sql.keys import Changes
from lakekit.sql.parse import Cursor
from lakekit.sql.rewrite import rewrite
from lakekit.sql.statement import Statement, Target, qualified, read_hint, read_target
from lakekit.sql.text import Edit, SqlText
from lakekit.table import append

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

    from lakekit.table.table import Table


def target_table(context: Context, statement: Statement, target: Target) -> Table | None:
    """Returns the table that a statement changes, after a look at the options of its hint."""
    table = context.find(context.parts(target.name, statement.text))
    if table is None:
        if target.hint is not None:
            raise SyntaxAt(target.hint[1], "OPTIONS(…) can only be given for a table of the lake.")
        return None
    given = hints.parse_hint(target.hint[0]) if target.hint else {}
    return table.emitting(hints.resolve(given, context.settings, table).table.emit_mode)


def at_version(table: Table, version: int, alias: str | None) -> str:
    """Returns the table at a version as text for FROM; `rewrite` hides its bucket column."""
    return f"{table.name.sql} VERSION AS OF {version}" + (f" AS {quote(alias)}" if alias else "")


# INSERT


def insert(context: Context, statement: Statement) -> DataFrame | None:
    """Runs INSERT INTO and INSERT OVERWRITE; None if the table is not one of the lake."""
    cursor = statement.cursor(statement.verb_index)
    cursor.expect("INSERT")
    overwrites = cursor.accept("OVERWRITE")
    if not overwrites:
        cursor.accept("INTO")
    cursor.accept("TABLE")
    if cursor.at("DIRECTORY") or cursor.at("LOCAL", "DIRECTORY"):
        return None
    name = cursor.name()
    table = target_table(context, statement, Target(name, read_hint(cursor)))
    if table is None:
        return None
    partition = _partition_spec(cursor, statement) if cursor.accept("PARTITION") else {}
    if cursor.accept("IF", "NOT", "EXISTS"):
        raise SyntaxAt(
            cursor.peek().start, "INSERT … IF NOT EXISTS is not possible.", "Check for the rows first."
        )
    by_name = cursor.accept("BY", "NAME")
    columns = cursor.identifiers() if not by_name and cursor.at("(") and not cursor.at_query() else None
    if cursor.at("REPLACE"):
        raise cursor.error("use DELETE and INSERT, or INSERT OVERWRITE with PARTITION")
    if cursor.done:
        raise cursor.error("expected a query or VALUES")
    query = rewrite(context, statement.ctes + _without_defaults(statement, cursor.index))
    rows = context.sql(query)
    fixed = {c: v for c, v in _fixed(context, table, partition).items() if v is not _OPEN}
    with context.translated(query):
        shaped = _shaped(table, rows, columns, by_name, fixed)
    if not overwrites:
        return frames.commit(context, table.upsert(shaped))
    return frames.commit(
        context, table.overwrite(shaped, partitions=_replaced(context, table, partition, fixed))
    )


def _without_defaults(statement: Statement, first: int) -> SqlText:
    """Returns the query with NULL for DEFAULT in VALUES: columns of the lake have no other default."""
    tokens, query = statement.tokens, statement.rest(first)
    if tokens[first].keyword != "VALUES":
        return query
    start = tokens[first].start
    edits = [
        Edit(token.start - start, token.end - start, "NULL")
        for before, token, after in zip(
            tokens[first:], tokens[first + 1 :], tokens[first + 2 :], strict=False
        )
        if token.keyword == "DEFAULT"
        and (before.at("(") or before.at(","))
        and (after.at(")") or after.at(","))
    ]
    return query.replace(edits)


_OPEN = object()


def _partition_spec(cursor: Cursor, statement: Statement) -> dict[str, SqlText | None]:
    """Reads ``(dt = '2022-01-01', hour)``; None for a column whose value comes from the rows."""
    cursor.expect("(")
    found: dict[str, SqlText | None] = {}
    while True:
        place = cursor.peek().start
        column = cursor.identifier("a partition column").name
        if column.lower() in (c.lower() for c in found):
            raise SyntaxAt(place, f"Partition column '{column}' is given twice.")
        found[column] = None
        if cursor.accept("=") or cursor.accept("=="):
            start = cursor.index
            cursor.skip_until(lambda c: c.at(","))
            found[column] = statement.slice((start, cursor.index))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return found


def _fixed(context: Context, table: Table, partition: Mapping[str, SqlText | None]) -> dict[str, Any]:
    """Returns the values of a partition spec, as Python values of the columns' types."""
    values: dict[str, Any] = {}
    for name, expression in partition.items():
        column = _column(table, name)
        if column.name not in table.partition_by:
            raise ColumnNotFoundError(
                f"'{name}' is no partition column of table {table.name}.",
                f"Its partition columns: {', '.join(table.partition_by) or 'none'}.",
            )
        if expression is None:
            values[column.name] = _OPEN
            continue
        query = "SELECT CAST((" + expression + f") AS {type_text(column.dataType)}) AS value FROM VALUES (0)"
        frame = context.sql(query)
        with context.translated(query):
            values[column.name] = frame.collect()[0][0]
    return values


def _column(table: Table, name: str) -> StructField:
    for column in table.schema.fields:
        if column.name.lower() == name.lower():
            return column
    raise ColumnNotFoundError.of(str(table.name), name, table.schema.names)


def _replaced(
    context: Context, table: Table, partition: Mapping[str, SqlText | None], fixed: Mapping[str, Any]
) -> str | Mapping[str, Any] | None:
    """Returns which partitions INSERT OVERWRITE replaces.

    Those of a static spec; those the rows fall into, if the spec leaves a column open or the session says so;
    else all, as in Spark.
    """
    if partition:
        return fixed if len(fixed) == len(partition) else "dynamic"
    mode = str(context.lake.spark.conf.get("spark.sql.sources.partitionOverwriteMode", "static")).lower()
    return "dynamic" if mode == "dynamic" and table.partition_by else None


def _shaped(
    table: Table, rows: DataFrame, columns: Sequence[str] | None, by_name: bool, fixed: Mapping[str, Any]
) -> DataFrame:
    """Returns rows with the table's columns in its types; columns that are not given are null."""
    from pyspark.sql import functions as F

    schema = table.schema
    if by_name:
        names = [_column(table, name).name for name in rows.columns]
    elif columns is not None:
        names = [_column(table, name).name for name in columns]
    else:
        names = [f.name for f in schema if f.name not in fixed]
    twice = sorted({n for n in names if names.count(n) > 1 or n in fixed})
    if twice:
        raise SchemaMismatchError(
            f"Columns of table {table.name} are given twice: {', '.join(twice)}.", "Name each column once."
        )
    if len(names) != len(rows.columns):
        raise SchemaMismatchError(
            f"INSERT INTO {table.name} expects {len(names)} columns ({', '.join(names)}), but the query has"
            f" {len(rows.columns)} ({', '.join(rows.columns)}).",
            "Name the columns that the query gives: INSERT INTO table (a, b) SELECT …, or use BY NAME.",
        )
    strict = str(table.lake.spark.conf.get("spark.sql.ansi.enabled", "true")).lower() == "true"
    # By position, because a query may have two columns of one name.
    given = rows.toDF(*[f"__lake_{i}" for i in range(len(names))])
    place = {name: f"__lake_{i}" for i, name in enumerate(names)}
    chosen = []
    for column in schema.fields:
        value = F.col(place[column.name]) if column.name in place else F.lit(fixed.get(column.name))
        chosen.append(_stored(value, column, strict).alias(column.name))
    return given.select(*chosen)


def _stored(value: Column, column: StructField, strict: bool) -> Column:
    """Returns a value cast to a column's type; one that does not fit fails, also where a cast would make null of it.

    Spark's ANSI mode does that by itself; without it, INSERT is as strict in Spark too.
    """
    from pyspark.sql import functions as F

    if strict:
        return value.cast(column.dataType)
    tried = value.try_cast(column.dataType)
    message = F.lit(f"A value for column {column.name} does not fit {column.dataType.simpleString()}.")
    return F.when(value.isNotNull() & tried.isNull(), F.raise_error(message)).otherwise(tried)


# DELETE, UPDATE, TRUNCATE


def delete(context: Context, statement: Statement) -> DataFrame | None:
    """Runs DELETE FROM; None if the table is not one of the lake."""
    cursor = statement.cursor(statement.verb_index)
    cursor.expect("DELETE")
    cursor.expect("FROM")
    target = read_target(cursor, "WHERE")
    table = target_table(context, statement, target)
    if table is None:
        return None
    where = _where(cursor, statement)
    if not table.primary_key:
        return _by_delta(context, statement, table, target)
    if where is None:
        return frames.commit(context, table.overwrite(_no_rows(table)))

    def build(version: int) -> DataFrame:
        columns = ", ".join(qualified(target.alias or table.name.table, f.name) for f in table.schema)
        source = at_version(table, version, target.alias)
        query = statement.ctes + f"SELECT {columns}, 'D' AS {OPERATION} FROM {source} WHERE " + where
        return context.sql(rewrite(context, query))

    return frames.commit(context, table.apply_changes(build, operation="DELETE"))


def _where(cursor: Cursor, statement: Statement) -> SqlText | None:
    if cursor.done:
        return None
    cursor.expect("WHERE")
    if cursor.done:
        raise cursor.error("expected a condition")
    return statement.rest(cursor.index)


def _no_rows(table: Table) -> DataFrame:
    return table.lake.spark.createDataFrame([], table.schema)


def truncate(context: Context, statement: Statement) -> DataFrame | None:
    """Runs TRUNCATE TABLE; None if the table is not one of the lake."""
    cursor = statement.cursor()
    cursor.expect("TRUNCATE")
    cursor.expect("TABLE")
    name = cursor.name()
    table = target_table(context, statement, Target(name))
    if table is None:
        return None
    partition = _partition_spec(cursor, statement) if cursor.accept("PARTITION") else {}
    if not cursor.done:
        raise cursor.error("not expected in TRUNCATE TABLE")
    fixed = _fixed(context, table, partition)
    if _OPEN in fixed.values():
        raise QueryError(
            "TRUNCATE TABLE … PARTITION needs a value for each column.", "Write PARTITION (dt = '…')."
        )
    return frames.commit(context, table.overwrite(_no_rows(table), partitions=fixed or None))


def update(context: Context, statement: Statement) -> DataFrame | None:
    """Runs UPDATE; None if the table is not one of the lake."""
    cursor = statement.cursor(statement.verb_index)
    cursor.expect("UPDATE")
    target = read_target(cursor, "SET")
    table = target_table(context, statement, target)
    if table is None:
        return None
    cursor.expect("SET")
    where_at = _where_index(cursor)
    assignments = read_assignments(cursor, statement, where_at)
    where = _where(cursor, statement)
    schema, alias = table.schema, target.alias or table.name.table
    assigned = resolve_assignments(assignments, schema, str(table.name), qualifiers(table, target.alias))
    if not table.primary_key:
        return _by_delta(context, statement, table, target)
    moves = any(column in assigned for column in table.primary_key)
    columns = projection(schema, assigned, alias)
    if moves:
        columns += [SqlText.generated(f"{qualified(alias, f.name)} AS {Changes.old(f.name)}") for f in schema]
        columns.append(SqlText.generated(f"'update' AS {Changes.ACTION}"))
    else:
        columns.append(SqlText.generated(f"'U' AS {OPERATION}"))
    condition = " WHERE " + where if where is not None else SqlText()
    changes = Changes(context, table, "UPDATE")

    def build(version: int) -> DataFrame:
        source = at_version(table, version, target.alias)
        query = statement.ctes + "SELECT " + SqlText.join(columns, ", ") + f" FROM {source}" + condition
        rows = context.sql(rewrite(context, query))
        return changes.of_moved(rows, version) if moves else rows

    with changes:
        return frames.commit(context, table.apply_changes(build, operation="UPDATE"))


def _where_index(cursor: Cursor) -> int:
    """Returns the index of the WHERE of this statement, or behind the last token."""
    ahead = Cursor(cursor.tokens, cursor.index)
    ahead.skip_until(lambda c: c.at("WHERE"))
    return ahead.index


def qualifiers(table: Table, alias: str | None) -> list[tuple[str, ...]]:
    """Returns what may stand before a column of a changed table, in lower case."""
    if alias is not None:
        return [(alias.lower(),)]
    database, name = table.name
    return [(database, name), (name,), ("spark_catalog", database, name)]


def _by_delta(context: Context, statement: Statement, table: Table, target: Target) -> DataFrame:
    """Hands a statement on an append table to Delta, with the tables it reads replaced."""
    relation = table.relation()
    named = statement.sql.replace([Edit(target.name.start, target.name.end, relation)])
    if target.hint is not None:
        shift = len(relation) - (target.name.end - target.name.start)
        start = target.hint[1] + shift
        named = named.replace([Edit(start, start + len(target.hint[0]), "")])
    behind = Statement(named).cursor(statement.verb_index)
    behind.skip_until(lambda c: c.at("WHERE") or c.at("SET"))
    final = rewrite(context, named, behind.index)
    bound, values = parameters.bind(final, context.params)
    with context.translated(bound):
        return frames.commit(context, append.statement(table, str(bound), values))
