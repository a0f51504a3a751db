"""Cuts the sorted stream of rows that a bucket writer gets into chunks of bounded size, one row for each key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakekit.filestore.keys import comparable, differs_from_next, key_columns, last_of_each_key
from lakekit.filestore.layout import OPERATION, BucketLayout, is_variant
from lakekit.filestore.result import BucketResult

CHUNK_BYTES = 16 << 20
"""Bytes of Arrow data handled at once: the memory of a writer is a small multiple of it, whatever the batch."""


def chunks(
    batches: Iterable[pa.RecordBatch], layout: BucketLayout, result: BucketResult
) -> Iterator[pa.Table]:
    """Yields the rows in chunks, with the columns of the table and perhaps OPERATION.

    Null keys, and nulls in NOT NULL columns, are counted in `result` instead.

    The last row of a chunk is held back, because the next batch may hold a later row of its key.
    """
    held: list[pa.Table] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        table = _checked(typed(batch, layout), layout, result)
        held.append(table)
        size += table.nbytes
        if size >= CHUNK_BYTES:
            rows = _deduplicated(pa.concat_tables(held), layout)
            last = max(rows.num_rows - 1, 0)
            yield rows.slice(0, last)
            held, size = [rows.slice(last)], 0
    if held:
        yield _deduplicated(pa.concat_tables(held), layout)


def partition_slices(chunk: pa.Table, layout: BucketLayout) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
    """Yields the values of the partition columns and the rows of each partition in a chunk, in order."""
    names = layout.partition_schema.names
    if not chunk.num_rows:
        return
    if not names:
        yield (), chunk
        return
    cuts = np.flatnonzero(differs_from_next(key_columns(chunk, names), chunk.num_rows)) + 1
    starts = [0, *cuts.tolist()]
    for start, end in zip(starts, [*starts[1:], chunk.num_rows], strict=True):
        values = tuple(chunk.column(name)[start].as_py() for name in names)
        yield values, chunk.slice(start, end - start)


def typed(batch: pa.RecordBatch | pa.Table, layout: BucketLayout) -> pa.Table:
    """Returns the columns the writer needs, in exactly the types of the data files."""
    columns = []
    fields = [*layout.partition_schema, *layout.schema]
    if OPERATION in batch.schema.names:
        fields.append(pa.field(OPERATION, pa.string()))
    for column in fields:
        values = batch.column(column.name)
        if is_variant(column.type):
            values = _whole_variant(values, column.type)
        columns.append(values if values.type == column.type else values.cast(column.type))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _whole_variant(values: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    """Gives null variants empty parts: Parquet's form of a variant has both parts required."""
    parts = [pc.fill_null(part, b"") for part in (values.field(0), values.field(1))]
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=values.is_null())


def _checked(table: pa.Table, layout: BucketLayout, result: BucketResult) -> pa.Table:
    """Takes out rows with a null in the key, and counts nulls where the table allows none."""
    null = None
    for name in layout.primary_key:
        column = table.column(name)
        if column.null_count:
            null = pc.is_null(column) if null is None else pc.or_(null, pc.is_null(column))
    if null is not None:
        refused = table.filter(null)
        if not result.null_keys:
            result.null_key_example = str(refused.slice(0, 1).select(list(layout.primary_key)).to_pylist()[0])
        result.null_keys += refused.num_rows
        table = table.filter(pc.invert(null))
    if layout.required:
        kept = (
            table.filter(pc.equal(table.column(OPERATION), "U")) if OPERATION in table.column_names else table
        )
        for name in layout.required:
            if kept.column(name).null_count:
                result.null_columns[name] = result.null_columns.get(name, 0) + kept.column(name).null_count
    return table


def _deduplicated(rows: pa.Table, layout: BucketLayout) -> pa.Table:
    rows = rows.combine_chunks()
    keep = last_of_each_key(key_columns(rows, layout.primary_key), rows.num_rows)
    if len(keep) < rows.num_rows:
        rows = rows.take(pa.array(keep))
    for name in layout.primary_key:
        index = rows.schema.get_field_index(name)
        if pa.types.is_floating(rows.schema.field(index).type):
            rows = rows.set_column(index, rows.schema.field(index), _canonical(rows.column(name)))
    return rows


def _canonical(column: pa.ChunkedArray) -> pa.Array:
    bits = comparable(column.combine_chunks())
    return pa.Array.from_buffers(column.type, len(bits), bits.buffers(), bits.null_count)
