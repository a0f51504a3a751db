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
    return pa.array(values.view(bits), mask=column.is_null().to_numpy(zero_copy_only=False))


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


def match(existing: Sequence[pa.Array], new: Sequence[pa.Array]) -> tuple[Positions, Positions]:
    """Finds the existing rows whose key is among the new keys.

    Args:
        existing: comparable key columns of the existing rows.
        new: comparable key columns of the new rows; each key occurs once.

    Returns:
        Two arrays of equal length: positions of existing rows (ascending), and for each the position of the new row.

    Each column is replaced by its code in the new rows' dictionary; columns are then folded into one code, made dense
    after every step, so the result is exact for any number and type of columns.
    """
    positions, codes = _lookup(existing[0], new[0])
    new_codes = _codes(new[0])
    for old_column, new_column in zip(existing[1:], new[1:], strict=True):
        kept, column_codes = _lookup(old_column.take(pa.array(positions)), new_column)
        size = np.int64(len(new_column) + 1)
        folded = codes[kept] * size + column_codes
        new_folded = new_codes * size + _codes(new_column)
        dictionary = np.unique(new_folded)
        new_codes = np.searchsorted(dictionary, new_folded)
        slots = np.minimum(np.searchsorted(dictionary, folded), len(dictionary) - 1)
        hit = dictionary[slots] == folded
        positions, codes = positions[kept][hit], slots[hit]
    order = np.argsort(new_codes, kind="stable")
    return positions, order[np.searchsorted(new_codes, codes, sorter=order)].astype(np.int64)


def _lookup(existing: pa.Array, new: pa.Array) -> tuple[Positions, Positions]:
    """Returns positions of existing values that occur in `new`, and their code there (see `_codes`)."""
    found = pc.index_in(existing, value_set=new)
    positions = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False)).astype(np.int64)
    return positions, found.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)


def _codes(column: pa.Array) -> Positions:
    """Returns for each value the position of its first occurrence in the column."""
    codes: Positions = pc.index_in(column, value_set=column).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes
