"""Fetches the few rows of a table that a query wants, in this process.

Spark reads a table through Delta, which lists the files in up to three jobs before a fourth reads rows. A query that
statistics leave a handful of rows is done sooner by reading those here, as `lakekit.table.lookup` does for keys. The
limits are there to give up early on what Spark does better; judging files, row groups and pages reads no rows.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakekit.filestore.encoding import PAGE_BYTES
from lakekit.filestore.keys import Positions
from lakekit.skipping.footers import columns_of, footer_of, open_data_file, vector_of
from lakekit.skipping.masks import judged_columns, mask
from lakekit.skipping.pages import GroupReader
from lakekit.skipping.predicate import Predicate
from lakekit.skipping.prune import FileBounds, FilePruning, prune
from lakekit.skipping.rows import FileRows
from lakekit.skipping.values import Column, char_length
from lakekit.storage.log import open_log
from lakekit.table.lookup import KeyedFiles, as_kind, keyed_files
from lakekit.table.lookup_many import visible_schema

if TYPE_CHECKING:
    from lakekit.skipping.parquet_index import ParquetIndex
    from lakekit.storage.actions import AddFile
    from lakekit.storage.snapshot import Snapshot

MOST_FILES = 256
"""Files that are looked into; Spark shares more of them out to all cores of a cluster."""
MOST_ROWS = 10_000
"""Rows that are fetched, deleted ones included."""
MOST_JUDGED = 32 << 20
"""Bytes of the columns in conditions that are decoded to find rows."""
MOST_READ = 256 << 20
"""Bytes of the other columns that are decoded for them; of each column at least a page."""
MOST_BYTES = 4 << 20
"""Bytes of the rows that are fetched."""

_READERS = 8


class _TooMuchError(Exception):
    """Fetching would read more than it may."""


class _Budget:
    """What may still be read; safe to use from many threads."""

    def __init__(self, amount: float) -> None:
        self._left = amount
        self._lock = threading.Lock()

    def take(self, amount: float) -> None:
        with self._lock:
            self._left -= amount
            if self._left < 0:
                raise _TooMuchError


def fetch(
    root: str, predicate: Predicate, version: int | None = None, columns: Collection[str] | None = None
) -> pa.Table | None:
    """Returns the rows of a table that a predicate may want, or None if those may be many.

    Args:
        root: path or URI of the table.
        predicate: what is wanted. Rows that are not wanted may be among those returned.
        version: the version to read; the newest by default.
        columns: names of the columns to return, in any case; all by default.

    Returns:
        The rows, in no order, with the columns in the table's order.

    Raises:
        LakeError: if a file is missing or damaged.
    """
    log = open_log(root)
    snapshot = log.snapshot(version)
    if not _is_plain(snapshot.schema_json, {}):
        return None
    schema = visible_schema(snapshot.metadata.schema_string)
    if columns is not None:
        wanted = {name.lower() for name in columns}
        schema = pa.schema([field for field in schema if field.name.lower() in wanted])
    pruning = _files(snapshot, predicate)
    if pruning is None:
        return None
    fetching = _Fetching(keyed_files(log.store, snapshot), pruning.conditions.bound, schema)
    try:
        return fetching.run(pruning.kept)
    except _TooMuchError:
        return None


def _files(snapshot: Snapshot, predicate: Predicate) -> FilePruning | None:
    """Returns the files to look into, None if it is clear already that they hold too many rows."""
    small = len(snapshot.files) <= MOST_FILES
    few = small and sum(file.num_records or MOST_ROWS + 1 for file in snapshot.files.values()) <= MOST_ROWS
    pruning = prune(snapshot, predicate)
    if len(pruning.kept) > MOST_FILES or not (few or pruning.conditions.used):
        return None
    return pruning


def _is_plain(kind: Any, metadata: Mapping[str, Any]) -> bool:
    """Tells whether Spark reads of a column, or a part of one, what the file holds: it pads CHAR, for one."""
    declared = str(metadata.get("__CHAR_VARCHAR_TYPE_STRING"))
    if kind == "variant" or char_length(declared) is not None or metadata.get("__COLLATIONS"):
        return False
    if not isinstance(kind, Mapping):
        return True
    parts = [kind[name] for name in ("elementType", "keyType", "valueType") if name in kind]
    fields = kind.get("fields", ())
    return all(_is_plain(part, {}) for part in parts) and all(
        _is_plain(field["type"], field.get("metadata") or {}) for field in fields
    )


class _Fetching:
    """One fetch: of each file row groups and pages are judged, then rows, then those that are left are read."""

    def __init__(self, files: KeyedFiles, bound: Any, schema: pa.Schema) -> None:
        self._files = files
        self._bound = bound
        self._schema = schema
        stored = {column.name: column for column in files.stored}
        self._judged = [c for c in judged_columns(bound) if c.name in stored]
        self._others = [
            stored[f.name] for f in schema if f.name in stored and stored[f.name] not in self._judged
        ]
        self._rows = _Budget(MOST_ROWS)
        self._judging = _Budget(MOST_JUDGED)
        self._reading = _Budget(MOST_READ)
        self._bytes = _Budget(MOST_BYTES)

    def run(self, files: Sequence[AddFile]) -> pa.Table:
        """Returns the rows; raises `_TooMuchError` when a limit is reached."""
        # What is read of local files is little, and Python's lock makes threads that share it slower than one.
        with ThreadPoolExecutor(1 if self._files.store.is_local else _READERS) as pool:
            tables = [table for found in pool.map(self._in_file, files) for table in found]
        return pa.concat_tables([self._schema.empty_table(), *tables])

    def _in_file(self, file: AddFile) -> list[pa.Table]:
        self._rows.take(0)  # another file may have reached the limit
        store, path = self._files.store, file.file_path
        rows = FileRows(footer_of(store, path), FileBounds(file, self._files.partitions))
        with open_data_file(store, path) as source:
            found: list[pa.Table] = []
            for group in rows.groups(self._bound):
                reader = GroupReader(source, rows.index, group, path, columns_of(store, path))
                for start, stop in rows.ranges(source, self._bound, group):
                    found += self._in_range(file, rows.index, reader, group, start, stop)
            return found

    def _in_range(
        self, file: AddFile, index: ParquetIndex, reader: GroupReader, group: int, start: int, stop: int
    ) -> Iterator[pa.Table]:
        """Yields the wanted rows from `start` to `stop` of a row group."""
        to_judge, to_read = (_row_bytes(index, columns) for columns in (self._judged, self._others))
        self._judging.take((stop - start) * to_judge)
        judged = reader.read(self._judged, start, stop)
        typed = {c.name: as_kind(judged[c.name], c) for c in self._judged if c.name in judged}
        positions = np.flatnonzero(mask(self._bound, typed, stop - start))
        self._rows.take(len(positions))
        positions = self._living(file, index.group_starts[group] + start, positions)
        self._bytes.take(len(positions) * (to_judge + to_read))
        if len(positions):
            self._reading.take(_page_bytes(index, self._others, positions))
            yield self._files.rows_at(file, reader, judged, start, positions, self._schema)

    def _living(self, file: AddFile, first: int, positions: Positions) -> Positions:
        """Returns the rows that are not deleted; `positions` count from the row `first` of the file."""
        if file.deletion_vector is None:
            return positions
        dead = vector_of(self._files.store, file.deletion_vector)
        return positions[[first + position not in dead for position in positions.tolist()]]


def _page_bytes(index: ParquetIndex, columns: Sequence[Column], rows: Positions) -> float:
    """Returns how many bytes the pages take that hold the columns of some rows, about."""
    total = 0.0
    for column in columns:
        width = index.row_bytes.get(column.name.lower(), 0)
        length = max(1, int(PAGE_BYTES / width)) if width else 1  # of a page, in rows
        total += len(np.unique(rows // length)) * length * width
    return total


def _row_bytes(index: ParquetIndex, columns: Sequence[Column]) -> float:
    """Returns how many bytes a row of the columns takes in a file, about."""
    return sum(index.row_bytes.get(column.name.lower(), 0) for column in columns)
