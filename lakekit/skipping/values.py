"""Types and values of columns, and bounds on them, in the form in which predicates are judged.

Spark compares values of unlike types by casting them to a common one, which may round. A value that rounding
could blur becomes an interval, so that what is concluded from it stays true.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from lakekit.storage.stats import read_value

INTEGER_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_ORDERED = {
    *INTEGER_BITS,
    "float",
    "double",
    "string",
    "binary",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)\Z")
_CHAR = re.compile(r"char\((\d+)\)\Z")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_EXACT_IN_DOUBLE = 1 << 53
_HAS_ZONE = re.compile(r"(Z|[+-]\d{2}:?\d{2})\Z")


@dataclass(frozen=True)
class Column:
    """A column, or a field in nested structs.

    Attributes:
        path: its name, or the names from the top-level column down.
        kind: its type as in Delta's schema JSON, ``char(n)`` for padded text; None for types without an
            order.
    """

    path: tuple[str, ...]
    kind: str | None

    @property
    def name(self) -> str:
        """The name with dots between the parts."""
        return ".".join(self.path)


class Columns(Mapping[str, Column]):
    """The columns of a table by name; names are found in any case, fields of structs by their dotted path."""

    def __init__(self, schema_json: Mapping[str, Any]) -> None:
        """Reads a Delta schema."""
        self._by_name: dict[str, Column] = {}
        self.top_level: tuple[str, ...] = tuple(f["name"] for f in schema_json["fields"])
        for column in _walk(schema_json, ()):
            # A top-level column whose name has a dot comes before a field of a struct.
            if len(column.path) == 1 or column.name.lower() not in self._by_name:
                self._by_name[column.name.lower()] = column

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return (column.name for column in self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)


def _walk(struct: Mapping[str, Any], parents: tuple[str, ...]) -> Iterator[Column]:
    for part in struct["fields"]:
        path = (*parents, part["name"])
        yield Column(path, _kind(part["type"], part.get("metadata") or {}))
        if isinstance(part["type"], Mapping) and part["type"].get("type") == "struct":
            yield from _walk(part["type"], path)


def _kind(kind: Any, metadata: Mapping[str, Any]) -> str | None:
    if not isinstance(kind, str) or metadata.get("__COLLATIONS"):
        return None
    declared = metadata.get("__CHAR_VARCHAR_TYPE_STRING", kind)
    if _CHAR.match(declared):
        return str(declared)
    if kind == "decimal":
        return "decimal(10,0)"
    return kind if kind in _ORDERED or _DECIMAL.match(kind) else None


def char_length(kind: str) -> int | None:
    """Returns n for ``char(n)``, whose texts are stored padded with blanks, and None for other types."""
    match = _CHAR.match(kind)
    return int(match[1]) if match else None


def arrow_type(kind: str) -> pa.DataType:
    """Returns the Arrow type of a column of this kind in data files."""
    decimal = _DECIMAL.match(kind)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if char_length(kind) is not None:
        return pa.string()
    return {
        "byte": pa.int8(),
        "short": pa.int16(),
        "integer": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }[kind]


@dataclass(frozen=True)
class Bounds:
    """What is known of a column's values in some rows (a file, a row group, a page).

    Attributes:
        low, high: no value that is not null is below `low` or above `high`, NaN apart; None if not known.
        nulls: whether there are nulls; None if not known.
        only_nulls: whether it is known that there is nothing else.
        nan: whether there may be NaN.
        prefix: whether `high` is a prefix, so that longer texts that start with it are not above it.
    """

    low: Any = None
    high: Any = None
    nulls: bool | None = None
    only_nulls: bool = False
    nan: bool = True
    prefix: bool = False

    def may_be_in(self, low: Any, high: Any) -> bool:
        """Tells whether a value from `low` to `high`, both included, may be among the rows."""
        return self.may_be_at_least(low) and self.may_be_at_most(high)

    def may_be_at_most(self, value: Any, strictly: bool = False) -> bool:
        """Tells whether a value up to `value` (strictly: below it) may be among the rows."""
        if self.only_nulls:
            return False
        return self.low is None or bool(self.low < value or (not strictly and self.low == value))

    def may_be_at_least(self, value: Any, strictly: bool = False) -> bool:
        """Tells whether a value, NaN apart, from `value` up (strictly: above it) may be among the rows."""
        if self.only_nulls:
            return False
        if self.high is None:
            return True
        if self.prefix:
            return bool(value[: len(self.high)] <= self.high)
        return bool(self.high > value or (not strictly and self.high == value))


UNKNOWN = Bounds()
NO_VALUES = Bounds(nulls=True, only_nulls=True, nan=False)


def bounds_of(low: Any, high: Any, kind: str, nulls: bool | None, nan: bool, cut: bool = True) -> Bounds:
    """Makes bounds from statistics of a file, whose values may be of another type than the column's.

    Args:
        low: the smallest value, or one below it.
        high: the largest value, or one above it.
        kind: type of the column.
        nulls: whether there are nulls, None if not known.
        nan: whether there may be NaN beyond the bounds.
        cut: whether a text of 32 characters or more may be a cut one.
    """
    low, high = _as_kind(low, kind), _as_kind(high, kind)
    if low is None or high is None:
        return Bounds(nulls=nulls, nan=nan)
    if char_length(kind) is not None:
        # Readers pad the text, which not every writer has done.
        return Bounds(low.rstrip(" "), None, nulls, False, nan)
    prefix = cut and isinstance(high, str) and len(high) >= 32
    return Bounds(low, high[:32] if prefix else high, nulls, False, nan, prefix)


def _as_kind(value: Any, kind: str) -> Any:
    """Returns a statistic as a value comparable with those of the column, or None if it is not."""
    if kind in INTEGER_BITS:
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if kind in ("float", "double"):
        if not isinstance(value, float | int | Decimal) or math.isnan(value):
            return None
        # Spark writes the shortest text of a float, which as a double is another number.
        return float(np.float32(value)) if kind == "float" else float(value)
    if kind.startswith("decimal"):
        return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
    if kind == "date":
        return value if isinstance(value, dt.date) and not isinstance(value, dt.datetime) else None
    if kind in ("timestamp", "timestamp_ntz"):
        zoned = isinstance(value, dt.datetime) and value.tzinfo is not None
        return value if isinstance(value, dt.datetime) and zoned == (kind == "timestamp") else None
    expected = {"boolean": bool, "binary": bytes}.get(kind, str)
    return value if isinstance(value, expected) else None


def partition_bounds(text: str | None, kind: str | None) -> Bounds:
    """Returns the bounds of a partition column from the text of its value in the log."""
    if text is None:
        return NO_VALUES
    # An empty text is null for Delta, but may be an empty text for other writers.
    if text == "" or kind is None:
        return UNKNOWN
    if kind == "timestamp" and not _HAS_ZONE.search(text):
        return Bounds(nulls=False)  # in the time zone of whoever wrote it
    try:
        length = char_length(kind)
        value = _as_kind(read_value(text, kind) if length is None else text.ljust(length), kind)
    except (ValueError, ArithmeticError, KeyError):
        return Bounds(nulls=False)
    return Bounds(nulls=False) if value is None else Bounds(value, value, False, nan=False)


class Unusable(Exception):  # noqa: N818 - an answer, not an error of anybody
    """A value that cannot be compared with a column's statistics; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Interval:
    """All values of a column that Spark may take for equal to a given one; usually just that.

    Attributes:
        low, high: smallest and largest such value.
        exact: the one value, or None if there may be several or none.
        empty: whether the column's type cannot hold the value.
    """

    low: Any
    high: Any
    exact: Any = None
    empty: bool = False


def interval(value: Any, kind: str) -> Interval:
    """Returns what values of a column of type `kind` may equal a value in a predicate.

    Raises:
        Unusable: if that depends on casts that statistics know nothing of.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if kind in INTEGER_BITS:
        return _integer_interval(value, kind)
    if kind in ("float", "double"):
        return _float_interval(value, kind)
    if kind.startswith("decimal"):
        return _decimal_interval(value, kind)
    if kind == "date" and isinstance(value, str) and _ISO_DATE.match(value):
        value = _date(value)
    if kind == "binary" and isinstance(value, bytearray | memoryview):
        value = bytes(value)
    length = char_length(kind)
    if length is not None and isinstance(value, str):
        if len(value) > length:
            raise Unusable(f"a text longer than {kind}")
        # Whether a text was padded before its row went into a bucket is up to the writer.
        return Interval(value.ljust(length), value.ljust(length))
    if _as_kind(value, kind) is None:
        raise Unusable(f"a value of type {type(value).__name__} for a column of type {kind}")
    return Interval(value, value, value)


def _date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise Unusable(f"'{text}' is no date") from None


def _integer_interval(value: Any, kind: str) -> Interval:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise Unusable(f"a value of type {type(value).__name__} for a column of type {kind}")
    if isinstance(value, float) and not abs(value) < _EXACT_IN_DOUBLE:
        raise Unusable("a float that whole numbers are rounded to")
    if isinstance(value, Decimal) and not value.is_finite():
        raise Unusable("a number that is not finite")
    limit = 1 << (INTEGER_BITS[kind] - 1)
    if value != int(value) or not -limit <= value < limit:
        return Interval(value, value, empty=True)
    return Interval(int(value), int(value), int(value))


def _float_interval(value: Any, kind: str) -> Interval:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise Unusable(f"a value of type {type(value).__name__} for a column of type {kind}")
    try:
        number = float(value)
    except (OverflowError, InvalidOperation):
        raise Unusable("a number beyond the range of floats") from None
    if math.isnan(number):
        raise Unusable("NaN")
    if kind == "double":
        return Interval(number, number, number)
    with np.errstate(over="ignore"):
        rounded = float(np.float32(number))
    # Whether Spark compares as float or as double depends on the type of the literal, which is not known
    # here.
    low, high = min(number, rounded), max(number, rounded)
    return Interval(low, high, rounded if low == high else None)


def _decimal_interval(value: Any, kind: str) -> Interval:
    if isinstance(value, float) and math.isfinite(value):
        # Spark casts the column to double, where neighbours within half a unit in the last place are equal.
        return Interval(Decimal(math.nextafter(value, -math.inf)), Decimal(math.nextafter(value, math.inf)))
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not Decimal(value).is_finite():
        raise Unusable(f"a value of type {type(value).__name__} for a column of type {kind}")
    number = Decimal(value)
    try:
        pa.scalar(number, arrow_type(kind))
    except pa.ArrowInvalid:
        return Interval(number, number, empty=True)
    return Interval(number, number, number)
