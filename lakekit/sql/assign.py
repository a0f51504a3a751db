"""Assignments of UPDATE and MERGE, and expressions cast to the columns they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakekit.errors import ColumnNotFoundError
from lakekit.names import literal, quote
from lakekit.schema import type_text
from lakekit.sql.failures import SyntaxAt
from lakekit.sql.parse import Cursor
from lakekit.sql.statement import Statement, qualified
from lakekit.sql.text import SqlText

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType


@dataclass
class Assigned:
    """What is assigned to a column, or to fields inside it.

    Attributes:
        value: the new value; None if only fields are assigned.
        fields: assignments by the lower-case name of a field.
    """

    value: SqlText | None = None
    fields: dict[str, Assigned] = field(default_factory=dict)


def cast(expression: SqlText, data_type: DataType) -> SqlText:
    """Returns an expression cast to a type."""
    return "CAST((" + expression + f") AS {type_text(data_type)})"


def read_assignments(
    cursor: Cursor, statement: Statement, stop: int
) -> list[tuple[tuple[str, ...], int, SqlText]]:
    """Reads ``a = 1, t.b = 2`` up to a token.

    Returns:
        For each assignment the column's name, where it stands, and the expression.
    """
    found = []
    while True:
        place = cursor.peek().start
        target = cursor.name()
        if not (cursor.accept("=") or cursor.accept("==")):
            raise cursor.error("expected = and the new value")
        start = cursor.index
        cursor.skip_until(lambda c: c.at(",") or c.index >= stop)
        if cursor.index == start:
            raise cursor.error("expected the new value")
        found.append((target.parts, place, _value(statement, start, cursor.index)))
        if cursor.index >= stop or not cursor.accept(","):
            return found


def _value(statement: Statement, start: int, stop: int) -> SqlText:
    # Columns of the lake have no defaults, so DEFAULT is null, as for such columns in Spark.
    if stop - start == 1 and statement.tokens[start].keyword == "DEFAULT":
        return SqlText.generated("NULL")
    return statement.slice((start, stop))


def resolve_assignments(
    assignments: Sequence[tuple[tuple[str, ...], int, SqlText]],
    schema: StructType,
    table: str,
    qualifiers: Sequence[Sequence[str]],
) -> dict[str, Assigned]:
    """Returns what is assigned to each column, by the column's name in the schema.

    Args:
        assignments: as `read_assignments` returns them.
        schema: the table's columns.
        table: its name, for messages.
        qualifiers: what may stand before a column's name, in lower case.

    Raises:
        ColumnNotFoundError: for a name that is no column.
        SyntaxAt: for a column that is assigned twice.
    """
    found: dict[str, Assigned] = {}
    for parts, place, value in assignments:
        path = _path(parts, schema, qualifiers)
        column = _field(schema, path[0])
        if column is None:
            raise ColumnNotFoundError.of(table, ".".join(path), schema.names)
        _assign(found.setdefault(column.name, Assigned()), column, path[1:], value, place, table)
    return found


def _path(parts: tuple[str, ...], schema: StructType, qualifiers: Sequence[Sequence[str]]) -> tuple[str, ...]:
    lower = tuple(p.lower() for p in parts)
    for qualifier in qualifiers:
        length = len(qualifier)
        if (
            len(parts) > length
            and lower[:length] == tuple(qualifier)
            and _field(schema, parts[length]) is not None
        ):
            return parts[length:]
    return parts


def _field(schema: StructType, name: str) -> StructField | None:
    return next((f for f in schema.fields if f.name.lower() == name.lower()), None)


def _assign(
    assigned: Assigned, column: StructField, path: tuple[str, ...], value: SqlText, place: int, table: str
) -> None:
    from pyspark.sql.types import StructType

    if assigned.value is not None or (not path and assigned.fields):
        raise SyntaxAt(place, f"Column '{column.name}' is assigned twice.")
    if not path:
        assigned.value = value
        return
    inner = _field(column.dataType, path[0]) if isinstance(column.dataType, StructType) else None
    if inner is None:
        raise ColumnNotFoundError.of(table, f"{column.name}.{path[0]}", [])
    child = assigned.fields.setdefault(inner.name.lower(), Assigned())
    _assign(child, inner, path[1:], value, place, table)


def new_value(column: StructField, assigned: Assigned | None, old: Sequence[str]) -> SqlText:
    """Returns the expression of a column's new value.

    Args:
        column: the column, or a field in it.
        assigned: what is assigned to it; None to keep it.
        old: the name of its present value, in parts.
    """
    if assigned is None:
        return SqlText.generated(qualified(*old))
    if assigned.value is not None:
        return cast(assigned.value, column.dataType)
    parts: list[SqlText | str] = []
    for inner in column.dataType.fields:  # type: ignore[attr-defined]
        child = assigned.fields.get(inner.name.lower())
        parts.append(literal(inner.name))
        parts.append(new_value(inner, child, (*old, inner.name)))
    return "named_struct(" + SqlText.join(parts, ", ") + ")"


def projection(schema: StructType, assigned: Mapping[str, Assigned], alias: str) -> list[SqlText]:
    """Returns for each column of the table its new value, under the column's name."""
    return [
        new_value(column, assigned.get(column.name), (alias, column.name)) + f" AS {quote(column.name)}"
        for column in schema.fields
    ]
