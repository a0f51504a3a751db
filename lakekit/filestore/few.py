"""Writes few rows without a Spark job: the bucket writers run in threads of one process.

A Spark job costs some tenths of a second whatever it does; a hundred rows are hashed, sorted and written in less.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakekit.filestore.chunks import typed
from lakekit.filestore.keys import sort_order, sortable
from lakekit.filestore.layout import BucketLayout
from lakekit.filestore.result import BucketResult
from lakekit.filestore.writer import BucketWriter, by_bucket
from lakekit.storage.actions import AddFile
from lakekit.storage.murmur3 import bucket_of

FEW_ROWS = 10_000
"""Up to so many rows are written this way; more are worth a Spark job, which uses all cores."""


def write_few(
    layout: BucketLayout, live_files: Sequence[AddFile], rows: pa.Table, run_id: str
) -> list[BucketResult]:
    """Writes rows, and returns what the writer of each bucket did.

    Args:
        layout: the table.
        live_files: all live files of the table.
        rows: the table's columns, and perhaps OPERATION; of equal keys the last row wins, or the highest sequence.
        run_id: identity of the sorted runs this write makes.
    """
    rows = typed(rows.combine_chunks(), layout)
    buckets = bucket_of([rows.column(c) for c in layout.primary_key], layout.buckets)
    live = by_bucket(live_files)

    def write(bucket: int) -> BucketResult:
        own = _in_order(rows.filter(pa.array(buckets == bucket)), layout)
        return BucketWriter(layout, bucket, live.get(bucket, []), run_id).run(own.to_batches())

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # reading and writing Parquet leaves Python's lock free
        return list(pool.map(write, np.unique(buckets).tolist()))


def _in_order(rows: pa.Table, layout: BucketLayout) -> pa.Table:
    """Sorts rows by partition, key, sequence (nulls first) and arrival, as Spark does for larger writes."""
    names = [*layout.partition_schema.names, *layout.sort_columns]
    columns = [sortable(rows.column(name).combine_chunks()) for name in names]
    if layout.sequence_field is not None:
        sequence = rows.column(layout.sequence_field).combine_chunks()
        columns += [pc.is_valid(sequence).cast(pa.int8()), sortable(sequence)]
    return rows.take(sort_order([*columns, pa.array(np.arange(rows.num_rows))]))
