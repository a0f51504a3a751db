"""What a table is, in words: its columns, and the statement that makes such a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakekit.names import TableName, literal, quote
from lakekit.properties import visible_properties
from lakekit.schema import declared_type, field_text, type_text

if TYPE_CHECKING:
    from lakekit.table.table import Table

COLUMNS_SCHEMA = pa.schema(
    [
        pa.field("column", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("nullable", pa.bool_(), nullable=False),
        pa.field("key", pa.int32()),  # position in the primary key, from 1
        pa.field("partition", pa.int32()),  # position among the partition columns, from 1
        pa.field("comment", pa.string()),
    ]
)
"""What `columns` returns."""

DETAILS_SCHEMA = pa.schema(
    [pa.field("property", pa.string(), nullable=False), pa.field("value", pa.string(), nullable=False)]
)
"""What `details` returns."""


def columns(table: Table) -> pa.Table:
    """Returns the columns of a table, one row each, with the schema `COLUMNS_SCHEMA`."""
    snapshot = table.snapshot()
    fields = table.schema_of(snapshot).fields
    key = {name: i for i, name in enumerate(snapshot.primary_key, 1)}
    partition = {name: i for i, name in enumerate(snapshot.partition_columns, 1)}
    return pa.table(
        {
            "column": [f.name for f in fields],
            "type": [type_text(declared_type(f)).lower() for f in fields],
            "nullable": [f.nullable for f in fields],
            "key": [key.get(f.name) for f in fields],
            "partition": [partition.get(f.name) for f in fields],
            "comment": [(f.metadata or {}).get("comment") for f in fields],
        },
        schema=COLUMNS_SCHEMA,
    )


def details(table: Table) -> pa.Table:
    """Returns the facts about a table that are not about one column, with the schema `DETAILS_SCHEMA`."""
    snapshot = table.snapshot()
    facts = {
        "name": str(table.name),
        "comment": snapshot.metadata.description,
        "location": table.root,
        "primary key": ", ".join(snapshot.primary_key),
        "partitioned by": ", ".join(table.partition_by),
        "buckets": str(snapshot.buckets) if snapshot.buckets else None,
        "version": str(snapshot.version),
        "files": str(len(snapshot.files)),
        "bytes": str(snapshot.total_bytes),
        **{f"option {name}": value for name, value in visible_properties(snapshot.configuration).items()},
    }
    shown = {name: value for name, value in facts.items() if value}
    return pa.table({"property": list(shown), "value": list(shown.values())}, schema=DETAILS_SCHEMA)


def show_create(table: Table) -> str:
    """Returns the statement that creates an empty table like this one."""
    snapshot = table.snapshot()
    return create_statement(
        table.name,
        [field_text(f, declared=declared_type(f)) for f in table.schema_of(snapshot)],
        snapshot.primary_key,
        table.partition_by,
        snapshot.metadata.description,
        visible_properties(snapshot.configuration),
    )


def create_statement(
    name: TableName,
    columns: Sequence[str],
    primary_key: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    comment: str | None = None,
    options: Mapping[str, str] | None = None,
) -> str:
    """Returns the statement that creates a table; nothing is checked.

    Args:
        name: its name.
        columns: the SQL text of each column, as `field_text` returns it.
        primary_key: names of key columns.
        partition_by: names of partition columns.
        comment: a text about the table.
        options: table options and their values.
    """
    lines = [*columns, f"PRIMARY KEY ({_listed(primary_key)})"] if primary_key else list(columns)
    body = ",\n  ".join(lines)
    statement = [f"CREATE TABLE {name.sql} (\n  {body}\n)", "USING lake"]
    if partition_by:
        statement.append(f"PARTITIONED BY ({_listed(partition_by)})")
    if comment:
        statement.append(f"COMMENT {literal(comment)}")
    if options:
        pairs = ",\n  ".join(f"{literal(option)} = {literal(value)}" for option, value in options.items())
        statement.append(f"TBLPROPERTIES (\n  {pairs}\n)")
    return "\n".join(statement)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quote(name) for name in names)
