"""Which files a predicate rules out: never one that holds a wanted row, and those that it should."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from lakekit.skipping.predicate import (
    And,
    Anything,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Or,
    Predicate,
    StartsWith,
    all_of,
)
from lakekit.skipping.prune import allowed_buckets, prune
from lakekit.storage.actions import AddFile
from lakekit.storage.murmur3 import bucket_of
from tests.skipping.data import (
    KINDS,
    PREFIX,
    UTC,
    file_of,
    matches,
    random_predicate,
    random_table,
    snapshot_of,
    spark_stats,
)


def left(files: list[AddFile], predicate: Predicate, **table) -> list[str]:
    pruned = prune(snapshot_of(files, **table), predicate)
    assert len(pruned.kept) + len(pruned.skipped) == len(files)
    return [file.path.removesuffix(".parquet") for file in pruned.kept]


@pytest.mark.parametrize("seed", range(40))
def test_nothing_that_matches_is_skipped(seed):
    at = random.Random(seed)
    tables = {f"f{i}": random_table(at, 12) for i in range(8)}
    files = []
    for i, (name, rows) in enumerate(tables.items()):
        stats = ["ours", spark_stats(rows), spark_stats(rows, tight=False), None][i % 4]
        files.append(file_of(name, rows, stats))
    rows = {name: table.to_pylist() for name, table in tables.items()}
    skipped = 0
    for _ in range(150):
        predicate = random_predicate(at)
        kept = left(files, predicate)
        wanted = {name for name in rows if any(matches(predicate, row) for row in rows[name])}
        assert wanted <= set(kept), predicate
        skipped += len(files) - len(kept)
    assert skipped > 100


@pytest.mark.parametrize("seed", range(10))
def test_nothing_that_matches_is_skipped_by_partition_or_bucket(seed):
    at = random.Random(seed)
    kinds = {"id": "long", "day": "date", "txt": "string", "f64": "double"}
    rows = [row for row in random_table(at, 60, kinds).to_pylist() if row["id"] is not None]
    buckets = bucket_of(
        [pa.array([r["id"] for r in rows], pa.int64()), pa.array([r["day"] for r in rows])], 4
    )
    groups: dict[tuple, list] = {}
    for row, bucket in zip(rows, buckets.tolist(), strict=True):
        groups.setdefault((row["day"], row["txt"] or None, bucket), []).append(row)
    files = []
    for i, ((day, txt, bucket), _) in enumerate(groups.items()):
        partition = {"day": day and day.isoformat(), "txt": txt, "_bucket": str(bucket)}
        files.append(file_of(f"f{i}", pa.table({"x": [1]}), None, partition))
    by_name = dict(zip((f"f{i}" for i in range(len(groups))), groups.values(), strict=True))
    table = {"kinds": kinds, "partition_columns": ("day", "txt"), "primary_key": ("id", "day"), "buckets": 4}
    for _ in range(150):
        predicate = random_predicate(at, kinds)
        kept = left(files, predicate, **table)
        # Delta cannot tell an empty text from null in a partition column.
        wanted = {
            n
            for n, some in by_name.items()
            if any(matches(predicate, r | {"txt": r["txt"] or None}, kinds) for r in some)
        }
        assert wanted <= set(kept), predicate


def one_file(name: str, values: list, kind: pa.DataType | None = None, **how) -> AddFile:
    return file_of("f", pa.table({name: pa.array(values, kind)}), **how)


KEPT, SKIPPED = ["f"], []


@pytest.mark.parametrize(
    ("predicate", "result"),
    [
        (Comparison("id", "=", 4), SKIPPED),
        (Comparison("id", "=", 5), KEPT),
        (Comparison("ID", "<", 5), SKIPPED),
        (Comparison("id", "<=", 5), KEPT),
        (Comparison("id", ">", 9), SKIPPED),
        (Comparison("id", ">=", 9), KEPT),
        (Comparison("id", "=", 5.5), SKIPPED),
        (Comparison("id", "<", Decimal("5.5")), KEPT),
        (Comparison("id", "=", "5"), KEPT),
        (Comparison("id", "=", None), SKIPPED),
        (Comparison("id", "=", 2**70), SKIPPED),
        (In("id", (1, 2, 10, 11)), SKIPPED),
        (In("id", (1, 2, 7, 11)), KEPT),
        (In("id", (*range(-40, 5), 6)), KEPT),
        (In("id", (*range(-40, 5), 10, 20)), SKIPPED),
        (In("id", ()), SKIPPED),
        (In("id", (None,)), SKIPPED),
        (IsNull("id"), SKIPPED),
        (IsNotNull("id"), KEPT),
        (And((Comparison("id", ">", 1), Comparison("id", ">", 10))), SKIPPED),
        (Or((Comparison("id", "<", 1), Comparison("id", ">", 10))), SKIPPED),
        (Or((Comparison("id", "<", 1), Anything("f(id)"))), KEPT),
        (And(()), KEPT),
        (Or(()), SKIPPED),
        (Comparison("nothing", "=", 1), KEPT),
    ],
)
def test_integers(predicate, result):
    assert left([one_file("id", [5, 9])], predicate) == result


@pytest.mark.parametrize(
    ("predicate", "result"),
    [
        (Comparison("txt", "=", PREFIX + "b"), KEPT),
        (Comparison("txt", "=", PREFIX + "zzz"), KEPT),
        (Comparison("txt", ">", "u"), SKIPPED),
        (Comparison("txt", "=", "a"), SKIPPED),
        (StartsWith("txt", "the same"), KEPT),
        (StartsWith("txt", "the other"), SKIPPED),
        (StartsWith("txt", "tie"), SKIPPED),
        (StartsWith("txt", ""), KEPT),
    ],
)
def test_cut_texts(predicate, result):
    rows = pa.table({"txt": [PREFIX + "a", PREFIX + "x"]})
    assert left([file_of("f", rows)], predicate) == result
    assert left([file_of("f", rows, spark_stats(rows, {"txt": "string"}))], predicate) == result


def test_cut_texts_of_older_writers():
    text = PREFIX + "\U0001f600"
    # They put U+FFFD behind the prefix, which sorts before characters outside of the basic plane.
    stats = json.dumps(
        {"numRecords": 1, "minValues": {"txt": PREFIX}, "maxValues": {"txt": PREFIX + "\ufffd"}}
    )
    file = file_of("f", pa.table({"txt": [text]}), stats)
    assert left([file], Comparison("txt", "=", text)) == KEPT
    assert left([file], Comparison("txt", ">", PREFIX)) == KEPT
    assert left([file], StartsWith("txt", text)) == KEPT


def test_nan_is_above_all_numbers():
    with_nan = one_file("f64", [1.0, float("nan")])
    without = one_file("f64", [1.0, 2.0])
    foreign = one_file("f64", [1.0, 2.0], stats=without.stats)
    above = Comparison("f64", ">", 5.0)
    assert left([with_nan], above) == KEPT
    assert left([without], above) == SKIPPED
    # Other writers leave NaN out of the bounds.
    assert left([foreign], above) == KEPT
    assert left([foreign], Comparison("f64", "<", 0.5)) == SKIPPED
    assert left([with_nan], Comparison("f64", "=", float("nan"))) == KEPT


def test_short_text_of_a_float_is_another_number():
    rows = pa.table({"f32": pa.array([0.1], pa.float32())})
    file = file_of("f", rows, spark_stats(rows, {"f32": "float"}))
    assert '"f32": 0.1' in file.stats
    assert left([file], Comparison("f32", "=", float(np.float32(0.1)))) == KEPT
    assert left([file], Comparison("f32", "=", 0.1)) == KEPT
    assert left([file], Comparison("f32", "=", 0.2)) == SKIPPED


def test_decimals_compare_exactly_unless_with_a_float():
    file = one_file("dec", [Decimal("0.10"), Decimal("0.20")], pa.decimal128(12, 2))
    assert left([file], Comparison("dec", ">", Decimal("0.2"))) == SKIPPED
    assert left([file], Comparison("dec", ">=", Decimal("0.2"))) == KEPT
    assert left([file], Comparison("dec", "=", 0.1)) == KEPT
    assert left([file], Comparison("dec", ">", 0.3)) == SKIPPED


def test_dates_and_times():
    day = one_file("day", [dt.date(2022, 1, 5)])
    assert left([day], Comparison("day", "=", dt.date(2022, 1, 6))) == SKIPPED
    assert left([day], Comparison("day", "=", "2022-01-06")) == SKIPPED
    assert left([day], Comparison("day", "=", dt.datetime.fromisoformat("2022-01-06"))) == KEPT
    moment = dt.datetime(2022, 1, 5, 12, 0, 0, 123456, tzinfo=UTC)
    rows = pa.table({"ts": pa.array([moment], pa.timestamp("us", "UTC"))})
    for stats in ("ours", spark_stats(rows, {"ts": "timestamp"})):
        file = file_of("f", rows, stats)
        assert left([file], Comparison("ts", "=", moment)) == KEPT
        assert left([file], Comparison("ts", ">", moment + dt.timedelta(milliseconds=2))) == SKIPPED
        zone = dt.timezone(dt.timedelta(hours=5))
        assert left([file], Comparison("ts", "=", moment.astimezone(zone))) == KEPT
        assert left([file], Comparison("ts", "=", dt.datetime.fromisoformat("2030-01-01"))) == KEPT


def test_columns_of_nulls_and_missing_columns():
    nulls = one_file("id", [None, None], pa.int64())
    assert left([nulls], Comparison("id", "=", 1)) == SKIPPED
    assert left([nulls], IsNotNull("id")) == SKIPPED
    assert left([nulls], IsNull("id")) == KEPT
    older = one_file("txt", ["a"])
    assert left([older], Comparison("id", "=", 1)) == KEPT


def test_fields_of_structs():
    kinds = {"s": {"type": "struct", "fields": [{"name": "X", "type": "long"}]}, "a.b": "long"}
    file = file_of("f", pa.table({"s": [{"X": 5}], "a.b": [7]}))
    assert left([file], Comparison("s.x", "=", 4), kinds=kinds) == SKIPPED
    assert left([file], Comparison("s.x", "=", 5), kinds=kinds) == KEPT
    assert left([file], Comparison("a.b", "=", 5), kinds=kinds) == SKIPPED
    assert left([file], IsNull("s"), kinds=kinds) == KEPT
    assert left([file], Comparison("s", "=", 5), kinds=kinds) == KEPT


def partitioned(text: str | None) -> AddFile:
    return file_of("f", pa.table({"id": [1]}), partition={"p": text})


@pytest.mark.parametrize(
    ("kind", "text", "predicate", "result"),
    [
        ("long", "5", Comparison("p", "=", 5), KEPT),
        ("long", "5", Comparison("P", ">", 5), SKIPPED),
        ("string", "b", StartsWith("p", "b"), KEPT),
        ("string", "b", StartsWith("p", "bb"), SKIPPED),
        ("string", None, Comparison("p", "=", "b"), SKIPPED),
        ("string", None, IsNull("p"), KEPT),
        ("string", "b", IsNull("p"), SKIPPED),
        ("string", "", IsNull("p"), KEPT),
        ("string", "", Comparison("p", "=", ""), KEPT),
        ("date", "2022-01-05", Comparison("p", "<", dt.date(2022, 1, 5)), SKIPPED),
        ("boolean", "true", Comparison("p", "=", False), SKIPPED),
        ("boolean", "true", Comparison("p", "=", True), KEPT),
        ("decimal(5,2)", "1.50", Comparison("p", "=", Decimal("1.5")), KEPT),
        ("double", "NaN", Comparison("p", ">", 1.0), KEPT),
        ("double", "2.0", Comparison("p", ">", 3.0), SKIPPED),
        (
            "timestamp",
            "2022-01-05T00:00:00.000000Z",
            Comparison("p", "=", dt.datetime(2022, 1, 6, tzinfo=UTC)),
            SKIPPED,
        ),
        ("timestamp", "2022-01-05 00:00:00", Comparison("p", "=", dt.datetime(2022, 1, 6, tzinfo=UTC)), KEPT),
        ("long", "no number", Comparison("p", "=", 5), KEPT),
    ],
)
def test_partition_values(kind, text, predicate, result):
    kinds = {"id": "long", "p": kind}
    assert left([partitioned(text)], predicate, kinds=kinds, partition_columns=("p",)) == result


def test_the_first_step_that_rules_out_is_named():
    rows = pa.table({"id": [5]})
    bucket = int(bucket_of([rows["id"]], 8)[0])
    other = str((bucket + 1) % 8)
    files = [
        file_of("a", rows, partition={"p": "x", "_bucket": str(bucket)}),
        file_of("b", rows, partition={"p": "y", "_bucket": str(bucket)}),
        file_of("c", rows, partition={"p": "y", "_bucket": other}),
        file_of("d", pa.table({"id": [6]}), partition={"p": "y", "_bucket": str(bucket)}),
    ]
    snapshot = snapshot_of(files, {"id": "long", "p": "string"}, ("p",), ("id",), 8)
    pruned = prune(snapshot, all_of(Comparison("p", "=", "y"), Comparison("id", "=", 5)))
    assert [file.path for file in pruned.kept] == ["b.parquet"]
    assert {file.path: step for file, step in pruned.skipped} == {
        "a.parquet": "partition",
        "c.parquet": "bucket",
        "d.parquet": "file statistics",
    }
    assert pruned.buckets == {bucket}


def test_unusable_conditions_are_named():
    predicate = all_of(
        Comparison("id", "=", 1),
        Comparison("id", "=", "one"),
        Anything("upper(txt) = 'A'", "a function"),
        Or((Comparison("id", "=", 1), Anything("f(id)", "a function"))),
    )
    conditions = prune(snapshot_of([]), predicate).conditions
    assert conditions.used == ("id = 1",)
    assert [text for text, _ in conditions.not_used] == ["id = 'one'", "upper(txt) = 'A'", "id = 1 OR f(id)"]
    assert all(reason for _, reason in conditions.not_used)


def buckets(predicate: Predicate, key: tuple[str, ...] = ("id", "txt"), kinds=KINDS) -> frozenset[int] | None:
    return allowed_buckets(snapshot_of([], kinds, primary_key=key, buckets=16), predicate)


def expected(ids: list[int], texts: list[str]) -> set[int]:
    return set(bucket_of([pa.array(ids, pa.int64()), pa.array(texts)], 16).tolist())


def test_buckets_need_the_whole_key():
    one, two = Comparison("id", "=", 1), Comparison("txt", "=", "a")
    assert buckets(one) is None
    assert buckets(And((one, Comparison("txt", ">", "a")))) is None
    assert buckets(And((one, two))) == expected([1], ["a"])
    assert buckets(And((In("ID", (1, 2)), two, Anything("f(x)")))) == expected([1, 2], ["a", "a"])
    assert buckets(And((one, Or((two, Comparison("txt", "=", "b")))))) == expected([1, 1], ["a", "b"])
    both = And((one, two)), And((Comparison("id", "=", 7), Comparison("txt", "=", "z")))
    assert buckets(Or(both)) == expected([1, 7], ["a", "z"])
    assert buckets(Or((both[0], one))) is None
    assert buckets(And((In("id", (1, 2)), In("id", (2, 3)), two))) == expected([2], ["a"])
    assert buckets(And((one, Comparison("id", "=", 2), two))) == frozenset()
    assert buckets(And((one, Comparison("txt", "=", None)))) == frozenset()


def test_buckets_of_values_of_other_types():
    assert buckets(Comparison("id", "=", 5.0), ("id",)) == set(bucket_of([pa.array([5])], 16).tolist())
    assert buckets(Comparison("id", "=", 5.5), ("id",)) == frozenset()
    assert buckets(Comparison("id", "=", float(2**60)), ("id",)) is None
    assert buckets(Comparison("id", "=", "5"), ("id",)) is None
    assert buckets(Comparison("tiny", "=", 5), ("tiny",)) == set(
        bucket_of([pa.array([5], pa.int8())], 16).tolist()
    )
    assert buckets(Comparison("f32", "=", 0.1), ("f32",)) is None
    assert buckets(Comparison("f32", "=", 0.5), ("f32",)) == set(
        bucket_of([pa.array([0.5], pa.float32())], 16).tolist()
    )
    assert buckets(Comparison("c", "=", "a"), ("c",), {"c": "char(3)"}) is None


def test_too_many_keys_leave_all_buckets():
    many = And((In("id", tuple(range(1000))), In("txt", tuple(map(str, range(1000))))))
    assert buckets(many) is None
    few = buckets(In("id", tuple(range(3000))), ("id",))
    assert few is not None


def test_padded_texts_are_compared_as_readers_see_them():
    snapshot = snapshot_of([one_file("c", ["ab", "cd   "])], {"c": "string"})
    schema = snapshot.metadata.schema_string.replace(
        '"metadata": {}', '"metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}'
    )
    object.__setattr__(snapshot.metadata, "schema_string", schema)
    for text in ("ab", "ab   ", "cd", "b"):
        assert prune(snapshot, Comparison("c", "=", text)).kept, text
    assert not prune(snapshot, Comparison("c", "<", "a")).kept
