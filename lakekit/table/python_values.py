"""Turns values of Arrow into the Python values that PySpark's ``Row.asDict(recursive=True)`` holds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Convert = Callable[[Any], Any]


def rows_converter(types: Mapping[str, Any]) -> Callable[[pa.Table], list[dict[str, Any]]]:
    """Returns the function that turns rows into Python values by column; `types` as `converter` takes them."""
    converters = {name: converter(kind) for name, kind in types.items()}
    needed = {name: convert for name, convert in converters.items() if convert is not _same}

    def python_rows(rows: pa.Table) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = rows.to_pylist()
        for row in found if needed else ():
            for name, convert in needed.items():
                row[name] = convert(row[name])
        return found

    return python_rows


def converter(kind: Any) -> Convert:
    """Returns the function for values of a column.

    Args:
        kind: the column's type as in Delta's schema JSON.

    Timestamps become naive datetimes in local time, binaries bytearrays, structs and maps dicts.
    """
    if isinstance(kind, Mapping):
        return _nested_converter(kind)
    return _ATOMIC.get(kind, _same)


def _same(value: Any) -> Any:
    return value


def _local(value: dt.datetime | None) -> dt.datetime | None:
    if value is None:
        return None
    # A file in the legacy INT96 format has no mark that it means UTC.
    aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.timezone.utc)
    return aware.astimezone().replace(tzinfo=None)


def _wall_clock(value: dt.datetime | None) -> dt.datetime | None:
    return None if value is None else value.replace(tzinfo=None)


def _bytes(value: bytes | None) -> bytearray | None:
    return None if value is None else bytearray(value)


def _variant(value: Mapping[str, bytes] | None) -> Any:
    from pyspark.sql.types import VariantVal

    return None if value is None else VariantVal(value["value"], value["metadata"])


_ATOMIC: dict[str, Convert] = {
    "timestamp": _local,
    "timestamp_ntz": _wall_clock,
    "binary": _bytes,
    "variant": _variant,
}


def _nested_converter(kind: Mapping[str, Any]) -> Convert:
    if kind["type"] == "struct":
        fields = {field["name"]: converter(field["type"]) for field in kind["fields"]}
        return lambda value: None if value is None else {n: f(value.get(n)) for n, f in fields.items()}
    if kind["type"] == "array":
        element = converter(kind["elementType"])
        return lambda value: None if value is None else [element(v) for v in value]
    if kind["type"] == "map":
        key, entry = converter(kind["keyType"]), converter(kind["valueType"])
        return lambda value: None if value is None else {key(k): entry(v) for k, v in value}
    return _same
