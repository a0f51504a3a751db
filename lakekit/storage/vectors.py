"""Deletion vectors: which rows of a data file are gone.

They are 64-bit Roaring bitmaps in the format of the Delta protocol. A file is the version byte 1, then
for each vector its length (big-endian), a magic number (little-endian), the portable bitmap, and a CRC-32
(big-endian).
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from lakekit.errors import CorruptLogError
from lakekit.storage.actions import DeletionVector
from lakekit.storage.faults import corrupt_file, missing_file
from lakekit.storage.store import Store

if TYPE_CHECKING:
    from typing_extensions import Self

_MAGIC = 1681511377
_FILE_VERSION = b"\x01"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_Z85 = bytes.maketrans(_B85, _Z85)
_FROM_Z85 = bytes.maketrans(_Z85, _B85)
_UUID_LENGTH = 20


def z85_encode(data: bytes) -> str:
    """Encodes bytes, a multiple of 4, as ZeroMQ's Z85 text."""
    return base64.b85encode(data).translate(_TO_Z85).decode("ascii")


def z85_decode(text: str) -> bytes:
    """Decodes Z85 text.

    Raises:
        ValueError: if it is no Z85 text.
    """
    raw = text.encode("ascii")
    if raw.translate(None, _Z85):
        raise ValueError("not a Z85 text")
    return base64.b85decode(raw.translate(_FROM_Z85))


def positions_of(vector: BitMap64) -> npt.NDArray[np.int64]:
    """Returns the row positions in a vector, ascending."""
    return np.frombuffer(vector.to_array(), dtype=np.uint64).astype(np.int64)


def read_vector(store: Store, vector: DeletionVector | None) -> BitMap64:
    """Returns the positions (from 0) of the removed rows of a data file.

    Args:
        store: the table's folder.
        vector: the descriptor from the log, of storage type ``u`` (file by uuid), ``p`` (absolute path) or
            ``i`` (inline); None, as a file without removed rows has, for an empty vector.

    Raises:
        CorruptLogError: if its file is missing or is not what the descriptor says.
    """
    if vector is None:
        return BitMap64()
    if vector.storage_type == "i":
        where = "deletion vector in the log"
        try:
            data = z85_decode(vector.path_or_inline)[: vector.size]
        except ValueError as error:
            raise corrupt_file(store.root, where, str(error)) from error
    else:
        where = vector_path(vector)
        data = _read_stored(store, where, vector)
    bitmap = _parse_bitmap(store.root, where, data)
    if len(bitmap) != vector.cardinality:
        why = f"it holds {len(bitmap)} rows and not {vector.cardinality}"
        raise corrupt_file(store.root, where, why)
    return bitmap


def vector_path(vector: DeletionVector) -> str:
    """Returns the file of a stored vector: relative to the table for type ``u``, absolute for type ``p``."""
    if vector.storage_type == "p":
        return vector.path_or_inline
    # A writer may have put the file into a folder with a random name, which stands before the uuid.
    prefix, encoded = vector.path_or_inline[:-_UUID_LENGTH], vector.path_or_inline[-_UUID_LENGTH:]
    try:
        name = f"deletion_vector_{uuid.UUID(bytes=z85_decode(encoded))}.bin"
    except ValueError as error:
        named = f"The log names a deletion vector {vector.path_or_inline!r} of storage type"
        raise CorruptLogError(
            f"{named} {vector.storage_type!r}, which is no file: {error}.", "Restore the log from a backup."
        ) from error
    return f"{prefix}/{name}" if prefix else name


def _read_stored(store: Store, where: str, vector: DeletionVector) -> bytes:
    try:
        raw = store.read_range(where, vector.offset or 0, vector.size + 8)
    except FileNotFoundError as error:
        raise missing_file(store.root, where) from error
    data = raw[4:-4]
    if len(raw) != vector.size + 8 or struct.unpack(">I", raw[:4])[0] != vector.size:
        raise corrupt_file(store.root, where, "the vector does not have the length that the log says")
    if struct.unpack(">I", raw[-4:])[0] != zlib.crc32(data):
        raise corrupt_file(store.root, where, "the checksum of the vector is wrong")
    return data


def _parse_bitmap(root: str, where: str, data: bytes) -> BitMap64:
    if len(data) < 12 or struct.unpack("<I", data[:4])[0] != _MAGIC:
        raise corrupt_file(root, where, "it is no deletion vector")
    try:
        return BitMap64.deserialize(data[4:])
    except (ValueError, MemoryError, OverflowError) as error:
        raise corrupt_file(root, where, f"the bitmap is damaged ({error})") from error


def _serialize(bitmap: BitMap64) -> bytes:
    return struct.pack("<I", _MAGIC) + bytes(bitmap.serialize())


class VectorFileWriter:
    """Writes the vectors of one task into one file, which appears with `close`, and only if it holds any.

    Nothing refers to the file until its descriptors are committed: a failed task leaves garbage for vacuum.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._id = uuid.uuid4()
        self._data = bytearray(_FILE_VERSION)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()

    def add(self, bitmap: BitMap64) -> DeletionVector:
        """Adds a vector and returns the descriptor for the log."""
        bitmap = bitmap.copy()
        bitmap.run_optimize()
        data = _serialize(bitmap)
        offset = len(self._data)
        self._data += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        return DeletionVector("u", z85_encode(self._id.bytes), offset, len(data), len(bitmap))

    def close(self) -> None:
        """Writes the file; call it before the descriptors are committed."""
        if len(self._data) > len(_FILE_VERSION):
            self._store.put(f"deletion_vector_{self._id}.bin", bytes(self._data))
            self._data = bytearray(_FILE_VERSION)
            self._id = uuid.uuid4()
