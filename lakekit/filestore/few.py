"""Writes few rows without a Spark job: the bucket writers run one after the other, in one process.

A Spark job costs some tenths of a second whatever it does; a hundred rows are hashed, sorted and written in less.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakekit.filestore.chunks import typed
from lakekit.filestore.keys import sortable
from lakekit.filestore.layout import BucketLayout
from lakekit.filestore.result import BucketResult
from lakekit.filestore.writer import BucketWriter
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
    results = []
    for bucket in np.unique(buckets).tolist():
        own = _in_order(rows.filter(pa.array(buckets == bucket)), layout)
        live = [file for file in live_files if (file.bucket or 0) == bucket]
        results.append(BucketWriter(layout, bucket, live, run_id).run(own.to_batches()))
    return results


def _in_order(rows: pa.Table, layout: BucketLayout) -> pa.Table:
    """Sorts rows by partition, key, sequence (nulls first) and arrival, as Spark does for larger writes."""
    columns = [sortable(_one(rows, c)) for c in (*layout.partition_schema.names, *layout.sort_columns)]
    if layout.sequence_field is not None:
        sequence = _one(rows, layout.sequence_field)
        columns += [pc.is_valid(sequence).cast(pa.int8()), sortable(sequence)]
    columns.append(pa.array(np.arange(rows.num_rows)))
    names = [str(i) for i in range(len(columns))]
    keys = pa.Table.from_arrays(columns, names)
    return rows.take(pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names]))


def _one(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name).combine_chunks()
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
