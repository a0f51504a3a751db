"""Thrift's compact protocol, as far as Parquet metadata needs it.

PyArrow does not show where the page indexes of a Parquet file are, so its footer is read here. The format is
that of Thrift's ``doc/specs/thrift-compact-protocol.md``. Structs become dictionaries from field number to
value.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator, Sequence
from typing import Any

Field = tuple[int, str, Any]
"""A field to write: its number, its type (see `encode`) and its value."""

Buffer = bytes | bytearray | memoryview

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = range(14)
_TYPE_CODES = {"i32": _I32, "i64": _I64, "binary": _BINARY, "struct": _STRUCT, "raw_struct": _STRUCT}


class ThriftError(ValueError):
    """The bytes are no Thrift structure."""


class Reader:
    """Reads values one after the other from a buffer."""

    def __init__(self, data: Buffer, position: int = 0) -> None:
        """Starts at `position`."""
        self._data = bytes(data)
        self.position = position

    def read_struct(self, raw_lists: Container[int] = ()) -> dict[int, Any]:
        """Reads one struct.

        Args:
            raw_lists: numbers of fields whose list elements are wanted as encoded bytes, to be read later or
                copied.

        Raises:
            ThriftError: if the bytes end too early or hold an unknown type.
        """
        try:
            if not raw_lists:
                return self._struct()
            return {
                number: self._raw_elements() if number in raw_lists else self._value(kind)
                for number, kind in self._fields()
            }
        except (IndexError, TypeError, struct.error, RecursionError) as error:
            raise ThriftError("no Thrift structure, or a truncated one") from error

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Yields (field number, type) up to the end of the struct; the caller reads the value in between."""
        number = 0
        while True:
            header = self._data[self.position]
            self.position += 1
            kind = header & 0x0F
            if kind == _STOP:
                return
            delta = header >> 4
            number = number + delta if delta else self._zigzag()
            yield number, kind

    def _struct(self) -> dict[int, Any]:
        return {number: self._value(kind) for number, kind in self._fields()}

    def _value(self, kind: int) -> Any:
        if kind in (_I32, _I64, _I16):
            return self._zigzag()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _STRUCT:
            return self._struct()
        if kind in (_LIST, _SET):
            return [self._element(k) for k in self._list_kinds()]
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        return self._rare(kind)

    def _rare(self, kind: int) -> Any:
        if kind == _BYTE:
            return struct.unpack("<b", self._bytes(1))[0]
        if kind == _DOUBLE:
            return struct.unpack("<d", self._bytes(8))[0]
        if kind == _MAP:
            size = self._varint()
            kinds = self._bytes(1)[0] if size else 0
            return {self._element(kinds >> 4): self._element(kinds & 0x0F) for _ in range(size)}
        if kind == _UUID:
            return self._bytes(16)
        raise ThriftError(f"unknown Thrift type {kind}")

    def _element(self, kind: int) -> Any:
        # In a list a boolean takes a byte; in a struct it is in the field header.
        return self._bytes(1)[0] == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)

    def _list_kinds(self) -> list[int]:
        header = self._data[self.position]
        self.position += 1
        size = header >> 4
        if size == 15:
            size = self._varint()
        if size > len(self._data) - self.position:
            raise ThriftError("a list longer than its buffer")
        return [header & 0x0F] * size

    def _raw_elements(self) -> list[bytes]:
        elements = []
        for kind in self._list_kinds():
            start = self.position
            self._element(kind)
            elements.append(self._data[start : self.position])
        return elements

    def _varint(self) -> int:
        data, position = self._data, self.position
        byte = data[position]
        position += 1
        result = byte & 0x7F
        shift = 7
        while byte & 0x80:
            byte = data[position]
            position += 1
            result |= (byte & 0x7F) << shift
            shift += 7
        self.position = position
        return result

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _bytes(self, size: int) -> bytes:
        start = self.position
        self.position = start + size
        if self.position > len(self._data):
            raise ThriftError("truncated Thrift structure")
        return self._data[start : self.position]


def encode(fields: Sequence[Field]) -> bytes:
    """Writes a struct.

    Args:
        fields: number, type and value of each field, ascending by number. Types: ``i32``, ``i64``,
            ``binary`` (bytes), ``struct`` (fields), ``raw_struct`` (bytes of an encoded struct), ``list<T>``
            of any of these.
    """
    out = bytearray()
    last = 0
    for number, kind, value in fields:
        code = _LIST if kind.startswith("list<") else _TYPE_CODES[kind]
        out.append((number - last) << 4 | code)
        out += _encode_value(kind, value)
        last = number
    out.append(_STOP)
    return bytes(out)


def _encode_value(kind: str, value: Any) -> bytes:
    if kind in ("i32", "i64"):
        return _encode_varint(value << 1 if value >= 0 else ~(value << 1))
    if kind == "binary":
        return _encode_varint(len(value)) + value
    if kind == "struct":
        return encode(value)
    if kind == "raw_struct":
        return bytes(value)
    element = kind[len("list<") : -1]
    code = _TYPE_CODES[element]
    size = len(value)
    head = bytes([size << 4 | code]) if size < 15 else bytes([0xF0 | code]) + _encode_varint(size)
    return head + b"".join(_encode_value(element, item) for item in value)


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
