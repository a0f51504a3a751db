"""Rows as the JSON of records, and back; `docs/log-format.md` has the form of each type."""

from __future__ import annotations

import base64
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Values = list[Any]


def to_json(rows: pa.Table, columns: Sequence[str] | None = None) -> list[bytes]:
    """Returns each row as a JSON object by column name.

    Raises:
        ValueError: for a value that JSON cannot hold, such as a date after the year 9999.
    """
    names = list(rows.schema.names if columns is None else columns)
    plain = [_plain(rows.column(name).combine_chunks()) for name in names]
    return _dumped(dict(zip(names, row, strict=True)) for row in zip(*plain, strict=True))


def keys_to_json(rows: pa.Table, key: Sequence[str]) -> list[bytes]:
    """Returns the primary key of each row as a JSON array, or null without a key."""
    plain = [_plain(rows.column(name).combine_chunks()) for name in key]
    return _dumped(zip(*plain, strict=True))


def from_json(values: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    """Returns rows from the JSON of records; columns that a record lacks are null, unknown ones are left out.

    Raises:
        ValueError: if a text is no JSON, or a value does not fit its column.
    """
    import orjson

    objects = [orjson.loads(value) for value in values]
    columns = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        columns.append(_typed([each.get(name) for each in objects], kind))
    return pa.Table.from_arrays(columns, schema=schema)


def _dumped(objects: Iterable[Any]) -> list[bytes]:
    import orjson

    # Copied: what orjson returns keeps 4 KiB of memory, however short it is, and getting those takes most of the time.
    return [orjson.dumps(each).decode().encode() for each in objects]


def _plain(column: pa.Array) -> Values:
    """Returns a column as values that JSON has."""
    kind = column.type
    if pa.types.is_integer(kind) and not column.null_count:
        return column.to_numpy().tolist()  # several times as fast as to_pylist()
    if pa.types.is_floating(kind):
        values = column.to_pylist()
        finite = pc.all(pc.is_finite(column)).as_py()
        return values if finite is not False else [_number(value) for value in values]
    if pa.types.is_timestamp(kind):
        texts = column.cast(pa.timestamp("us", kind.tz)).cast(pa.timestamp("us")).cast(pa.string())
        texts = pc.replace_substring(texts, " ", "T")
        return (pc.binary_join_element_wise(texts, "Z", "") if kind.tz else texts).to_pylist()
    if pa.types.is_date(kind):
        return column.cast(pa.string()).to_pylist()
    if pa.types.is_duration(kind):
        return column.cast(pa.int64()).to_pylist()
    if pa.types.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in column.to_pylist()]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [None if v is None else base64.b64encode(v).decode() for v in column.to_pylist()]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _texts(column)
    if pa.types.is_struct(kind):
        return _plain_structs(column)
    if pa.types.is_map(kind):
        return _plain_maps(column)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _grouped(column, _plain(column.values))
    return column.to_pylist()


def _texts(column: pa.Array) -> Values:
    try:
        return column.to_pylist()
    except UnicodeDecodeError:  # another program may have written bytes that are no text
        return [
            None if v is None else v.decode(errors="replace") for v in column.cast(pa.binary()).to_pylist()
        ]


def _number(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _plain_structs(column: pa.StructArray) -> Values:
    names = [field.name for field in column.type]
    parts = [_plain(column.field(i)) for i in range(column.type.num_fields)]
    there = column.is_valid().to_pylist()
    rows = zip(*parts, strict=True)
    return [
        dict(zip(names, row, strict=True)) if valid else None for row, valid in zip(rows, there, strict=True)
    ]


def _plain_maps(column: pa.MapArray) -> Values:
    keys, items = _plain(column.keys), _plain(column.items)
    if pa.types.is_string(column.type.key_type):
        return [None if e is None else dict(e) for e in _grouped(column, list(zip(keys, items, strict=True)))]
    return _grouped(column, [{"key": k, "value": v} for k, v in zip(keys, items, strict=True)])


def _grouped(column: pa.ListArray | pa.MapArray, elements: Values) -> Values:
    """Returns the elements of each list; offsets count from the start of the child array."""
    offsets = column.offsets.to_pylist()
    there = column.is_valid().to_pylist()
    return [elements[offsets[i] : offsets[i + 1]] if valid else None for i, valid in enumerate(there)]


def _typed(values: Values, kind: pa.DataType) -> pa.Array:
    """Returns values of JSON as an array of a type."""
    try:
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return pa.array(values, pa.string()).cast(kind)
        read = _value_reader(kind)
        if read is not _same:
            values = list(map(_or_null(read) if None in values else read, values))
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ArithmeticError) as error:
        raise ValueError(str(error)) from None


def _reader(kind: pa.DataType) -> Callable[[Any], Any]:
    """Returns the function that turns a value of JSON into what `pa.array` takes for a type."""
    return _or_null(_value_reader(kind))


def _or_null(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _value_reader(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_integer(kind):
        return operator.index  # refuses 1.5, where Arrow would cut it
    if pa.types.is_floating(kind):
        return float
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return lambda text: pa.scalar(text).cast(kind).value
    if pa.types.is_decimal(kind):
        return Decimal
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return base64.b64decode
    if pa.types.is_struct(kind):
        fields = {field.name: _reader(field.type) for field in kind}
        return lambda value: {name: read(value.get(name)) for name, read in fields.items()}
    if pa.types.is_map(kind):
        return _map_reader(kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = _reader(kind.value_type)
        return lambda value: [element(each) for each in value]
    return _same


def _map_reader(kind: pa.MapType) -> Callable[[Any], Any]:
    key, item = _reader(kind.key_type), _reader(kind.item_type)
    if pa.types.is_string(kind.key_type):
        return lambda value: [(k, item(v)) for k, v in value.items()]
    return lambda value: [(key(each["key"]), item(each["value"])) for each in value]


def _same(value: Any) -> Any:
    return value
