"""Finds, in the live files of a bucket, the rows that new keys supersede.

Only key columns (and the sequence field) are read, and only from row groups that the statistics do not rule out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from lakekit.filestore.keys import Positions, key_columns, match
from lakekit.storage.actions import AddFile
from lakekit.storage.store import Store
from lakekit.storage.vectors import read_vector

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
    _dead: Positions | None = None
    _cached: tuple[int, pa.Table] | None = None

    def probe(self, keys: pa.Table, ranges: Sequence[Range]) -> list[Hits]:
        """Returns the live rows whose key is in `keys` (one row a key); `ranges` bound each of its key columns."""
        statistics = self.file.column_stats
        if not all(_overlap(statistics.range(c), r) for c, r in zip(self.sort_columns, ranges, strict=True)):
            return []
        parquet = self._open()
        hits = []
        offset = 0
        for group in range(parquet.num_row_groups):
            metadata = parquet.metadata.row_group(group)
            if all(
                _overlap(_group_range(metadata, c), r) for c, r in zip(self.sort_columns, ranges, strict=True)
            ):
                hit = self._probe_group(group, offset, keys)
                if len(hit.rows):
                    hits.append(hit)
            offset += metadata.num_rows
        return hits

    @property
    def num_rows(self) -> int:
        """The number of rows in the file, deleted ones included."""
        return self.file.num_records if self.file.num_records is not None else self._open().metadata.num_rows

    def vector(self) -> BitMap64 | None:
        """Returns the file's deletion vector with the superseded rows added, or None if nothing was."""
        if not self.superseded:
            return None
        old = read_vector(self.store, self.file.deletion_vector) if self.file.deletion_vector else BitMap64()
        return old | BitMap64(np.concatenate(self.superseded).astype(np.uint64))

    def close(self) -> None:
        """Closes the file and forgets what was read."""
        if self._parquet is not None:
            self._parquet.close()
        self._parquet = self._cached = self._dead = None

    def _open(self) -> pq.ParquetFile:
        if self._parquet is None:
            self._parquet = pq.ParquetFile(self.store.open_input(self.file.file_path))
        return self._parquet

    def _probe_group(self, group: int, offset: int, keys: pa.Table) -> Hits:
        table = self._read_group(group)
        window = _window(table, keys, self.sort_columns, bool(self.file.sort_columns))
        existing, new = match(
            key_columns(table, self.sort_columns), key_columns(keys.slice(*window), self.sort_columns)
        )
        new = new + window[0]
        rows = existing + offset
        live = self._live(rows)
        sequence = None
        if self.sequence_field is not None:
            taken = table.column(self.sequence_field).take(pa.array(existing[live]))
            sequence = taken.combine_chunks()
        return Hits(rows[live], new[live], sequence)

    def _read_group(self, group: int) -> pa.Table:
        if self._cached is None or self._cached[0] != group:
            names = [*self.sort_columns]
            if self.sequence_field is not None and self.sequence_field not in names:
                names.append(self.sequence_field)
            self._cached = group, self._open().read_row_group(group, columns=names, use_threads=False)
        return self._cached[1]

    def _live(self, rows: Positions) -> np.ndarray[Any, np.dtype[np.bool_]]:
        if self.file.deletion_vector is None or not len(rows):
            return np.ones(len(rows), dtype=np.bool_)
        if self._dead is None:
            bitmap = read_vector(self.store, self.file.deletion_vector)
            self._dead = np.frombuffer(bitmap.to_array(), dtype=np.uint64).astype(np.int64)
        slots = np.minimum(np.searchsorted(self._dead, rows), max(len(self._dead) - 1, 0))
        return self._dead[slots] != rows if len(self._dead) else np.ones(len(rows), dtype=np.bool_)


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


def _window(existing: pa.Table, keys: pa.Table, columns: Sequence[str], is_sorted: bool) -> tuple[int, int]:
    """Returns offset and length of the new keys that can occur in a sorted row group, by its first key column."""
    first = columns[0]
    column = keys.column(first)
    if (
        not is_sorted
        or not len(existing)
        or pa.types.is_floating(column.type)
        or pa.types.is_boolean(column.type)
    ):
        return 0, len(keys)
    low, high = existing.column(first)[0], existing.column(first)[len(existing) - 1]
    inside = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
    selected = np.flatnonzero(inside.to_numpy())
    return (int(selected[0]), int(selected[-1] - selected[0] + 1)) if len(selected) else (0, 0)


def _overlap(have: Range, want: Range) -> bool:
    if have is None or want is None or have[0] is None or have[1] is None:
        return True
    try:
        return bool(have[0] <= want[1] and want[0] <= have[1])
    except TypeError:
        return True  # statistics written by others may have another type


def _group_range(metadata: pq.RowGroupMetaData, column: str) -> Range:
    for index in range(metadata.num_columns):
        chunk = metadata.column(index)
        if chunk.path_in_schema == column:
            statistics = chunk.statistics
            if statistics is None or not statistics.has_min_max:
                return None
            return statistics.min, statistics.max
    return None
