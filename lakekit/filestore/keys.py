"""Vectorised work on primary keys: plain Arrow arrays in, NumPy positions out.

Nothing here does I/O. Rows are compared on *comparable* columns (see `comparable`), so that equality of keys is
that of Spark's joins: ``-0.0`` equals ``0.0`` and every NaN equals every other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def comparable(column: pa.Array) -> pa.Array:
    """Returns the column in a form in which equal keys have equal values.

    Floats become their bit pattern after ``-0.0`` and NaN were made canonical; other types are returned as they are.
    """
    if not pa.types.is_floating(column.type):
        return column
    values = column.to_numpy(zero_copy_only=False) + 0.0  # -0.0 + 0.0 is 0.0
    values[np.isnan(values)] = np.nan
    bits = np.int64 if values.dtype == np.float64 else np.int32
    return pa.array(values.view(bits), mask=_nulls(column))


def sortable(column: pa.Array) -> pa.Array:
    """Returns the column in a form that Arrow sorts as Spark does: NaN last, and the same for -0.0 and 0.0."""
    values = comparable(column)
    if pa.types.is_floating(column.type):
        # Bits of floats are in order but for the negative ones, whose order is reversed.
        bits = values.fill_null(0).to_numpy()
        lowest = np.iinfo(bits.dtype).max
        return pa.array(np.where(bits < 0, bits ^ lowest, bits), mask=_nulls(values))
    return values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values


def sort_order(columns: Sequence[pa.Array]) -> pa.Array:
    """Returns the positions that bring rows into the ascending order of sortable columns."""
    names = [str(i) for i in range(len(columns))]
    table = pa.Table.from_arrays(list(columns), names)
    return pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names])


def within(positions: Positions, offset: int, length: int) -> Positions:
    """Returns those of ascending positions that are among `length` rows from `offset` on, counted from `offset`."""
    low, high = np.searchsorted(positions, [offset, offset + length])
    return positions[low:high] - offset


def _nulls(column: pa.Array) -> Mask:
    mask: Mask = column.is_null().to_numpy(zero_copy_only=False)
    return mask


def key_columns(table: pa.Table | pa.RecordBatch, names: Sequence[str]) -> list[pa.Array]:
    """Returns the named columns, each as one comparable array."""
    columns = []
    for name in names:
        column = table.column(name)
        columns.append(comparable(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column))
    return columns


def differs_from_next(columns: Sequence[pa.Array], length: int) -> Mask:
    """Returns, for each of `length` rows but the last, whether the key differs from the next row's."""
    changed = np.zeros(max(length - 1, 0), dtype=np.bool_)
    for column in columns:
        changed |= pc.not_equal(column[:-1], column[1:]).to_numpy(zero_copy_only=False).astype(np.bool_)
    return changed


def last_of_each_key(columns: Sequence[pa.Array], length: int) -> Positions:
    """Returns the positions of the last row of each key, in rows sorted by key."""
    if length == 0:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.append(differs_from_next(columns, length), True)).astype(np.int64)
