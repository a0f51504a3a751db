"""Follows rows that a compaction moved while a write was under way, in the one and in the other.

A write marks the rows that it supersedes in the files it found. If a compaction replaced those files before the write
was committed, the same rows are in its output: they are found there by their keys, which are read from the old files.
No row that a reader sees was changed in between, so everything else that the write found out still holds.

If the write was committed first, the compaction finds the rows that it superseded in its own output by the same means.
Merging again would be in vain where writes come faster than a bucket is merged.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakekit.filestore.conflicts import BucketId, bucket_id, is_live
from lakekit.filestore.keys import within
from lakekit.filestore.layout import BucketLayout
from lakekit.filestore.merge import sort_by
from lakekit.filestore.probe import FileProbe, ranges_of
from lakekit.filestore.result import BucketResult
from lakekit.storage.actions import AddFile, RemoveFile
from lakekit.storage.store import Store
from lakekit.storage.vectors import VectorFileWriter, positions_of, read_vector


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


def moved(result: BucketResult, before: Mapping[str, AddFile], now: Mapping[str, AddFile]) -> Moved | None:
    """Returns the job for a result that marks rows in files which are gone, or None if it marks none.

    Args:
        result: what a task did.
        before: the live files that it was given, by path.
        now: the live files after the compaction.
    """
    gone = [file for file in result.removed if not is_live(file, now)]
    if not gone:
        return None
    homes: dict[BucketId, tuple[AddFile, ...]] = {bucket_id(file): () for file in gone}
    for path, file in now.items():
        if path not in before and bucket_id(file) in homes:
            homes[bucket_id(file)] += (file,)
    return Moved(result, frozenset(file.path for file in gone), homes)


def follow(layout: BucketLayout, job: Moved) -> BucketResult:
    """Returns the result with vectors for the files in which the superseded rows are now.

    Rows are looked up a row group at a time, so memory does not grow with their number. If one is not found, which
    means that the commit in between was no mere compaction, `lost_rows` of the result says so.
    """
    store = layout.store()
    marked = {file.path: file for file in job.result.added}
    probes = {
        bucket: [FileProbe(store, file, layout.sort_columns) for file in files]
        for bucket, files in job.homes.items()
    }
    found_all = [
        _mark(
            probes[bucket_id(file)], _superseded_keys(store, file, marked.get(file.path), layout.sort_columns)
        )
        for file in job.result.removed
        if file.path in job.gone
    ]
    if not all(found_all):
        return BucketResult(lost_rows=True)
    result = replace(
        job.result,
        removed=[f for f in job.result.removed if f.path not in job.gone],
        added=[f for f in job.result.added if f.path not in job.gone],
    )
    vectors = VectorFileWriter(store)
    for probe in (probe for group in probes.values() for probe in group):
        probe.finish(vectors, result)
    vectors.close()
    return result


@dataclass(frozen=True)
class Overtaken:
    """What one task of a compaction did, and the files it merged of which writes have superseded rows since.

    Attributes:
        result: what the task did.
        marked: those files as they are now, by path.
    """

    result: BucketResult
    marked: Mapping[str, AddFile]


def overtaken(result: BucketResult, now: Mapping[str, AddFile]) -> Overtaken | None:
    """Returns the job for a compaction's result of which files have new deletion vectors; None if a file is gone."""
    if any(file.path not in now for file in result.removed):
        return None
    return Overtaken(result, {f.path: now[f.path] for f in result.removed if not is_live(f, now)})


def catch_up(layout: BucketLayout, job: Overtaken) -> BucketResult:
    """Returns the result of a compaction with deletion vectors for the rows that writes have superseded since.

    If one of them is not in the output, `lost_rows` of the result says so.
    """
    store, now = layout.store(), int(time.time() * 1000)
    probes = [FileProbe(store, file, layout.sort_columns) for file in job.result.added]
    found_all = [
        _mark(probes, _superseded_keys(store, file, job.marked[file.path], layout.sort_columns))
        for file in job.result.removed
        if file.path in job.marked
    ]
    if not all(found_all):
        return BucketResult(lost_rows=True)
    vectors, changed = VectorFileWriter(store), BucketResult()
    for probe in probes:
        probe.finish(vectors, changed)
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


def _mark(probes: Sequence[FileProbe], superseded: Iterator[pa.Table]) -> bool:
    """Marks rows in the files that hold their keys; returns whether all of them were found."""
    wanted = found = 0
    for keys in superseded:
        wanted += keys.num_rows
        ranges = ranges_of(keys, probes[0].sort_columns) if probes else ()
        for probe in probes:
            rows = [hit.rows for hit in probe.probe(keys, ranges)]
            found += sum(map(len, rows))
            probe.superseded.extend(rows)
    return found == wanted


def _superseded_keys(
    store: Store, file: RemoveFile, marked: AddFile | None, columns: Sequence[str]
) -> Iterator[pa.Table]:
    """Yields the keys of the rows that `marked` deletes beyond `file` (all, if None), sorted within a row group."""
    old = read_vector(store, file.deletion_vector)
    new = positions_of(read_vector(store, marked.deletion_vector) - old) if marked is not None else None
    dead = positions_of(old)
    with pq.ParquetFile(store.open_input(file.file_path)) as parquet:
        offset = 0
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            inside = (
                np.delete(np.arange(rows), within(dead, offset, rows))
                if new is None
                else within(new, offset, rows)
            )
            offset += rows
            if len(inside):
                table = parquet.read_row_group(group, columns=list(columns), use_threads=False)
                yield sort_by(table.take(pa.array(inside)), columns)
