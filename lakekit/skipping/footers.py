"""A cache of what never changes: footers, page indexes and columns of data files, and deletion vectors.

A data file's name holds a uuid and the file is never written again, so what was read of it stays true as long
as the process lives. The same goes for a deletion vector and its descriptor.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from lakekit.skipping.parquet_index import DataFileError, ParquetIndex
from lakekit.storage.actions import DeletionVector
from lakekit.storage.store import Store
from lakekit.storage.vectors import read_vector

if TYPE_CHECKING:
    import pyarrow as pa
    from pyroaring import BitMap64

T = TypeVar("T")
Keep: TypeAlias = "Callable[[Hashable, Callable[[], pa.Array]], pa.Array]"
"""Returns a part of a data file that has been read before, or else what the function reads."""

_FOOTER_BYTES = 256 << 20
_VECTOR_BYTES = 128 << 20
_COLUMN_BYTES = 128 << 20


class Cache(Generic[T]):
    """The values used last, up to a total weight; safe to use from many threads."""

    def __init__(self, capacity: int, weigh: Callable[[T], int], largest: float = math.inf) -> None:
        """Sets the total weight, the function that weighs a value, and the weight above which one is not kept."""
        self._capacity = capacity
        self._weigh = weigh
        self._largest = largest
        self._entries: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._total = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Returns the value of a key, made if it is not there."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                return entry[0]
        # Made without the lock: two threads may make the same value, but no thread waits for another's I/O.
        value = make()
        weight = self._weigh(value)
        with self._lock:
            if key not in self._entries and weight <= self._largest:
                self._entries[key] = (value, weight)
                self._total += weight
                while self._total > self._capacity and len(self._entries) > 1:
                    self._total -= self._entries.popitem(last=False)[1][1]
            return value


_footers: Cache[ParquetIndex] = Cache(_FOOTER_BYTES, lambda index: index.weight)
_vectors: Cache[BitMap64] = Cache(_VECTOR_BYTES, lambda bitmap: 1024 + 2 * len(bitmap))
_columns: Cache[pa.Array] = Cache(
    _COLUMN_BYTES, lambda values: 512 + values.get_total_buffer_size(), largest=_COLUMN_BYTES // 8
)


def open_data_file(store: Store, path: str) -> pa.NativeFile:
    """Opens a data file for random access.

    Raises:
        DataFileError: if it is missing.
    """
    try:
        return store.open_input(path)
    except FileNotFoundError:
        raise DataFileError.of(path, "it is missing") from None


def footer_of(store: Store, path: str) -> ParquetIndex:
    """Returns the footer of a data file.

    Raises:
        DataFileError: if the file is missing or damaged.
    """

    def make() -> ParquetIndex:
        with open_data_file(store, path) as source:
            return ParquetIndex.read(source, path)

    return _footers.get((store.root, path), make)


def vector_of(store: Store, vector: DeletionVector) -> BitMap64:
    """Returns the removed rows of a data file.

    Raises:
        CorruptLogError: if the vector's file is missing or damaged.
    """
    return _vectors.get((store.root, vector.unique_id), lambda: read_vector(store, vector))


def columns_of(store: Store, path: str) -> Keep:
    """Returns the function that keeps columns of a data file, as they are decoded."""
    return lambda part, read: _columns.get((store.root, path, part), read)
