"""Writes sorted runs: Parquet files of rows in key order, with Delta statistics and lakekit's tags."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from lakekit.filestore.encoding import parquet_options
from lakekit.filestore.layout import BucketLayout, PartitionValues, folder_of
from lakekit.names import BUCKET_COLUMN
from lakekit.storage.actions import AddFile
from lakekit.storage.file_actions import TAG_LEVEL, TAG_RUN, TAG_SORT
from lakekit.storage.stats import StatsCollector
from lakekit.storage.store import Store

ROW_GROUP_ROWS = 128 * 1024
"""Rows of a row group: small enough for a point look-up, large enough for a scan."""


@dataclass
class RunWriter:
    """Writes one sorted run of one bucket, in files of the target size with disjoint key ranges."""

    store: Store
    layout: BucketLayout
    partition: PartitionValues
    bucket: int
    level: int
    run_id: str
    data_change: bool = True
    files: list[AddFile] = field(default_factory=list)
    _writer: pq.ParquetWriter | None = None
    _sink: pa.NativeFile | None = None
    _path: str = ""
    _stats: StatsCollector | None = None
    _pending: list[pa.Table] = field(default_factory=list)
    _pending_rows: int = 0

    def write(self, rows: pa.Table) -> None:
        """Appends rows (columns as in the layout, sorted after all rows before)."""
        self._pending.append(rows)
        self._pending_rows += rows.num_rows
        if self._pending_rows >= ROW_GROUP_ROWS:
            self._flush(keep_partial=True)

    def close(self) -> list[AddFile]:
        """Writes what is left and returns the `add` actions of the run's files."""
        self._flush(keep_partial=False)
        self._finish_file()
        return self.files

    def _flush(self, keep_partial: bool) -> None:
        if not self._pending_rows:
            return
        rows = pa.concat_tables(self._pending)
        whole = rows.num_rows - rows.num_rows % ROW_GROUP_ROWS if keep_partial else rows.num_rows
        for start in range(0, whole, ROW_GROUP_ROWS):
            group = rows.slice(start, min(ROW_GROUP_ROWS, whole - start))
            writer, stats = self._open()
            writer.write_table(group, row_group_size=ROW_GROUP_ROWS)
            for batch in group.to_batches():
                stats.update(batch)
            if self._sink is not None and self._sink.tell() >= self.layout.target_file_size:
                self._finish_file()
        rest = rows.slice(whole)
        self._pending = [rest] if rest.num_rows else []
        self._pending_rows = rest.num_rows

    def _open(self) -> tuple[pq.ParquetWriter, StatsCollector]:
        if self._writer is None or self._stats is None:
            self._path = f"{folder_of(self.partition, self.bucket)}/part-{uuid.uuid4()}.parquet"
            self._sink = self.store.open_output(self._path)
            options = parquet_options(self.layout.schema)
            self._writer = pq.ParquetWriter(self._sink, self.layout.schema, **options)
            self._stats = StatsCollector(self.layout.schema, set(self.layout.sort_columns))
        return self._writer, self._stats

    def _finish_file(self) -> None:
        if self._writer is None or self._sink is None or self._stats is None:
            return
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        self.files.append(
            AddFile(
                path=quote(self._path, safe="/="),
                partition_values={**self.partition, BUCKET_COLUMN: str(self.bucket)},
                size=size,
                modification_time=int(time.time() * 1000),
                data_change=self.data_change,
                stats=self._stats.to_json(),
                tags={
                    TAG_LEVEL: str(self.level),
                    TAG_RUN: self.run_id,
                    TAG_SORT: json.dumps(list(self.layout.sort_columns)),
                },
                deletion_vector=None,
            )
        )
        self._writer = self._sink = self._stats = None
