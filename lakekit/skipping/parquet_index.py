"""What a Parquet file says of itself: statistics of its row groups, and its page index.

PyArrow reads the footer and the statistics in it. The page index (`ColumnIndex` and `OffsetIndex` of
parquet.thrift: bounds and place of each page) is read here, because PyArrow does not show it.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakekit.errors import LakeError
from lakekit.skipping.thrift import Reader, ThriftError
from lakekit.skipping.values import NO_VALUES, UNKNOWN, Bounds, Column, bounds_of

_MAGIC = b"PAR1"
_TAIL = 1 << 16
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_EPOCH = _EPOCH_UTC.replace(tzinfo=None)
_EPOCH_DAY = _EPOCH.date()
_FORMATS = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d", "BOOLEAN": "<?"}
_MICROS = {"milliseconds": 1000, "microseconds": 1}

# Fields of parquet.thrift
_FILE_SCHEMA, _FILE_GROUPS = 2, 4
_GROUP_COLUMNS = 1
_CHUNK_METADATA, _CHUNK_OFFSET_INDEX, _CHUNK_COLUMN_INDEX = 3, (4, 5), (6, 7)


class DataFileError(LakeError):
    """A data file of a table is missing or cannot be read."""

    @classmethod
    def of(cls, path: str, why: str) -> DataFileError:
        """Builds the error for a file and the reason."""
        return cls(
            f"Data file {path} cannot be read: {why}.",
            "If it was vacuumed while this version was in use, read the latest version; else restore it.",
        )


@dataclass(frozen=True)
class Pages:
    """Where the pages of one column chunk are.

    Attributes:
        offsets, sizes: place of each page in the file, header included, in bytes.
        first_rows: row of the row group at which each page starts, and at the end the number of rows.
    """

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    first_rows: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.offsets)


@dataclass(frozen=True)
class Chunk:
    """One column chunk as the footer describes it.

    Attributes:
        metadata: fields of ``ColumnMetaData`` by number.
        offset_index: offset and length in the file of the pages' places, None if there are none.
        column_index: the same of the pages' bounds.
    """

    metadata: dict[int, Any]
    offset_index: tuple[int, int] | None
    column_index: tuple[int, int] | None


class ParquetIndex:
    """The footer of one file. It holds nothing open, so it can be kept as long as the file stays the same."""

    def __init__(self, footer: bytes) -> None:
        """Reads a footer, without its length and magic number.

        Raises:
            ValueError: if it is no footer.
        """
        tail = footer + struct.pack("<I", len(footer)) + _MAGIC
        self.metadata: pq.FileMetaData = pq.read_metadata(pa.BufferReader(tail))
        self.size = len(footer)
        self._footer: bytes | None = footer
        self._groups: list[Any] = []
        self._schema: list[bytes] = []
        self._pages: dict[tuple[int, int], Pages | None] = {}
        self._group_bounds: dict[tuple[int, Column, bool], Bounds] = {}
        self._page_bounds: dict[tuple[int, int, Column, bool], tuple[Bounds, ...] | None] = {}
        schema = self.metadata.schema
        self._leaves = {schema.column(i).path.lower(): i for i in range(self.metadata.num_columns)}
        self._decoders: dict[int, Callable[[Any], Any] | None] = {}

    @cached_property
    def group_starts(self) -> tuple[int, ...]:
        """For each row group the row of the file that it starts with."""
        rows = (self.metadata.row_group(group).num_rows for group in range(self.metadata.num_row_groups))
        return tuple(itertools.accumulate(rows, initial=0))[:-1]

    @cached_property
    def row_bytes(self) -> dict[str, float]:
        """For each top-level column, its name in lower case, how many bytes a row takes on average, not compressed."""
        rows = max(self.metadata.num_rows, 1)
        found: dict[str, float] = {}
        for group in map(self.metadata.row_group, range(self.metadata.num_row_groups)):
            for chunk in map(group.column, range(group.num_columns)):
                name = chunk.path_in_schema.partition(".")[0].lower()
                found[name] = found.get(name, 0) + chunk.total_uncompressed_size / rows
        return found

    @classmethod
    def read(cls, source: pa.NativeFile, path: str) -> ParquetIndex:
        """Reads the footer of an open file; usually one read.

        Args:
            source: the file.
            path: its name, for errors.

        Raises:
            DataFileError: if it is no Parquet file.
        """
        size = source.size()
        tail = source.read_at(min(size, _TAIL), max(size - _TAIL, 0))
        if len(tail) < 12 or tail[-4:] != _MAGIC:
            raise DataFileError.of(path, "it is no Parquet file")
        length = struct.unpack("<I", tail[-8:-4])[0]
        if length + 8 > size:
            raise DataFileError.of(path, "it is cut off")
        if length + 8 > len(tail):
            tail = source.read_at(length + 8, size - length - 8)
        try:
            return cls(tail[-8 - length : -8])
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DataFileError.of(path, f"its footer is damaged ({str(error).splitlines()[0]})") from error

    @property
    def weight(self) -> int:
        """A rough size in memory, in bytes, page indexes included."""
        return 4096 + 20 * self.size

    def leaf(self, path: tuple[str, ...]) -> int | None:
        """Returns the number of the leaf column at a path of names in any case, None if there is none."""
        return self._leaves.get(".".join(path).lower())

    def flat_leaf(self, name: str) -> int | None:
        """Returns the number of a top-level column that is neither nested nor repeated, else None."""
        leaf = self.leaf((name,))
        if leaf is None:
            return None
        column = self.metadata.schema.column(leaf)
        plain = column.max_repetition_level == 0 and column.max_definition_level <= 1
        return leaf if plain and column.path.lower() == name.lower() else None

    def group_bounds(self, group: int, column: Column, nan: bool = True) -> Bounds:
        """Returns what the footer says of a column in a row group.

        Args:
            group: number of the row group.
            column: the column.
            nan: whether the file may hold NaN in it.
        """
        key = (group, column, nan)
        if key not in self._group_bounds:
            self._group_bounds[key] = self._read_group_bounds(*key)
        return self._group_bounds[key]

    def _read_group_bounds(self, group: int, column: Column, nan: bool) -> Bounds:
        leaf = self.leaf(column.path)
        if leaf is None or column.kind is None or self._repeated(leaf):
            return UNKNOWN
        statistics = self.metadata.row_group(group).column(leaf).statistics
        if statistics is None:
            return UNKNOWN
        nulls = statistics.null_count if statistics.has_null_count else None
        rows = self.metadata.row_group(group).num_rows
        if nulls is not None and nulls == rows:
            return NO_VALUES
        has_nulls = None if nulls is None else nulls > 0
        nan = nan and column.kind in ("float", "double")
        decode = self._decoder(leaf)
        if decode is None or not statistics.has_min_max:
            return Bounds(nulls=has_nulls, nan=nan)
        low, high = decode(statistics.min_raw), decode(statistics.max_raw)
        return bounds_of(low, high, column.kind, has_nulls, nan, cut=False)

    def pages(self, source: pa.NativeFile, group: int, leaf: int) -> Pages | None:
        """Returns the pages of a column chunk, or None if the file does not say where they are."""
        key = (group, leaf)
        if key not in self._pages:
            self._pages[key] = self._read_pages(source, group, leaf)
        return self._pages[key]

    def page_bounds(
        self, source: pa.NativeFile, group: int, leaf: int, column: Column, nan: bool = True
    ) -> tuple[Bounds, ...] | None:
        """Returns the bounds of each page of a column chunk, or None if the file does not say.

        Args:
            source: the open file.
            group: number of the row group.
            leaf: number of the leaf column.
            column: the table's column, whose type the bounds get.
            nan: whether the file may hold NaN in it.
        """
        key = (group, leaf, column, nan)
        if key not in self._page_bounds:
            self._page_bounds[key] = self._read_page_bounds(source, *key)
        return self._page_bounds[key]

    def chunk(self, group: int, leaf: int) -> Chunk:
        """Returns the description of a column chunk."""
        self._parse()
        if isinstance(self._groups[group], bytes):
            self._groups[group] = [
                _chunk(c) for c in Reader(self._groups[group]).read_struct()[_GROUP_COLUMNS]
            ]
        found: Chunk = self._groups[group][leaf]
        return found

    def leaf_schema(self, leaf: int) -> bytes:
        """Returns the encoded ``SchemaElement`` of a leaf column."""
        self._parse()
        return self._schema[leaf]

    def _parse(self) -> None:
        footer = self._footer
        if footer is None:
            return
        fields = Reader(footer).read_struct(raw_lists=(_FILE_SCHEMA, _FILE_GROUPS))
        # Only groups have children (field 5).
        self._schema = [e for e in fields[_FILE_SCHEMA][1:] if not Reader(e).read_struct().get(5)]
        self._groups = fields[_FILE_GROUPS]
        # Last, because other threads may be here too.
        self._footer = None

    def _repeated(self, leaf: int) -> bool:
        return bool(self.metadata.schema.column(leaf).max_repetition_level)

    def _decoder(self, leaf: int) -> Callable[[Any], Any] | None:
        if leaf not in self._decoders:
            self._decoders[leaf] = _decoder(self.metadata.schema.column(leaf))
        return self._decoders[leaf]

    def _read_pages(self, source: pa.NativeFile, group: int, leaf: int) -> Pages | None:
        try:
            chunk = self.chunk(group, leaf)
            if chunk.offset_index is None:
                return None
            places = Reader(_read(source, chunk.offset_index)).read_struct()[1]
            offsets, sizes, firsts = (tuple(place[i] for place in places) for i in (1, 2, 3))
        except (ThriftError, KeyError):
            return None
        rows = self.metadata.row_group(group).num_rows
        if not places or firsts[0] != 0 or list(firsts) != sorted(set(firsts)) or firsts[-1] >= rows:
            return None
        return Pages(offsets, sizes, (*firsts, rows))

    def _read_page_bounds(
        self, source: pa.NativeFile, group: int, leaf: int, column: Column, nan: bool
    ) -> tuple[Bounds, ...] | None:
        chunk, pages = self.chunk(group, leaf), self.pages(source, group, leaf)
        decode = self._decoder(leaf)
        if chunk.column_index is None or pages is None or column.kind is None or decode is None:
            return None
        if self._repeated(leaf):
            return None
        try:
            fields = Reader(_read(source, chunk.column_index)).read_struct()
            lows, highs, empty = fields[2], fields[3], fields[1]
        except (ThriftError, KeyError):
            return None
        null_counts = fields.get(5) or [None] * len(empty)
        if not len(pages) == len(empty) == len(lows) == len(highs) == len(null_counts):
            return None
        physical = self.metadata.schema.column(leaf).physical_type
        nan = nan and column.kind in ("float", "double")
        bounds = []
        for page, nulls in enumerate(null_counts):
            low, high = (decode(_physical(raw[page], physical)) for raw in (lows, highs))
            some = bounds_of(low, high, column.kind, None if nulls is None else nulls > 0, nan, cut=False)
            bounds.append(NO_VALUES if empty[page] else some)
        return tuple(bounds)


def _read(source: pa.NativeFile, place: tuple[int, int]) -> bytes:
    offset, length = place
    data: bytes = source.read_at(length, offset)
    return data


def _chunk(fields: dict[int, Any]) -> Chunk:
    def place(numbers: tuple[int, int]) -> tuple[int, int] | None:
        offset, length = (fields.get(n) for n in numbers)
        return (offset, length) if offset and length else None

    return Chunk(fields[_CHUNK_METADATA], place(_CHUNK_OFFSET_INDEX), place(_CHUNK_COLUMN_INDEX))


def _physical(raw: bytes, physical: str) -> Any:
    """Returns a bound of the page index (PLAIN encoding) as PyArrow returns the same bound of a footer."""
    layout = _FORMATS.get(physical)
    if layout is None:
        return raw
    return struct.unpack(layout, raw)[0] if len(raw) == struct.calcsize(layout) else None


def _decoder(column: pq.ColumnSchema) -> Callable[[Any], Any] | None:
    """Returns the function from a physical to a logical value, None if values have no order."""
    physical, logical = column.physical_type, column.logical_type.type
    if logical == "DECIMAL":
        return _decimal_decoder(column.scale)
    if logical == "TIMESTAMP" and physical == "INT64":
        return _timestamp_decoder(json.loads(column.logical_type.to_json()))
    if logical == "DATE":
        return _guarded(lambda days: _EPOCH_DAY + dt.timedelta(days=days))
    if logical in ("STRING", "ENUM"):
        return _guarded(lambda raw: raw.decode("utf-8"))
    if logical == "INT":
        signed = json.loads(column.logical_type.to_json())["isSigned"]
        return _guarded(lambda value: value) if signed else None
    if logical == "NONE" and physical in ("INT32", "INT64", "FLOAT", "DOUBLE", "BOOLEAN", "BYTE_ARRAY"):
        return _guarded(lambda value: value)
    return None


def _guarded(decode: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Makes what cannot be decoded count as not known."""

    def guarded(value: Any) -> Any:
        try:
            return None if value is None else decode(value)
        except (ValueError, OverflowError, TypeError):
            return None

    return guarded


def _decimal_decoder(scale: int) -> Callable[[Any], Any]:
    def decode(value: Any) -> Any:
        unscaled = int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else value
        # Built from digits, because arithmetic would round to the context's 28.
        digits = tuple(int(d) for d in str(abs(unscaled)))
        return Decimal((int(unscaled < 0), digits, -scale))

    return _guarded(decode)


def _timestamp_decoder(logical: dict[str, Any]) -> Callable[[Any], Any] | None:
    times = _MICROS.get(logical["timeUnit"])
    if times is None:
        return None  # readers cut nanoseconds, each in its own way
    epoch = _EPOCH_UTC if logical["isAdjustedToUTC"] else _EPOCH
    return _guarded(lambda value: epoch + dt.timedelta(microseconds=value * times))
