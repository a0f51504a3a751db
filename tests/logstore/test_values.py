from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from lakekit.logstore.values import from_json, keys_to_json, to_json

UTC = dt.timezone.utc
MOMENT = dt.datetime(2022, 1, 1, 1, 2, 3, 4, tzinfo=UTC)
ROWS = pa.table(
    {
        "i": pa.array([1, None, 2**62]),
        "f": pa.array([1.5, math.nan, -math.inf]),
        "s": pa.array(['a"b', None, "ü"]),
        "b": pa.array([b"\x00\xff", None, b""]),
        "d": pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
        "t": pa.array([MOMENT, None, MOMENT.replace(year=1)], pa.timestamp("us", "UTC")),
        "zoned": pa.array([MOMENT, None, None], pa.timestamp("us", "Europe/Berlin")),
        "n": pa.array(
            [MOMENT.replace(tzinfo=None), None, MOMENT.replace(year=1950, tzinfo=None)], pa.timestamp("us")
        ),
        "dec": pa.array([Decimal("1.50"), None, Decimal("0.00")], pa.decimal128(38, 2)),
        "st": pa.array(
            [{"a": 1, "t": MOMENT.replace(tzinfo=None)}, None, {"a": None, "t": None}],
            pa.struct([("a", pa.int32()), ("t", pa.timestamp("us"))]),
        ),
        "l": pa.array([[1.0, math.nan], None, []], pa.list_(pa.float32())),
        "m": pa.array([[("x", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "mi": pa.array([[(5, dt.date(2020, 1, 1))], None, []], pa.map_(pa.int64(), pa.date32())),
        "bo": pa.array([True, None, False]),
    }
)


@pytest.mark.parametrize("rows", [ROWS, ROWS.slice(1), ROWS.slice(2)], ids=["all", "from 1", "from 2"])
def test_rows_come_back_as_they_were(rows):
    back = from_json(to_json(rows), rows.schema)
    assert repr(back.to_pylist()) == repr(rows.to_pylist())  # repr: NaN equals itself


def test_each_type_is_written_as_documented():
    assert json.loads(to_json(ROWS)[0]) == {
        "i": 1,
        "f": 1.5,
        "s": 'a"b',
        "b": "AP8=",
        "d": "0001-01-01",
        "t": "2022-01-01T01:02:03.000004Z",
        "zoned": "2022-01-01T01:02:03.000004Z",
        "n": "2022-01-01T01:02:03.000004",
        "dec": "1.50",
        "st": {"a": 1, "t": "2022-01-01T01:02:03.000004"},
        "l": [1.0, "NaN"],
        "m": {"x": 1},
        "mi": [{"key": 5, "value": "2020-01-01"}],
        "bo": True,
    }


def test_keys_are_arrays_in_the_order_of_the_key():
    assert keys_to_json(ROWS, ["s", "i"])[0] == b'["a\\"b",1]'


def test_columns_that_a_record_lacks_are_null_and_others_left_out():
    schema = pa.schema([("k", pa.int64()), ("new", pa.string())])
    assert from_json([b'{"k":1,"dropped":2}'], schema).to_pylist() == [{"k": 1, "new": None}]


@pytest.mark.parametrize("value", [b'{"k":"x"}', b"no json", b'{"k":1.5}'])
def test_a_value_that_does_not_fit_is_refused(value):
    with pytest.raises(ValueError, match=r"."):
        from_json([value], pa.schema([("k", pa.int64())]))
