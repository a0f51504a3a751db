"""Follows rows that a compaction moved while a write was under way, in the one and in the other.

A write marks the rows that it supersedes in the files it found. If a compaction replaced those files before the write
was committed, the same rows are in its output: they are found there by their keys. No row that a reader sees was
changed in between, so everything else that the write found out still holds.

If the write was committed first, the compaction finds the rows that it superseded in its own output by the same means.
Merging again would be in vain where writes come faster than a bucket is merged.

A row is superseded by a newer one of its key, so the keys to look for are those of the newer runs, which are few. Rows
that a write deleted have no newer one. Where there are such rows, which the vectors' cardinalities tell, the keys are
read from the old files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakekit.filestore.conflicts import BucketId, bucket_id, is_live
from lakekit.filestore.keys import Positions, within
from lakekit.filestore.layout import BucketLayout
from lakekit.filestore.merge import sort_by
from lakekit.filestore.probe import FileProbe, ranges_of
from lakekit.filestore.result import BucketResult
from lakekit.storage.actions import AddFile, RemoveFile
from lakekit.storage.store import Store
from lakekit.storage.vectors import VectorFileWriter, positions_of, read_vector

_CHUNK_ROWS = 1 << 20
"""Rows whose keys are looked up together: each chunk reads the keys of all files that it is looked up in."""


@dataclass(frozen=True)
class Moved:
    """What one task of a write did, and where its bucket's rows are now.

    Attributes:
        result: what the task did.
        gone: paths of the files it marked rows in that are live no more.
        homes: for each of their buckets, the files that were not there when the task ran.
    """

    result: BucketResult
    gone: frozenset[str]
    homes: Mapping[BucketId, tuple[AddFile, ...]]


def new_files(before: Mapping[str, AddFile], now: Mapping[str, AddFile]) -> dict[BucketId, list[AddFile]]:
    """Returns the files of each bucket that are live now and were not before; both are by path."""
    found: dict[BucketId, list[AddFile]] = {}
    for path, file in now.items():
        if path not in before:
            found.setdefault(bucket_id(file), []).append(file)
    return found


def moved(
    result: BucketResult, new: Mapping[BucketId, Sequence[AddFile]], now: Mapping[str, AddFile]
) -> Moved | None:
    """Returns the job for a result that marks rows in files which are gone, or None if it marks none.

    Args:
        result: what a task did.
        new: the files that came after those it was given, by bucket.
        now: the live files after the compaction, by path.
    """
    gone = [file for file in result.removed if not is_live(file, now)]
    if not gone:
        return None
    homes = {bucket: tuple(new.get(bucket, ())) for bucket in map(bucket_id, gone)}
    return Moved(result, frozenset(file.path for file in gone), homes)


def follow(layout: BucketLayout, job: Moved) -> BucketResult:
    """Returns the result with vectors for the files in which the superseded rows are now.

    Rows are looked up a row group at a time, so memory does not grow with their number. If one is not found, which
    means that the commit in between was no mere compaction, `lost_rows` of the result says so.
    """
    store, added = layout.store(), {file.path: file for file in job.result.added}
    old = {file.path: file for file in job.result.removed}
    vectors, changed = VectorFileWriter(store), BucketResult()
    for bucket, homes in job.homes.items():
        gone = [(old[path], added.get(path)) for path in job.gone if bucket_id(old[path]) == bucket]
        newer = [file for path, file in added.items() if path not in old and bucket_id(file) == bucket]
        if not _Search(store, layout.sort_columns, gone, newer).mark(homes, vectors, changed):
            return BucketResult(lost_rows=True)
    vectors.close()
    return replace(
        job.result,
        removed=[*(f for f in job.result.removed if f.path not in job.gone), *changed.removed],
        added=[*(f for f in job.result.added if f.path not in job.gone), *changed.added],
    )


@dataclass(frozen=True)
class Overtaken:
    """What one task of a compaction did, and what writes have done to its bucket since.

    Attributes:
        result: what the task did.
        marked: the files it merged of which rows were superseded, as they are now, by path.
        newer: the files that were not there before.
    """

    result: BucketResult
    marked: Mapping[str, AddFile]
    newer: tuple[AddFile, ...]


def overtaken(
    result: BucketResult, new: Mapping[BucketId, Sequence[AddFile]], now: Mapping[str, AddFile]
) -> Overtaken | None:
    """Returns the job for a compaction's result of which files have new deletion vectors; None if a file is gone.

    Args:
        result: what a task did.
        new: the files that came after it ran, or last caught up, by bucket.
        now: the live files, by path.
    """
    if any(file.path not in now for file in result.removed):
        return None
    marked = {f.path: now[f.path] for f in result.removed if not is_live(f, now)}
    return Overtaken(result, marked, tuple(f for bucket in result.touched for f in new.get(bucket, ())))


def catch_up(layout: BucketLayout, job: Overtaken) -> BucketResult:
    """Returns the result of a compaction with deletion vectors for the rows that writes have superseded since.

    If one of them is not in the output, `lost_rows` of the result says so.
    """
    store, now = layout.store(), int(time.time() * 1000)
    changed_files = [(f, job.marked[f.path]) for f in job.result.removed if f.path in job.marked]
    vectors, changed = VectorFileWriter(store), BucketResult()
    search = _Search(store, layout.sort_columns, changed_files, job.newer)
    if not search.mark(job.result.added, vectors, changed):
        return BucketResult(lost_rows=True)
    vectors.close()
    replaced = {file.path for file in changed.removed}
    return replace(
        job.result,
        added=[
            *(f for f in job.result.added if f.path not in replaced),
            *(replace(f, data_change=False) for f in changed.added),
        ],
        removed=[
            job.marked[f.path].remove(now, data_change=False) if f.path in job.marked else f
            for f in job.result.removed
        ],
    )


@dataclass(frozen=True)
class _Search:
    """A search for rows that are superseded in files which are gone, in other files of the bucket.

    Attributes:
        store: where the files are.
        columns: of the key, as the files are sorted.
        changed: the files that are gone, as they were, and with the superseded rows marked; None if all rows are.
        newer: files with the rows that supersede them.
    """

    store: Store
    columns: tuple[str, ...]
    changed: Sequence[tuple[RemoveFile, AddFile | None]]
    newer: Sequence[AddFile]

    def mark(self, homes: Sequence[AddFile], vectors: VectorFileWriter, result: BucketResult) -> bool:
        """Marks the rows in `homes` and adds to `result` what that means; returns whether all were found.

        Rows are looked up some row groups at a time, so memory does not grow with their number.
        """
        probes = [FileProbe(self.store, file, self.columns) for file in homes]
        if not self._mark_by_newer(probes) and not self._mark_by_position(probes):
            return False
        for probe in probes:
            probe.finish(vectors, result)
        return True

    def _mark_by_newer(self, probes: Sequence[FileProbe]) -> bool:
        """Marks rows of which there is a newer one; returns whether these are all, or else marks none."""
        if any(now is None for _, now in self.changed) or not all(file.run_id for file in self.newer):
            return False  # other programs may add a second row of a key, which supersedes nothing
        wanted = sum(_deleted(now) - _deleted(old) for old, now in self.changed)
        if self._mark(probes, self._live_keys())[1] == wanted:
            return True
        for probe in probes:
            probe.superseded.clear()
        return False

    def _mark_by_position(self, probes: Sequence[FileProbe]) -> bool:
        keys = (table for old, now in self.changed for table in self._superseded_keys(old, now))
        wanted, found = self._mark(probes, keys)
        return found == wanted

    def _mark(self, probes: Sequence[FileProbe], keys: Iterable[pa.Table]) -> tuple[int, int]:
        """Marks the live rows that have one of the keys; returns how many keys and how many rows there are."""
        wanted = found = 0
        for chunk in keys:
            wanted += chunk.num_rows
            ranges = ranges_of(chunk, self.columns)
            for probe in probes:
                rows = [hit.rows for hit in probe.probe(chunk, ranges)]
                found += sum(map(len, rows))
                probe.superseded.extend(rows)
        return wanted, found

    def _live_keys(self) -> Iterator[pa.Table]:
        """Yields the keys of the live rows of the newer files, sorted within a chunk."""
        chunk: list[pa.Table] = []
        for file in self.newer:
            dead = positions_of(read_vector(self.store, file.deletion_vector))
            for keys in self._keys(file.file_path, partial(_outside, dead)):
                chunk.append(keys)
                if sum(map(len, chunk)) >= _CHUNK_ROWS:
                    yield sort_by(pa.concat_tables(chunk), self.columns)
                    chunk = []
        if chunk:
            yield sort_by(pa.concat_tables(chunk), self.columns)

    def _superseded_keys(self, old: RemoveFile, now: AddFile | None) -> Iterator[pa.Table]:
        """Yields the keys of the rows that `now` deletes beyond `old` (all, if None), sorted within a row group."""
        before = read_vector(self.store, old.deletion_vector)
        if now is None:
            dead = positions_of(before)
            found = self._keys(old.file_path, partial(_outside, dead))
        else:
            new = positions_of(read_vector(self.store, now.deletion_vector) - before)
            found = self._keys(old.file_path, partial(within, new))
        yield from (sort_by(keys, self.columns) for keys in found)

    def _keys(self, path: str, wanted: Callable[[int, int], Positions]) -> Iterator[pa.Table]:
        """Yields the keys of some rows of each row group: `wanted` gets its first row and how many it has."""
        with pq.ParquetFile(self.store.open_input(path)) as parquet:
            offset = 0
            for group in range(parquet.num_row_groups):
                rows = parquet.metadata.row_group(group).num_rows
                inside = wanted(offset, rows)
                offset += rows
                if len(inside):
                    table = parquet.read_row_group(group, columns=list(self.columns), use_threads=False)
                    yield table.take(pa.array(inside))


def _deleted(file: AddFile | RemoveFile | None) -> int:
    vector = None if file is None else file.deletion_vector
    return 0 if vector is None else vector.cardinality


def _outside(dead: Positions, offset: int, rows: int) -> Positions:
    """Returns the rows of a row group that are not dead, counted from its first."""
    return np.delete(np.arange(rows), within(dead, offset, rows))
