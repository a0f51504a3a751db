"""Finds rows that no record can hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lakekit.errors import LogStoreError
from lakekit.filestore.merge import file_batches
from lakekit.logstore.emission import Target
from lakekit.logstore.values import to_json
from lakekit.storage.store import Store

OVERHEAD_BYTES = 512
"""What headers, lengths and the batch around a record may add to it, beside its key."""
_ESCAPED = 6
"""Bytes that JSON needs at most for one byte of a text."""
_PLAIN = 32
"""Bytes that JSON needs at most for a value of a type with a fixed width."""


def largest_record(target: Target, paths: Sequence[str], limit: int) -> int:
    """Returns the size of the largest record that rows of new data files need, or any number up to `limit`.

    Args:
        target: the table's log.
        paths: of the files.
        limit: bytes that are allowed; only rows that may need more are looked at closely.
    """
    store, largest = Store(target.root), 0
    columns = pa.schema([f for f in target.schema if not _has_width(f.type)])
    fixed = OVERHEAD_BYTES + sum(len(f.name) + _PLAIN for f in target.schema)
    for path in paths if len(columns) else ():
        for _, rows in file_batches(store, path, columns):
            bound = pc.add(reduce(pc.add, map(_bound, rows.columns)), fixed)
            suspects = rows.filter(pc.greater(bound, limit))
            largest = max([largest, *(len(value) + fixed for value in to_json(suspects))])
    return largest


def check_texts(rows: pa.Table) -> None:
    """Refuses texts that are not UTF-8, which Spark makes of any bytes, and JSON cannot hold.

    Raises:
        LogStoreError: naming the column.
    """
    for name, kind in zip(rows.schema.names, rows.schema.types, strict=True):
        if pa.types.is_string(kind):
            try:
                rows.column(name).cast(pa.binary()).cast(pa.string())
            except pa.ArrowInvalid:
                raise LogStoreError.no_text(name) from None


def _has_width(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind))


def _bound(column: pa.ChunkedArray) -> pa.Array:
    """Returns for each value how many bytes it needs at most, key included; a nested one is measured."""
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return pc.multiply(pc.fill_null(pc.binary_length(column), 0).cast(pa.int64()), _ESCAPED)
    texts = to_json(pa.table({"": column}))
    return pa.chunked_array([pa.array([len(text) for text in texts], pa.int64())])
