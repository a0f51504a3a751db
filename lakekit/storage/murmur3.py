"""Spark's `hash` (Murmur3 x86 32 bit, seed 42) over Arrow arrays, vectorised.

It follows `org.apache.spark.unsafe.hash.Murmur3_x86_32` and Catalyst's `Murmur3HashFunction`: a null leaves
the running hash as it is, each column's hash is the seed of the next, and the last 0 to 3 bytes of a text are
mixed one by one (which differs from the original Murmur3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

UInt32s = npt.NDArray[np.uint32]
ArrowColumn: TypeAlias = pa.Array | pa.ChunkedArray

_SEED = 42
_LONG_DIGITS = 18


def spark_hash(columns: Sequence[ArrowColumn]) -> npt.NDArray[np.int32]:
    """Returns what Spark's ``hash(col1, col2, …)`` returns for each row.

    Args:
        columns: at least one array, all of one length; booleans, integers, floats, texts, binaries, dates,
            timestamps in microseconds and decimals.

    Raises:
        TypeError: if a column is of another type.
    """
    arrays = [_one_array(column) for column in columns]
    seeds: UInt32s = np.full(len(arrays[0]), _SEED, dtype=np.uint32)
    with np.errstate(over="ignore"):
        for array in arrays:
            hashed = _hash_array(array, seeds)
            seeds = np.where(_valid(array), hashed, seeds) if array.null_count else hashed
    return seeds.view(np.int32)


def bucket_of(columns: Sequence[ArrowColumn], buckets: int) -> npt.NDArray[np.int32]:
    """Returns ``pmod(hash(col1, col2, …), buckets)`` for each row, from 0 to `buckets` - 1."""
    return np.mod(spark_hash(columns), np.int32(buckets)).astype(np.int32)


def _one_array(column: ArrowColumn) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # combine_chunks of very large texts stays chunked
        array = pa.concat_arrays(array.cast(_large(array.type)).chunks)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _large(kind: pa.DataType) -> pa.DataType:
    return {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(kind, kind)


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _hash_array(array: pa.Array, seeds: UInt32s) -> UInt32s:
    kind = array.type
    if pa.types.is_null(kind):
        return seeds
    if pa.types.is_boolean(kind):
        return _hash_int(_values(array.cast(pa.int8()), np.int8).astype(np.int32), seeds)
    if pa.types.is_integer(kind) and kind.bit_width < 64 and pa.types.is_signed_integer(kind):
        return _hash_int(_values(array, kind.to_pandas_dtype()).astype(np.int32), seeds)
    if pa.types.is_date32(kind):
        return _hash_int(_values(array.view(pa.int32()), np.int32), seeds)
    if pa.types.is_int64(kind):
        return _hash_long(_values(array, np.int64), seeds)
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return _hash_long(_values(array.view(pa.int64()), np.int64), seeds)
    if pa.types.is_float32(kind):
        return _hash_int(_canonical(_values(array, np.float32)).view(np.int32), seeds)
    if pa.types.is_float64(kind):
        return _hash_long(_canonical(_values(array, np.float64)).view(np.int64), seeds)
    if pa.types.is_decimal128(kind):
        return _hash_decimal(array, seeds)
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        return _hash_var_binary(array, np.dtype(np.int32), seeds)
    if pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        return _hash_var_binary(array, np.dtype(np.int64), seeds)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        plain = pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()
        return _hash_var_binary(array.cast(plain), np.dtype(np.int64), seeds)
    raise TypeError(f"Spark's hash is not implemented for Arrow type {kind}")


def _values(array: pa.Array, dtype: Any) -> npt.NDArray[Any]:
    """The array's own buffer, nulls holding whatever they hold: their hash is not used."""
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), dtype=dtype)
    itemsize = np.dtype(dtype).itemsize
    return np.frombuffer(buffer, dtype=dtype, count=len(array), offset=array.offset * itemsize)


def _canonical(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # Spark hashes -0.0 as 0.0, and every NaN as the canonical one.
    clean = values + values.dtype.type(0)
    clean[np.isnan(clean)] = np.nan
    return clean


def _rotate(words: UInt32s, bits: int) -> UInt32s:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _mix(words: UInt32s, state: UInt32s) -> UInt32s:
    words = _rotate(words * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return _rotate(state ^ words, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _finish(state: UInt32s, lengths: UInt32s | np.uint32) -> UInt32s:
    state = state ^ lengths
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return state ^ (state >> np.uint32(16))


def _hash_int(values: npt.NDArray[np.int32], seeds: UInt32s) -> UInt32s:
    return _finish(_mix(values.view(np.uint32), seeds), np.uint32(4))


def _hash_long(values: npt.NDArray[np.int64], seeds: UInt32s) -> UInt32s:
    bits = values.view(np.uint64)
    low = bits.astype(np.uint32)
    high = (bits >> np.uint64(32)).astype(np.uint32)
    return _finish(_mix(high, _mix(low, seeds)), np.uint32(8))


def _hash_var_binary(array: pa.Array, offset_type: np.dtype[Any], seeds: UInt32s) -> UInt32s:
    _, offset_buffer, data_buffer = array.buffers()
    count = len(array)
    if not count:
        return seeds
    start = array.offset * offset_type.itemsize
    offsets = np.frombuffer(offset_buffer, dtype=offset_type, count=count + 1, offset=start).astype(np.int64)
    data = (
        np.frombuffer(data_buffer, dtype=np.uint8)
        if data_buffer is not None and data_buffer.size
        else _NO_BYTES
    )
    return _hash_bytes(data, offsets[:-1], np.diff(offsets), seeds)


_NO_BYTES: npt.NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)


def _hash_bytes(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], seeds: UInt32s
) -> UInt32s:
    """Hashes byte strings that lie in one buffer: little-endian words first, then the rest byte by byte."""
    state = seeds.copy()
    whole = lengths // 4
    if data.size >= 4:
        # A view of every unaligned 4-byte word of the buffer.
        words: UInt32s = np.ndarray((data.size - 3,), dtype="<u4", buffer=data, strides=(1,))
        _mix_words(words, starts, whole, state)
    _mix_tails(data, starts + whole * 4, lengths % 4, state)
    return _finish(state, lengths.astype(np.uint32))


def _mix_words(
    words: UInt32s, starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], state: UInt32s
) -> None:
    longest = int(counts.max(initial=0))
    if longest and int(counts.min()) == longest:
        for step in range(longest):
            state[:] = _mix(words[starts + step * 4], state)
        return
    rows = np.flatnonzero(counts)
    for step in range(longest):
        rows = rows[counts[rows] > step]
        state[rows] = _mix(words[starts[rows] + step * 4], state[rows])


def _mix_tails(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], state: UInt32s
) -> None:
    for step in range(3):
        rows = np.flatnonzero(counts > step)
        if not rows.size:
            return
        # A byte is signed in Java, so it is widened with its sign.
        tail = data[starts[rows] + step].view(np.int8).astype(np.int32).view(np.uint32)
        state[rows] = _mix(tail, state[rows])


def _hash_decimal(array: pa.Array, seeds: UInt32s) -> UInt32s:
    count = len(array)
    raw = _values(array, np.dtype("V16")).view(np.uint8).reshape(count, 16)
    if array.type.precision <= _LONG_DIGITS:
        return _hash_long(np.ascontiguousarray(raw[:, :8]).view(np.int64).reshape(count), seeds)
    # java.math.BigInteger.toByteArray: big-endian two's complement in as few bytes as hold the sign.
    big_endian = np.ascontiguousarray(raw[:, ::-1])
    fill = np.where(big_endian[:, :1] >= 0x80, 0xFF, 0x00).astype(np.uint8)
    differs = big_endian != fill
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), 15)
    lead = big_endian[np.arange(count), first]
    needs_sign_byte = ((lead ^ fill[:, 0]) >= 0x80) & differs.any(axis=1)
    first = first - needs_sign_byte
    starts = np.arange(count, dtype=np.int64) * 16 + first
    return _hash_bytes(big_endian.reshape(-1), starts, (16 - first).astype(np.int64), seeds)
