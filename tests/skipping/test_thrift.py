"""The compact protocol: what is written is read, and nonsense is refused."""

from __future__ import annotations

import contextlib
import random

import pytest

from lakekit.skipping.thrift import Reader, ThriftError, encode

FIELDS = [
    (1, "i32", -1),
    (2, "i64", 2**62),
    (3, "binary", b"text"),
    (5, "list<i32>", list(range(-8, 9))),
    (6, "list<binary>", [b"", b"a"]),
    (7, "struct", [(1, "i32", 5)]),
    (9, "list<struct>", [[(1, "i64", i)] for i in range(3)]),
    (12, "raw_struct", encode([(4, "i32", 300)])),
]


def test_what_is_written_is_read():
    assert Reader(encode(FIELDS)).read_struct() == {
        1: -1,
        2: 2**62,
        3: b"text",
        5: list(range(-8, 9)),
        6: [b"", b"a"],
        7: {1: 5},
        9: [{1: 0}, {1: 1}, {1: 2}],
        12: {4: 300},
    }


def test_elements_can_be_had_as_bytes():
    raw = Reader(encode(FIELDS)).read_struct(raw_lists={9})
    assert [Reader(element).read_struct() for element in raw[9]] == [{1: 0}, {1: 1}, {1: 2}]
    assert raw[12] == {4: 300}


def test_the_types_that_are_only_read():
    data = bytes([0x11, 0x12, 0x13, 0xFF, 0x17]) + b"\0\0\0\0\0\0\xf8?" + bytes([0x19, 0x21, 1, 2])
    data += bytes([0x1B, 1, 0x85]) + bytes([1, 97, 4]) + bytes([0x04, 80, 6, 0])
    assert Reader(data).read_struct() == {
        1: True,
        2: False,
        3: -1,
        4: 1.5,
        5: [True, False],
        6: {b"a": 2},
        40: 3,
    }


@pytest.mark.parametrize("end", range(len(encode(FIELDS))))
def test_cut_off_data(end):
    with pytest.raises(ThriftError):
        Reader(encode(FIELDS)[:end]).read_struct()


def test_noise_never_fails_in_another_way():
    at = random.Random(7)
    for _ in range(3000):
        with contextlib.suppress(ThriftError):
            Reader(at.randbytes(at.randint(1, 60))).read_struct(raw_lists={2} if at.random() < 0.5 else ())
