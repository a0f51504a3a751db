"""Follows rows that a compaction moved while a write was under way.

A write marks the rows that it supersedes in the files it found. If a compaction replaced those files before the write
was committed, the same rows are in its output: they are found there by their keys, which are read from the old files.
No row that a reader sees was changed in between, so everything else that the write found out still holds.
"""

from __future__ import annotations

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
    wanted = 0
    for file in (f for f in job.result.removed if f.path in job.gone):
        for keys in _superseded_keys(store, file, marked.get(file.path), layout.sort_columns):
            wanted += keys.num_rows
            ranges = ranges_of(keys, layout.sort_columns)
            for probe in probes[bucket_id(file)]:
                probe.superseded.extend(hit.rows for hit in probe.probe(keys, ranges))
    every_probe = [probe for group in probes.values() for probe in group]
    if sum(len(rows) for probe in every_probe for rows in probe.superseded) != wanted:
        return BucketResult(lost_rows=True)
    result = replace(
        job.result,
        removed=[f for f in job.result.removed if f.path not in job.gone],
        added=[f for f in job.result.added if f.path not in job.gone],
    )
    vectors = VectorFileWriter(store)
    for probe in every_probe:
        probe.finish(vectors, result)
    vectors.close()
    return result


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
