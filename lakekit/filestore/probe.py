"""Finds, in the live files of a bucket, the rows that new keys supersede.

Only key columns (and the sequence field) are read, and only from row groups that the statistics do not rule out.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from lakekit.filestore.keys import Positions, key_columns, within
from lakekit.filestore.matching import match
from lakekit.filestore.result import BucketResult
from lakekit.storage.actions import AddFile
from lakekit.storage.store import Store
from lakekit.storage.vectors import VectorFileWriter, positions_of, read_vector

Range = tuple[Any, Any] | None
"""Smallest and largest value of a column, or None where it is not known."""


@dataclass
class Hits:
    """Live rows of one file that have a key among the new keys.

    Attributes:
        rows: row numbers in the file.
        new: for each the position of the new row.
        sequence: for each the value of the sequence field, when asked for.
    """

    rows: Positions
    new: Positions
    sequence: pa.Array | None


@dataclass
class FileProbe:
    """One live file, opened when first needed; collects the rows that become deleted in it.

    New keys arrive in ascending order, chunk by chunk, so the row group read last is kept for the next chunk.
    """

    store: Store
    file: AddFile
    sort_columns: tuple[str, ...]
    sequence_field: str | None = None
    superseded: list[Positions] = field(default_factory=list)
    _parquet: pq.ParquetFile | None = None
    _groups: list[list[Range]] = field(default_factory=list)
    _vector: BitMap64 | None = None
    _dead: Positions | None = None
    _cached: tuple[int, _LiveRows] | None = None

    def probe(self, keys: pa.Table, ranges: Sequence[Range]) -> list[Hits]:
        """Returns the live rows whose key is in `keys` (one row a key); `ranges` bound each of its key columns."""
        statistics = self.file.column_stats
        if not _all_overlap([statistics.range(c) for c in self.sort_columns], ranges):
            return []
        parquet = self._open()
        hits = []
        offset = 0
        for group, group_ranges in enumerate(self._groups):
            if _all_overlap(group_ranges, ranges) and _any_within(
                keys, self.sort_columns[0], group_ranges[0]
            ):
                hit = self._probe_group(group, offset, keys)
                if len(hit.rows):
                    hits.append(hit)
            offset += parquet.metadata.row_group(group).num_rows
        return hits

    @property
    def num_rows(self) -> int:
        """The number of rows in the file, deleted ones included."""
        return self.file.num_records if self.file.num_records is not None else self._open().metadata.num_rows

    def finish(self, vectors: VectorFileWriter, result: BucketResult) -> None:
        """Adds to `result` what the superseded rows mean for the file, and closes it."""
        if self.superseded:
            vector = self._old_vector() | BitMap64(np.concatenate(self.superseded).astype(np.uint64))
            result.removed.append(self.file.remove(int(time.time() * 1000), data_change=True))
            if len(vector) < self.num_rows:
                result.added.append(self.file.with_vector(vectors.add(vector), self.num_rows))
        self._close()

    def _close(self) -> None:
        if self._parquet is not None:
            self._parquet.close()
        self._parquet = self._cached = self._dead = self._vector = None

    def _open(self) -> pq.ParquetFile:
        if self._parquet is None:
            self._parquet = pq.ParquetFile(self.store.open_input(self.file.file_path))
            self._groups = _group_ranges(self._parquet.metadata, self.sort_columns)
        return self._parquet

    def _probe_group(self, group: int, offset: int, keys: pa.Table) -> Hits:
        live = self._live_rows(group, offset)
        is_sorted = self.file.sort_columns == self.sort_columns
        start, length = _window(live.table, keys, self.sort_columns) if is_sorted else (0, len(keys))
        existing, new = match(
            key_columns(live.table, self.sort_columns),
            key_columns(keys.slice(start, length), self.sort_columns),
            is_sorted and not _has_floats(keys, self.sort_columns),
        )
        sequence = None
        if self.sequence_field is not None:
            sequence = live.table.column(self.sequence_field).take(pa.array(existing)).combine_chunks()
        return Hits(live.rows[existing], new + start, sequence)

    def _live_rows(self, group: int, offset: int) -> _LiveRows:
        """Reads keys (and sequence) of a row group; dead rows go first, as there may be many more of them."""
        if self._cached is None or self._cached[0] != group:
            names = list(dict.fromkeys([*self.sort_columns, *filter(None, [self.sequence_field])]))
            table = self._open().read_row_group(group, columns=names, use_threads=False)
            rows = np.arange(table.num_rows, dtype=np.int64)
            dead = within(self._dead_rows(), offset, table.num_rows)
            if len(dead):
                rows = np.delete(rows, dead)
                table = table.take(pa.array(rows))
            self._cached = group, _LiveRows(table, rows + offset)
        return self._cached[1]

    def _old_vector(self) -> BitMap64:
        if self._vector is None:
            self._vector = read_vector(self.store, self.file.deletion_vector)
        return self._vector

    def _dead_rows(self) -> Positions:
        if self._dead is None:
            self._dead = positions_of(self._old_vector())
        return self._dead


@dataclass(frozen=True)
class _LiveRows:
    """Key columns of the live rows of a row group, and their row numbers in the file."""

    table: pa.Table
    rows: Positions


def ranges_of(keys: pa.Table, columns: Sequence[str]) -> list[Range]:
    """Returns the smallest and largest value of each column of `keys` as Python values."""
    ranges: list[Range] = []
    for name in columns:
        column = keys.column(name)
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            ranges.append(None)  # NaN has no place in min/max statistics
            continue
        bounds = pc.min_max(column).as_py()
        ranges.append((bounds["min"], bounds["max"]))
    return ranges


def _window(existing: pa.Table, keys: pa.Table, columns: Sequence[str]) -> tuple[int, int]:
    """Returns offset and length of the new keys that can occur among sorted rows, by the first key column."""
    rows = existing.column(columns[0])
    limits = (rows[0].as_py(), rows[-1].as_py()) if len(rows) else None
    start, end = _between(keys, columns[0], limits)
    return start, end - start


def _any_within(keys: pa.Table, column: str, limits: Range) -> bool:
    """Tells whether a new key may lie within the limits of its first column."""
    start, end = _between(keys, column, limits)
    return end > start


def _between(keys: pa.Table, name: str, limits: Range) -> tuple[int, int]:
    """Returns the positions of the first of ascending keys that may lie within limits, and after the last."""
    column = keys.column(name)
    unordered = _has_floats(keys, [name]) or pa.types.is_boolean(column.type)
    if unordered or limits is None or limits[0] is None or limits[1] is None:
        return 0, len(column)
    try:
        start = bisect_left(range(len(column)), limits[0], key=lambda i: column[i].as_py())
        end = bisect_right(range(len(column)), limits[1], lo=start, key=lambda i: column[i].as_py())
    except TypeError:
        return 0, len(column)  # statistics written by others may have another type
    return start, end


def _has_floats(keys: pa.Table, columns: Sequence[str]) -> bool:
    return any(pa.types.is_floating(keys.schema.field(c).type) for c in columns)


def _all_overlap(have: Sequence[Range], want: Sequence[Range]) -> bool:
    return all(_overlap(h, w) for h, w in zip(have, want, strict=True))


def _overlap(have: Range, want: Range) -> bool:
    if have is None or want is None or have[0] is None or have[1] is None:
        return True
    try:
        return bool(have[0] <= want[1] and want[0] <= have[1])
    except TypeError:
        return True  # statistics written by others may have another type


def _group_ranges(metadata: pq.FileMetaData, columns: Sequence[str]) -> list[list[Range]]:
    """Returns for each row group the ranges of the columns."""
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    places = [paths.index(c) if c in paths else None for c in columns]
    return [
        [_statistics_range(metadata.row_group(group), place) for place in places]
        for group in range(metadata.num_row_groups)
    ]


def _statistics_range(group: pq.RowGroupMetaData, place: int | None) -> Range:
    statistics = None if place is None else group.column(place).statistics
    return None if statistics is None or not statistics.has_min_max else (statistics.min, statistics.max)
