"""The bucket writer: the body of one Spark task that writes one bucket of a table.

Rows arrive sorted by partition, key, sequence and order of arrival. They are handled in chunks of bounded size: drop
all but the last row of each key, find what they supersede in the bucket's live files, append them to the sorted run.
What comes out are Delta actions and counts, no data. Merge-on-write with deletion vectors follows the Delta protocol
("Deletion Vectors"); the layout is an LSM tree's (partition, bucket, sorted runs), resolved when written.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakekit.errors import LakeError
from lakekit.filestore.chunks import chunks, partition_slices
from lakekit.filestore.keys import Mask
from lakekit.filestore.layout import (
    OPERATION,
    BucketLayout,
    PartitionValues,
    partition_of,
    partition_text,
)
from lakekit.filestore.probe import FileProbe, Hits, ranges_of
from lakekit.filestore.result import BucketResult
from lakekit.filestore.runs import RunWriter
from lakekit.storage.actions import AddFile
from lakekit.storage.store import Store
from lakekit.storage.vectors import VectorFileWriter


@dataclass(frozen=True)
class WriteTask:
    """The function handed to Spark's `mapInArrow`.

    Attributes:
        layout: the table.
        live_files: for each bucket, its pickled list of live `AddFile`s; pickled one by one so that a task unpacks
            only its own.
        run_id: identity of the sorted runs this write makes.
        columns: names of the columns that come in, which Spark's own names do not tell (see `by_position`).
    """

    layout: BucketLayout
    live_files: Mapping[int, bytes]
    run_id: str
    columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, layout: BucketLayout, files: Sequence[AddFile], run_id: str) -> WriteTask:
        """Builds the task for all buckets from the live files of a snapshot."""
        return cls(layout, {b: pickle.dumps(f) for b, f in by_bucket(files).items()}, run_id)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the bucket whose number is the Spark partition's."""
        from pyspark import TaskContext

        context = TaskContext.get()
        bucket = context.partitionId() if context is not None else 0
        live = pickle.loads(self.live_files[bucket]) if bucket in self.live_files else []
        named = (batch.rename_columns(list(self.columns)) for batch in batches)
        result = BucketWriter(self.layout, bucket, live, self.run_id).run(named)
        yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})


class BucketWriter:
    """Writes the rows of one bucket; see the module's text."""

    def __init__(self, layout: BucketLayout, bucket: int, live_files: Sequence[AddFile], run_id: str) -> None:
        """Prepares the writer; opens no file."""
        self.layout = layout
        self.bucket = bucket
        self.run_id = run_id
        self.store = layout.store()
        self.result = BucketResult()
        self._live: dict[tuple[tuple[str, str | None], ...], list[AddFile]] = {}
        for file in live_files:
            self._live.setdefault(_identity(partition_of(file.partition_values)), []).append(file)
        self._vectors = VectorFileWriter(self.store)
        self._partition: PartitionValues | None = None
        self._run: RunWriter | None = None
        self._probes: list[FileProbe] = []

    def run(self, batches: Iterable[pa.RecordBatch]) -> BucketResult:
        """Consumes all rows and returns what was done; files of refused rows are deleted again."""
        try:
            for chunk in chunks(batches, self.layout, self.result):
                if not self.result.refused:
                    self._write_chunk(chunk)
            self._finish_partition()
            self._vectors.close()
        except LakeError as error:
            self.result.error = error
        if self.result.refused:
            self._discard()
        return self.result

    def _write_chunk(self, chunk: pa.Table) -> None:
        for values, rows in partition_slices(chunk, self.layout):
            partition: PartitionValues = {
                name: partition_text(value, name)
                for name, value in zip(self.layout.partition_schema.names, values, strict=True)
            }
            if partition != self._partition:
                self._finish_partition()
                self._start_partition(partition)
            self._write_rows(rows)

    def _start_partition(self, partition: PartitionValues) -> None:
        self._partition = partition
        identity = _identity(partition)
        self.result.touched.add((identity, self.bucket))
        self._run = RunWriter(self.store, self.layout, partition, self.bucket, 0, self.run_id)
        self._probes = [
            FileProbe(self.store, file, self.layout.sort_columns, self.layout.sequence_field)
            for file in self._live.get(identity, [])
        ]

    def _write_rows(self, rows: pa.Table) -> None:
        """Probes and writes rows of one partition: sorted, one for each key."""
        keys = rows.select(list(self.layout.sort_columns))
        ranges = ranges_of(keys, self.layout.sort_columns)
        found = [(p, hit) for p in self._probes for hit in p.probe(keys, ranges)]
        late = self._late(rows, found)
        matched = np.zeros(rows.num_rows, dtype=np.bool_)
        for probe, hit in found:
            wins = ~late[hit.new]
            if wins.any():
                probe.superseded.append(hit.rows[wins])
                matched[hit.new[wins]] = True
        upserts = np.ones(rows.num_rows, dtype=np.bool_)
        if OPERATION in rows.column_names:
            upserts = pc.equal(rows.column(OPERATION), "U").to_numpy(zero_copy_only=False).astype(np.bool_)
        written = upserts & ~late
        self.result.rows_updated += int((written & matched).sum())
        self.result.rows_inserted += int((written & ~matched).sum())
        self.result.rows_deleted += int((~upserts & matched).sum())
        self.result.rows_late += int(late.sum())
        data = rows.select(self.layout.schema.names)
        if self._run is not None and written.any():
            self._run.write(data if written.all() else data.filter(pa.array(written)))

    def _late(self, rows: pa.Table, found: Sequence[tuple[FileProbe, Hits]]) -> Mask:
        """Returns which rows are older, by the sequence field, than the live row of their key."""
        late = np.zeros(rows.num_rows, dtype=np.bool_)
        if self.layout.sequence_field is None:
            return late
        incoming = rows.column(self.layout.sequence_field)
        for _, hit in found:
            newer = pc.greater(hit.sequence, incoming.take(pa.array(hit.new)))
            # A null sequence is lower than any value, but a delete without one means the row as it is now.
            unset = pc.and_(pc.is_valid(hit.sequence), pc.is_null(incoming.take(pa.array(hit.new))))
            if OPERATION in rows.column_names:
                upsert = pc.equal(rows.column(OPERATION).take(pa.array(hit.new)), "U")
                unset = pc.and_(unset, upsert)
            older = pc.or_(pc.fill_null(newer, False), unset)
            late[hit.new[older.to_numpy(zero_copy_only=False).astype(np.bool_)]] = True
        return late

    def _finish_partition(self) -> None:
        if self._run is not None:
            self.result.added.extend(self._run.close())
        for probe in self._probes:
            probe.finish(self._vectors, self.result)
        self._run, self._probes, self._partition = None, [], None

    def _discard(self) -> None:
        """Deletes the data files of this attempt; their rows must not be committed."""
        if self._run is not None:
            self.result.added.extend(self._run.close())
        delete_new_files(self.store, self.result.added, self.run_id)
        self.result.added, self.result.removed = [], []


def by_bucket(files: Iterable[AddFile]) -> dict[int, list[AddFile]]:
    """Returns the files of each bucket number, whatever their partition."""
    found: dict[int, list[AddFile]] = {}
    for file in files:
        found.setdefault(file.bucket or 0, []).append(file)
    return found


def delete_new_files(store: Store, added: Sequence[AddFile], run_id: str) -> None:
    """Deletes the data files that a write of `run_id` made and will not commit."""
    store.delete([file.file_path for file in added if file.run_id == run_id])


def _identity(partition: PartitionValues) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(partition.items()))
