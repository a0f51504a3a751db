"""Column statistics of a data file as Delta keeps them in the log: made from Arrow, read as Python values."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

PREFIX_LENGTH = 32
"""Characters of a text that statistics keep, Delta's default."""

_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DAY_MICROS = 24 * 3600 * 1_000_000
_MIN_DAY = (date.min - _EPOCH_DAY).days
_MAX_DAY = (date.max - _EPOCH_DAY).days
_HIGHEST = "\U0010ffff"


class StatsCollector:
    """Collects the statistics of one data file from its record batches.

    Args:
        schema: the columns of the file, without partition columns.
        full_string_columns: top-level text columns whose bounds are kept whole; others are cut to 32
            characters.
    """

    def __init__(self, schema: pa.Schema, full_string_columns: Collection[str] = ()) -> None:
        self.num_records = 0
        self._columns = [_column_for(field, field.name in full_string_columns) for field in schema]

    def update(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Adds the rows of a batch that has the collector's columns in its order."""
        self.num_records += batch.num_rows
        for index, column in enumerate(self._columns):
            column.update(batch.column(index))

    def to_json(self, tight: bool = True) -> str:
        """Returns the ``stats`` text of an add action.

        Args:
            tight: whether the bounds are met by live rows; false once rows were removed by a deletion vector.
        """
        parts = [f'"numRecords":{self.num_records}']
        for key, part in (("minValues", "low"), ("maxValues", "high"), ("nullCount", "nulls")):
            parts.append(f'"{key}":{_object(self._columns, part) or "{}"}')
        parts.append(f'"tightBounds":{"true" if tight else "false"}')
        return "{" + ",".join(parts) + "}"


def collect_stats(table: pa.Table, full_string_columns: Collection[str] = ()) -> str:
    """Returns the ``stats`` text for a whole table; see `StatsCollector`."""
    collector = StatsCollector(table.schema, full_string_columns)
    for batch in table.to_batches():
        collector.update(batch)
    return collector.to_json()


class _Column:
    """Null count of one column; the base of those that have bounds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nulls = 0

    def update(self, values: pa.Array | pa.ChunkedArray) -> None:
        self._nulls += values.null_count

    def low(self) -> str | None:
        """The lower bound as JSON text."""
        return None

    def high(self) -> str | None:
        """The upper bound as JSON text."""
        return None

    def nulls(self) -> str | None:
        """The count of nulls as JSON text."""
        return str(self._nulls)


class _Unknown(_Column):
    """A column about which nothing is said."""

    def update(self, values: pa.Array | pa.ChunkedArray) -> None:
        pass

    def nulls(self) -> str | None:
        return None


class _Nested(_Column):
    """A struct: its fields have the statistics."""

    def __init__(self, field: pa.Field) -> None:
        super().__init__(field.name)
        self._children = [_column_for(child, False) for child in field.type]

    def update(self, values: pa.Array | pa.ChunkedArray) -> None:
        for index, child in enumerate(self._children):
            child.update(pc.struct_field(values, [index]))

    def low(self) -> str | None:
        return _object(self._children, "low")

    def high(self) -> str | None:
        return _object(self._children, "high")

    def nulls(self) -> str | None:
        return _object(self._children, "nulls")


class _Ordered(_Column):
    """A column with bounds; subclasses say how a bound is written."""

    def __init__(self, field: pa.Field) -> None:
        super().__init__(field.name)
        self._low: Any = None
        self._high: Any = None

    def update(self, values: pa.Array | pa.ChunkedArray) -> None:
        super().update(values)
        bounds = pc.min_max(self._comparable(values))
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if low is not None:
            self._low = low if self._low is None else min(self._low, low)
            self._high = high if self._high is None else max(self._high, high)

    def _comparable(self, values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        return values

    def low(self) -> str | None:
        return None if self._low is None else self._write_low(self._low)

    def high(self) -> str | None:
        return None if self._high is None else self._write_high(self._high)

    def _write_low(self, value: Any) -> str | None:
        return str(value)

    def _write_high(self, value: Any) -> str | None:
        return self._write_low(value)


class _Float(_Ordered):
    def __init__(self, field: pa.Field) -> None:
        super().__init__(field)
        self._has_nan = False

    def update(self, values: pa.Array | pa.ChunkedArray) -> None:
        super().update(values)
        self._has_nan = self._has_nan or bool(pc.any(pc.is_nan(values)).as_py())

    def _write_low(self, value: Any) -> str | None:
        # Spark orders NaN above all numbers, Arrow ignores it; JSON has neither NaN nor infinities.
        return repr(value) if math.isfinite(value) and not self._has_nan else None


class _Decimal(_Ordered):
    def _write_low(self, value: Any) -> str | None:
        return format(value, "f")


class _Date(_Ordered):
    def _comparable(self, values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        return values.cast(pa.int32())

    def _write_low(self, value: Any) -> str | None:
        if not _MIN_DAY <= value <= _MAX_DAY:
            return None
        return f'"{(_EPOCH_DAY + timedelta(days=value)).isoformat()}"'


class _Timestamp(_Ordered):
    """Delta's statistics have milliseconds: the lower bound is rounded down, the upper one up."""

    def __init__(self, field: pa.Field) -> None:
        super().__init__(field)
        self._suffix = "Z" if field.type.tz is not None else ""
        self._unit = pa.timestamp("us", field.type.tz)

    def _comparable(self, values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        return values.cast(self._unit).cast(pa.int64())

    def _write_low(self, value: Any) -> str | None:
        return self._write(value // 1000 * 1000)

    def _write_high(self, value: Any) -> str | None:
        return self._write(-(-value // 1000) * 1000)

    def _write(self, micros: int) -> str | None:
        if not _MIN_DAY * _DAY_MICROS <= micros < (_MAX_DAY + 1) * _DAY_MICROS:
            return None
        moment = (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None)
        return f'"{moment.isoformat(timespec="milliseconds")}{self._suffix}"'


class _Text(_Ordered):
    def __init__(self, field: pa.Field, full: bool) -> None:
        super().__init__(field)
        self._full = full

    def _comparable(self, values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        kind = values.type
        return values.cast(kind.value_type) if pa.types.is_dictionary(kind) else values

    def _write_low(self, value: Any) -> str | None:
        return json.dumps(value if self._full else value[:PREFIX_LENGTH], ensure_ascii=False)

    def _write_high(self, value: Any) -> str | None:
        bound = value if self._full else upper_prefix(value, PREFIX_LENGTH)
        return None if bound is None else json.dumps(bound, ensure_ascii=False)


def upper_prefix(text: str, length: int) -> str | None:
    """Returns a text of about `length` characters that sorts at or after `text` and all it is a prefix of.

    As Delta does, it is the prefix and one character that sorts after the first one cut off; None if there
    is none.
    """
    if len(text) <= length:
        return text
    following = text[length]
    if following < "\x7f":
        return text[:length] + "\x7f"
    return text[:length] + _HIGHEST if following < _HIGHEST else None


def _object(columns: list[_Column], part: str) -> str | None:
    texts = [(column.name, getattr(column, part)()) for column in columns]
    found = [f"{json.dumps(name, ensure_ascii=False)}:{text}" for name, text in texts if text is not None]
    return "{" + ",".join(found) + "}" if found else None


def _column_for(field: pa.Field, full: bool) -> _Column:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_struct(kind):
        return _Unknown(field.name) if _may_be_variant(kind) else _Nested(field)
    if pa.types.is_integer(kind):
        return _Ordered(field)
    if pa.types.is_floating(kind):
        return _Float(field)
    if pa.types.is_decimal(kind):
        return _Decimal(field)
    if pa.types.is_date(kind):
        return _Date(field)
    if pa.types.is_timestamp(kind):
        return _Timestamp(field)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _Text(field, full)
    return _Column(field.name)


def _may_be_variant(kind: pa.StructType) -> bool:
    # A variant arrives as a struct of two binaries. Its statistics would have another shape than a struct's,
    # and Spark drops all statistics of a file where one has the wrong shape.
    return {child.name for child in kind} == {"value", "metadata"} and all(
        pa.types.is_binary(child.type) or pa.types.is_large_binary(child.type) for child in kind
    )


ColumnTypes = Mapping[str, Any]
"""Type of each column as in Delta's schema JSON: a text such as ``decimal(10,2)``, a dict if nested."""


def column_types(schema_json: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the type of each field of a Delta schema or struct type, by name."""
    return {field["name"]: _field_type(field) for field in schema_json["fields"]}


def _field_type(field: Mapping[str, Any]) -> Any:
    # A collated text is a "string" in the schema; its order is not that of the bounds.
    return "collated string" if "__COLLATIONS" in field.get("metadata", {}) else field["type"]


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Statistics of one data file, typed by the table's schema.

    `num_records` counts all rows of the file, removed ones too. If not `tight`, the bounds may be wider than
    the live rows' and the null counts higher.
    """

    num_records: int | None
    tight: bool
    _low: Mapping[str, Any]
    _high: Mapping[str, Any]
    _nulls: Mapping[str, Any]
    _types: ColumnTypes

    @classmethod
    def parse(cls, stats: str | None, types: ColumnTypes) -> ColumnStats:
        """Reads the ``stats`` text of an add action; what cannot be read counts as not there."""
        fields: Any = None
        if stats:
            try:
                fields = json.loads(stats, parse_float=Decimal)
            except ValueError:
                fields = None
        if not isinstance(fields, dict):
            fields = {}
        return cls(
            fields.get("numRecords"),
            fields.get("tightBounds", True) is not False,
            fields.get("minValues") or {},
            fields.get("maxValues") or {},
            fields.get("nullCount") or {},
            types,
        )

    def range(self, column: str | tuple[str, ...]) -> tuple[Any, Any] | None:
        """Returns bounds (min, max) of the column's values that are not null, or None if they are not known.

        The bounds hold for every row, but need not be values: texts may be cut, timestamps rounded. Dates
        are `datetime.date`, timestamps are aware in UTC (``timestamp_ntz``: naive), decimals `Decimal`.

        Args:
            column: a column, or the path of a field in nested structs.
        """
        path = (column,) if isinstance(column, str) else column
        kind = _type_at(self._types, path)
        low, high = _value_at(self._low, path), _value_at(self._high, path)
        if kind is None or low is None or high is None:
            return None
        try:
            return read_value(low, kind), _read_high(high, kind)
        except (ValueError, ArithmeticError, TypeError, AttributeError):
            return None

    def null_count(self, column: str | tuple[str, ...]) -> int | None:
        """Returns how many rows have a null in the column (an upper bound if not tight), or None."""
        path = (column,) if isinstance(column, str) else column
        count = _value_at(self._nulls, path)
        return count if isinstance(count, int) else None


def _value_at(values: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(values, Mapping):
            return None
        values = values.get(name)
    return values


def _type_at(types: ColumnTypes, path: tuple[str, ...]) -> str | None:
    kind: Any = types.get(path[0])
    for name in path[1:]:
        if not isinstance(kind, Mapping) or kind.get("type") != "struct":
            return None
        kind = column_types(kind).get(name)
    return kind if isinstance(kind, str) else None


_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_BOOLEANS = ("false", "true")


def read_value(value: Any, kind: str) -> Any:
    """Reads a value of the log (a statistic or a partition value) as the Python value of a Delta type.

    Raises:
        ValueError: if it is no value of that type, or of a type without an order.
    """
    if kind in _INTEGERS:
        return int(value)
    if kind in ("float", "double"):
        # A float's shortest text is another double than the float itself.
        number = float(np.float32(value)) if kind == "float" else float(value)
        if math.isnan(number):
            raise ValueError("NaN is no bound")
        return number
    if kind.startswith("decimal"):
        return Decimal(value)
    if kind == "date":
        return date.fromisoformat(value[:10])
    if kind == "timestamp":
        moment = _moment(value)
        return (
            moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)
        )
    if kind == "timestamp_ntz":
        return _moment(value).replace(tzinfo=None)
    if kind == "boolean":
        return _BOOLEANS.index(str(value).lower()) == 1
    if kind == "string":
        return str(value)
    if kind == "binary":
        return value.encode("utf-8", "surrogatepass")
    raise ValueError(f"values of type {kind} have no order")


def _read_high(value: Any, kind: str) -> Any:
    high = read_value(value, kind)
    if isinstance(high, datetime) and high.microsecond % 1000 == 0:
        # Spark cuts the maximum to milliseconds.
        return high + timedelta(microseconds=999)
    return high


def _moment(text: str) -> datetime:
    # Python 3.10 reads neither "Z" nor other than 3 or 6 decimals.
    text = text.strip().replace("Z", "+00:00")
    head, dot, tail = text.partition(".")
    if dot:
        digits = len(tail) - len(tail.lstrip("0123456789"))
        tail = tail[:digits][:6].ljust(6, "0") + tail[digits:]
    return datetime.fromisoformat(head + dot + tail)
