"""Finds which rows of a file have a key among new keys. Plain Arrow arrays in, NumPy positions out.

Two ways, both exact: where both sides are sorted by one column, a binary search over 64-bit codes that keep the order
of the values; else Arrow's hash look-up, column by column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakekit.filestore.keys import Positions

Codes = npt.NDArray[Any]

_PREFIX_BYTES = 8


def match(
    existing: Sequence[pa.Array], new: Sequence[pa.Array], is_sorted: bool = False
) -> tuple[Positions, Positions]:
    """Finds the existing rows whose key is among the new keys.

    Args:
        existing: comparable key columns of the existing rows (see `keys.comparable`).
        new: comparable key columns of the new rows; each key occurs once.
        is_sorted: both are in ascending order of the columns, and each existing key occurs once.

    Returns:
        Two arrays of equal length: positions of existing rows (ascending), and for each the position of the new row.
    """
    if not len(existing[0]) or not len(new[0]):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    if is_sorted and len(existing) == 1 and existing[0].type == new[0].type:
        kind = existing[0].type
        if _has_words(kind):
            return _match_unique(_words(existing[0]), _words(new[0]))
        if _has_text(kind):
            return _match_text(existing[0], new[0])
    return _match_by_hash(existing, new)


def _match_unique(existing: Codes, new: Codes) -> tuple[Positions, Positions]:
    """Matches two ascending arrays without repeats; searching with sorted needles is kind to the cache."""
    if len(new) > len(existing):
        found, positions = _match_unique(new, existing)
        return positions, found
    slots = np.minimum(np.searchsorted(existing, new), len(existing) - 1)
    hits = np.flatnonzero(existing[slots] == new)
    return slots[hits].astype(np.int64), hits.astype(np.int64)


def _match_text(existing: pa.Array, new: pa.Array) -> tuple[Positions, Positions]:
    """Matches sorted texts by the 8 bytes that follow what all have in common.

    Only where these bytes are equal are whole texts compared; new texts that share them are looked up by hash.
    """
    if len(new) < len(existing):
        found, positions = _match_text(new, existing)
        return positions, found
    shared = _shared_length(existing, new)
    old_codes, new_codes = _prefixes(existing, shared), _prefixes(new, shared)
    low = np.searchsorted(new_codes, old_codes, "left")
    high = np.searchsorted(new_codes, old_codes, "right")
    one = np.flatnonzero(high - low == 1)
    candidates = low[one]
    same = pc.equal(existing.take(pa.array(one)), new.take(pa.array(candidates)))
    kept = same.to_numpy(zero_copy_only=False).astype(np.bool_)
    positions, found = one[kept], candidates[kept]
    several = np.flatnonzero(high - low > 1)
    if len(several):
        alike = np.append(new_codes[1:] == new_codes[:-1], False)
        alike[1:] |= alike[:-1]
        among = np.flatnonzero(alike)
        old, slots = _match_by_hash([existing.take(pa.array(several))], [new.take(pa.array(among))])
        positions = np.concatenate([positions, several[old]])
        found = np.concatenate([found, among[slots]])
        order = np.argsort(positions, kind="stable")
        positions, found = positions[order], found[order]
    return positions.astype(np.int64), found.astype(np.int64)


def _match_by_hash(existing: Sequence[pa.Array], new: Sequence[pa.Array]) -> tuple[Positions, Positions]:
    """Matches rows in any order.

    Each column is replaced by its code in the new rows' dictionary; columns are then folded into one code, made dense
    after every step, so the result is exact for any number and type of columns.
    """
    positions, codes = _lookup(existing[0], new[0])
    if len(new) == 1:
        return positions, codes
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


def _has_words(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _has_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _words(column: pa.Array) -> Codes:
    """Returns values of an integer-like type, which sort as they are stored, as integers (without copying)."""
    if not pa.types.is_integer(column.type):
        column = column.view(pa.int64() if column.type.bit_width == 64 else pa.int32())
    words: Codes = column.to_numpy(zero_copy_only=True)
    return words


def _shared_length(*columns: pa.Array) -> int:
    """Returns with how many bytes all texts of sorted columns begin alike: as many as the first and the last do."""
    ends = [bytes(column[i].as_buffer()) for column in columns for i in (0, len(column) - 1)]
    low, high = min(ends), max(ends)
    return next(
        (i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high))
    )


def _prefixes(column: pa.Array, start: int) -> Codes:
    """Returns bytes `start` to `start` + 8 of each text as a big-endian number; a text that ends before counts as 0s.

    Numbers are in the order of the texts, as UTF-8 and binary compare byte by byte.
    """
    _, offset_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    first, lengths = offsets[:-1] + start, np.diff(offsets) - start
    octets = np.frombuffer(data_buffer or b"", dtype=np.uint8)
    if octets.size < _PREFIX_BYTES or int(first[-1]) + _PREFIX_BYTES > octets.size:
        octets = np.append(octets, np.zeros(_PREFIX_BYTES, dtype=np.uint8))
        first = np.minimum(first, octets.size - _PREFIX_BYTES)
    # A view of the 8 bytes at every place of the buffer.
    words: Codes = np.ndarray((octets.size - _PREFIX_BYTES + 1,), dtype=">u8", buffer=octets, strides=(1,))
    codes = words[first].astype(np.uint64)
    if int(lengths.min()) < _PREFIX_BYTES:
        missing = (_PREFIX_BYTES - np.clip(lengths, 0, _PREFIX_BYTES)).astype(np.uint64) * np.uint64(8)
        # Shifting by all 64 bits is not defined, so it is done in two steps.
        half = missing // np.uint64(2)
        codes = codes >> half >> (missing - half) << half << (missing - half)
    return codes
