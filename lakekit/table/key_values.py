"""Brings key values as people give them to the types of the key columns, or says why they do not fit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakekit.errors import ColumnNotFoundError, PrimaryKeyError, SchemaMismatchError, did_you_mean
from lakekit.skipping.values import INTEGER_BITS, Column, arrow_type, char_length

_SQL_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def need_key(table: str, key: Sequence[Any], what: str) -> None:
    """Raises an error if the table has no primary key."""
    if not key:
        raise PrimaryKeyError(
            f"{what} needs a primary key, and table {table} has none.", "Use SQL with a WHERE clause instead."
        )


def by_column(table: str, key: Sequence[Column], names: Iterable[str]) -> dict[str, str]:
    """Returns for each key column the name among `names` that means it.

    Raises:
        ColumnNotFoundError: if a name is no key column.
        PrimaryKeyError: if a key column has no name, or two.
    """
    known = {column.name.lower(): column.name for column in key}
    found: dict[str, str] = {}
    listed = ", ".join(known.values())
    for name in names:
        column = known.get(name.lower())
        if column is None:
            hint = did_you_mean(name, known.values()) or f"The key is ({listed})."
            raise ColumnNotFoundError(f"'{name}' is not in the primary key of table {table}.", hint)
        if column in found:
            raise PrimaryKeyError(f"Key column '{column}' of table {table} was given twice.", "Give it once.")
        found[column] = name
    missing = [column.name for column in key if column.name not in found]
    if missing:
        raise PrimaryKeyError(
            f"No value was given for key column(s) {', '.join(missing)} of table {table}.",
            f"The key is ({listed}); a look-up needs all of it.",
        )
    return found


def typed_key(
    table: str, key: Sequence[Column], given: Mapping[str, Any], instants: Mapping[str, dt.datetime]
) -> list[pa.Array]:
    """Returns the values of one key as arrays of one row each, in the order of the key.

    Args:
        table: the table's name, for errors.
        key: the key columns.
        given: a value for each of them; names in any case.
        instants: for naive datetimes the aware ones, in the time zone of whoever gave them.

    Raises:
        ColumnNotFoundError: if a name is no key column.
        PrimaryKeyError: if a key column is missing or null.
        SchemaMismatchError: if a value does not fit its column.
    """
    names = by_column(table, key, given)
    arrays = []
    for column in key:
        name = names[column.name]
        value = given[name].item() if isinstance(given[name], np.generic) else given[name]
        if value is None:
            raise PrimaryKeyError(
                f"Key column '{column.name}' of table {table} was given as None.", "Keys are never null."
            )
        if column.kind == "timestamp":
            value = instants.get(name, value)
        arrays.append(_one(table, column, value))
    return arrays


def _one(table: str, column: Column, value: Any) -> pa.Array:
    kind = str(column.kind)
    if not _accepted(value, kind):
        raise misfit(table, column, f"{value!r} ({type(value).__name__})")
    try:
        if kind == "date" and isinstance(value, str):
            value = dt.date.fromisoformat(value)
        length = char_length(kind)
        if length is not None:
            value = value.ljust(length)
        return pa.array([float(value) if kind in ("float", "double") else value], arrow_type(kind))
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise misfit(table, column, repr(value)) from error


def _accepted(value: Any, kind: str) -> bool:
    if kind == "boolean" or isinstance(value, bool):
        return isinstance(value, bool) and kind == "boolean"
    if kind in INTEGER_BITS:
        return isinstance(value, int)
    if kind in ("float", "double"):
        return isinstance(value, int | float | Decimal)
    if kind.startswith("decimal"):
        return isinstance(value, int | Decimal)
    if kind == "binary":
        return isinstance(value, bytes | bytearray | memoryview)
    if kind == "date":
        return isinstance(value, str | dt.date) and not isinstance(value, dt.datetime)
    if kind in ("timestamp", "timestamp_ntz"):
        return isinstance(value, dt.datetime) and (value.tzinfo is not None) == (kind == "timestamp")
    return isinstance(value, str)


def misfit(table: str, column: Column, what: str) -> SchemaMismatchError:
    """Builds the error for a value, or values of a type, that a key column cannot hold."""
    kind = _SQL_NAMES.get(str(column.kind), str(column.kind))
    hints = {
        "timestamp": "Give a datetime.",
        "timestamp_ntz": "Give a datetime without time zone.",
        "date": "Give a date, or a text such as '2022-01-31'.",
    }
    hint = hints.get(kind, f"Give a value of type {kind}.")
    return SchemaMismatchError(
        f"Key column '{column.name}' of table {table} is {kind}, which {what} is not.", hint
    )


def typed_keys(table: str, key: Sequence[Column], rows: pa.Table, zone: str | None) -> list[pa.Array]:
    """Returns the key columns of many rows in the types of the table, in the order of the key.

    Args:
        table: the table's name, for errors.
        key: the key columns.
        rows: has a column for each of them, and perhaps others.
        zone: time zone of timestamps that have none.

    Raises:
        PrimaryKeyError: if a key column is missing, or a key holds a null.
        SchemaMismatchError: if a column is of another type.
    """
    wanted = {column.name.lower() for column in key}
    names = by_column(table, key, [name for name in rows.column_names if name.lower() in wanted])
    arrays = [_typed_column(table, column, rows.column(names[column.name]), zone) for column in key]
    nulls = [
        (column.name, array.null_count) for column, array in zip(key, arrays, strict=True) if array.null_count
    ]
    if nulls:
        raise PrimaryKeyError(
            f"{nulls[0][1]} key(s) for table {table} have a null in column '{nulls[0][0]}'.",
            "Keys are never null.",
        )
    return arrays


def _typed_column(table: str, column: Column, values: pa.ChunkedArray, zone: str | None) -> pa.Array:
    kind, target = str(column.kind), arrow_type(str(column.kind))
    array = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not _castable(array.type, target):
        raise misfit(table, column, f"a value of type {array.type}")
    try:
        if pa.types.is_timestamp(array.type) and kind == "timestamp" and array.type.tz is None:
            local = array.cast(pa.timestamp("us"))
            array = pc.assume_timezone(local, zone or "UTC", ambiguous="earliest", nonexistent="earliest")
        array = array.cast(target, safe=target != pa.float32())
    except pa.ArrowException as error:
        raise misfit(table, column, f"each value ({str(error).splitlines()[0]})") from error
    length = char_length(kind)
    return array if length is None else pc.utf8_rpad(array, length)


def _castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Tells whether values of `source` mean values of `target`, as far as those have the range."""
    types = pa.types
    if source == target or types.is_null(source):
        return True
    if types.is_integer(source):
        return types.is_integer(target) or types.is_floating(target) or types.is_decimal(target)
    if types.is_floating(source):
        return types.is_floating(target)
    if types.is_decimal(source):
        return types.is_decimal(target) or types.is_floating(target)
    if types.is_timestamp(source):
        return types.is_timestamp(target) and not (source.tz is not None and target.tz is None)
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    binaries = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    return any(
        any(test(source) for test in family) and any(test(target) for test in family)
        for family in (texts, binaries, (types.is_date,))
    )


def naive_instants(values: Mapping[str, Any]) -> dict[str, dt.datetime]:
    """Returns the naive datetimes as aware ones, taken as local time as PySpark does."""
    return {
        name: value.astimezone(dt.timezone.utc)
        for name, value in values.items()
        if isinstance(value, dt.datetime) and value.tzinfo is None
    }
