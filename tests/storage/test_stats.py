import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from lakekit.storage.stats import (
    ColumnStats,
    StatsCollector,
    collect_stats,
    column_types,
    read_value,
    upper_prefix,
)

UTC = timezone.utc
NEARLY_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_001)  # noqa: DTZ001
NOON = datetime(2020, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)


def bounds(values, kind, full=()):
    found = json.loads(collect_stats(pa.table({"c": pa.array(values, kind)}), full))
    assert found["numRecords"] == len(values)
    return found["minValues"].get("c"), found["maxValues"].get("c"), found["nullCount"].get("c")


@pytest.mark.parametrize(
    ("values", "kind", "low", "high"),
    [
        ([3, None, -1], pa.int64(), -1, 3),
        ([2**63 - 1, -(2**63)], pa.int64(), -(2**63), 2**63 - 1),
        ([1, 2], pa.int8(), 1, 2),
        ([1.5, -2.0], pa.float64(), -2.0, 1.5),
        (["b", "a", ""], pa.string(), "", "b"),
        ([date(2020, 2, 1), date(1, 1, 1)], pa.date32(), "0001-01-01", "2020-02-01"),
        ([NOON], pa.timestamp("us", "UTC"), "2020-01-01T12:00:00.123Z", "2020-01-01T12:00:00.124Z"),
        ([NOON], pa.timestamp("us", "Asia/Tokyo"), "2020-01-01T12:00:00.123Z", "2020-01-01T12:00:00.124Z"),
        (
            [NOON.replace(tzinfo=None)],
            pa.timestamp("us"),
            "2020-01-01T12:00:00.123",
            "2020-01-01T12:00:00.124",
        ),
        ([NEARLY_1970], pa.timestamp("us"), "1969-12-31T23:59:59.999", None),
    ],
)
def test_bounds_as_delta_writes_them(values, kind, low, high):
    found = bounds(values, kind)
    assert found[0] == low
    assert found[1] == (high or "1970-01-01T00:00:00.000")
    assert found[2] == values.count(None)


def test_decimals_keep_their_digits():
    values = [Decimal("123456789012345678901234567.8901234567"), Decimal("-0.0000000001"), None]
    text = collect_stats(pa.table({"c": pa.array(values, pa.decimal128(38, 10))}))
    assert '"minValues":{"c":-0.0000000001}' in text
    assert '"maxValues":{"c":123456789012345678901234567.8901234567}' in text


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ([1.0, float("nan"), 2.0], (None, None)),
        ([float("nan")], (None, None)),
        ([float("-inf"), 1.0], (None, 1.0)),
        ([1.0, float("inf")], (1.0, None)),
        ([0.0, -0.0], (0.0, 0.0)),
    ],
)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_floats_that_json_cannot_hold_have_no_bound(values, want, kind):
    assert bounds(values, kind)[:2] == want


def test_a_nan_in_a_later_batch_counts():
    schema = pa.schema([("c", pa.float64())])
    collector = StatsCollector(schema)
    for values in ([1.0], [float("nan")], [2.0]):
        collector.update(pa.record_batch([pa.array(values)], schema=schema))
    assert json.loads(collector.to_json())["maxValues"] == {}


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.bool_(), pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32())]
)
def test_types_without_an_order_have_null_counts_only(kind):
    found = json.loads(collect_stats(pa.table({"c": pa.array([None, None], kind)})))
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({}, {}, {"c": 2})


def test_all_nulls_and_no_rows():
    assert bounds([None, None], pa.int32()) == (None, None, 2)
    assert bounds([], pa.string()) == (None, None, 0)


def test_dates_and_times_python_has_not():
    days = pa.array([-1_000_000, 5_000_000], pa.int32()).cast(pa.date32())
    micros = pa.array([-(10**17), 3 * 10**17], pa.int64()).cast(pa.timestamp("us", "UTC"))
    found = json.loads(collect_stats(pa.table({"d": days, "t": micros})))
    assert (found["minValues"], found["maxValues"]) == ({}, {})
    assert found["nullCount"] == {"d": 0, "t": 0}


def test_long_texts_are_cut_unless_they_are_keys():
    value = "k" * 40
    assert bounds([value], pa.string()) == ("k" * 32, "k" * 32 + "\x7f", 0)
    assert bounds([value], pa.string(), full=["c"]) == (value, value, 0)
    assert bounds([value], pa.large_string(), full=["c"]) == (value, value, 0)
    assert bounds([value], pa.dictionary(pa.int32(), pa.string())) == ("k" * 32, "k" * 32 + "\x7f", 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "short",
        "x" * 33,
        "x" * 32 + "\x7f",
        "é" * 50,
        "日" * 50,
        "😀" * 50,
        "x" * 32 + "\U0010fffe" * 3,
        "\0" * 40,
    ],
)
def test_upper_prefix_sorts_after_what_it_stands_for(text):
    prefix = upper_prefix(text, 32)
    assert prefix.encode() >= text.encode()
    assert len(prefix) <= 33


def test_upper_prefix_of_the_highest_text():
    assert upper_prefix("\U0010ffff" * 40, 32) is None
    found = bounds(["\U0010ffff" * 40], pa.string())
    assert found[1] is None


def test_nested_structs():
    kind = pa.struct([("a", pa.int32()), ("in.ner", pa.struct([("d", pa.date32())]))])
    rows = [{"a": 5, "in.ner": {"d": date(2020, 1, 1)}}, None, {"a": None, "in.ner": None}]
    found = json.loads(collect_stats(pa.table({"s": pa.array(rows, kind)})))
    assert found["minValues"] == {"s": {"a": 5, "in.ner": {"d": "2020-01-01"}}}
    assert found["nullCount"] == {"s": {"a": 2, "in.ner": {"d": 2}}}


def test_a_variant_has_no_statistics():
    # Delta writes a number where a struct has an object, and what arrives from Spark looks like a struct.
    kind = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    found = json.loads(collect_stats(pa.table({"id": [1], "v": pa.array([None], kind)})))
    assert found["nullCount"] == {"id": 0}


def test_batches_add_up():
    table = pa.table({"id": list(range(1000)), "s": [str(n) if n % 7 else None for n in range(1000)]})
    collector = StatsCollector(table.schema)
    for batch in table.to_batches(max_chunksize=17):
        collector.update(batch)
    assert collector.to_json() == collect_stats(table)
    assert collector.num_records == 1000


def test_tightness():
    collector = StatsCollector(pa.schema([("id", pa.int32())]))
    assert json.loads(collector.to_json())["tightBounds"] is True
    assert json.loads(collector.to_json(tight=False))["tightBounds"] is False


def test_names_and_texts_are_escaped():
    table = pa.table({'a "quoted" \\ name': ['x"\\\n\0', "é"]})
    assert json.loads(collect_stats(table))["maxValues"] == {'a "quoted" \\ name': "é"}


# -- reading


def stats_of(low, high, **types):
    return ColumnStats.parse(json.dumps({"numRecords": 9, "minValues": low, "maxValues": high}), types)


@pytest.mark.parametrize(
    ("kind", "low", "high", "want"),
    [
        ("long", 1, 2, (1, 2)),
        ("double", 1, 2.5, (1.0, 2.5)),
        ("string", "a", "b", ("a", "b")),
        ("date", "2020-01-01", "2020-01-02", (date(2020, 1, 1), date(2020, 1, 2))),
        ("date", "2020-01-01", "NaN", None),
        ("double", "NaN", "NaN", None),
        ("double", "-Infinity", 1, (float("-inf"), 1.0)),
        ("boolean", True, False, (True, False)),
        ("long", None, 2, None),
        ("array", 1, 2, None),
        ("collated string", "a", "b", None),
    ],
)
def test_ranges_are_typed(kind, low, high, want):
    assert stats_of({"c": low}, {"c": high}, c=kind).range("c") == want


def test_a_float_bound_is_the_float_that_was_written():
    value = pa.array([1 / 7], pa.float32())[0].as_py()
    found = stats_of({"c": 0.14285715}, {"c": 0.14285715}, c="float").range("c")
    assert found == (value, value)
    own = ColumnStats.parse(collect_stats(pa.table({"c": pa.array([1 / 7], pa.float32())})), {"c": "float"})
    assert own.range("c") == (value, value)


def test_decimals_are_exact():
    text = '{"numRecords":1,"minValues":{"c":0.1},"maxValues":{"c":12345678901234567890.12}}'
    found = ColumnStats.parse(text, {"c": "decimal(22,2)"}).range("c")
    assert found == (Decimal("0.1"), Decimal("12345678901234567890.12"))


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01T12:00:00.123Z",
        "2020-01-01T07:00:00.123-05:00",
        "2020-01-01 12:00:00.123",
        "2020-01-01T12:00:00.1230Z",
    ],
)
def test_timestamps_cut_to_milliseconds_still_bound(text):
    low, high = stats_of({"c": text}, {"c": text}, c="timestamp").range("c")
    assert low <= NOON <= high
    assert low.tzinfo is UTC
    assert high - low < timedelta(milliseconds=1)


def test_timestamps_without_zone():
    text = "2020-01-01T12:00:00"
    low, _ = stats_of({"c": text}, {"c": text}, c="timestamp_ntz").range("c")
    assert low == datetime(2020, 1, 1, 12)  # noqa: DTZ001 - a time without zone


def test_what_we_write_we_read():
    table = pa.table(
        {
            "id": [1, None, 5],
            "at": pa.array([NOON, NOON + timedelta(hours=1), None], pa.timestamp("us", "UTC")),
            "s": pa.array([{"x": "a"}, None, {"x": "b"}]),
        }
    )
    inner = {"type": "struct", "fields": [{"name": "x", "type": "string"}]}
    found = ColumnStats.parse(collect_stats(table), {"id": "long", "at": "timestamp", "s": inner})
    assert (found.num_records, found.tight) == (3, True)
    assert found.range("id") == (1, 5)
    assert found.range(("s", "x")) == ("a", "b")
    assert (found.null_count("id"), found.null_count(("s", "x")), found.null_count("s")) == (1, 1, None)
    low, high = found.range("at")
    assert low <= NOON
    assert high >= NOON + timedelta(hours=1)
    assert found.range("nothing") is None
    assert found.null_count("nothing") is None


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", '{"minValues":null}'])
def test_statistics_that_are_not_there(text):
    found = ColumnStats.parse(text, {"id": "long"})
    assert (found.num_records, found.range("id"), found.null_count("id")) == (None, None, None)


def test_collated_texts_have_an_order_of_their_own():
    schema = {
        "fields": [
            {"name": "a", "type": "string", "metadata": {}},
            {"name": "b", "type": "string", "metadata": {"__COLLATIONS": {"b": "spark.UTF8_LCASE"}}},
        ]
    }
    types = column_types(schema)
    assert list(types) == ["a", "b"]
    found = stats_of({"a": "x", "b": "x"}, {"a": "y", "b": "y"}, **types)
    assert found.range("a") == ("x", "y")
    assert found.range("b") is None


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("5", "integer", 5),
        ("1.50", "decimal(10,2)", Decimal("1.50")),
        ("true", "boolean", True),
        ("2020-01-01 00:00:00.123456", "timestamp", datetime(2020, 1, 1, 0, 0, 0, 123456, UTC)),
        ("2020-01-01T00:00:00.123456Z", "timestamp", datetime(2020, 1, 1, 0, 0, 0, 123456, UTC)),
        ("2020-01-01 00:00:00.5", "timestamp_ntz", datetime(2020, 1, 1, 0, 0, 0, 500000)),  # noqa: DTZ001
        ("xé", "binary", "xé".encode()),
    ],
)
def test_partition_values(text, kind, value):
    assert read_value(text, kind) == value


@pytest.mark.parametrize(
    ("text", "kind"), [("x", "integer"), ("maybe", "boolean"), ("1", "variant"), ("x", "date")]
)
def test_what_is_no_value_of_its_type(text, kind):
    with pytest.raises(ValueError, match=r"\w"):
        read_value(text, kind)
