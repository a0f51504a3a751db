"""What a bucket holds after writes, against a dict."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakekit.filestore import chunks
from lakekit.filestore.keys import key_columns
from lakekit.filestore.matching import match
from tests.filestore.harness import Bucket

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("v", pa.int64())])


def by_key(bucket: Bucket) -> dict[object, dict[str, object]]:
    rows = bucket.rows()
    keyed = {tuple(r[c] for c in bucket.layout.primary_key): r for r in rows}
    assert len(keyed) == len(rows), "a key is live twice"
    return keyed


def test_upsert_replaces_rows_of_the_same_key(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path, SCHEMA, ["id"])
    bucket.write([{"id": i, "name": "old", "v": i} for i in range(10)])
    result = bucket.write([{"id": i, "name": "new", "v": i} for i in range(5, 15)])
    assert (result.rows_inserted, result.rows_updated) == (5, 5)
    assert by_key(bucket)[(7,)]["name"] == "new"
    assert by_key(bucket)[(2,)]["name"] == "old"
    assert len(bucket.rows()) == 15


def test_last_of_equal_keys_in_a_batch_wins_across_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1)
    bucket = Bucket(tmp_path, SCHEMA, ["id"])
    result = bucket.write([{"id": i % 3, "name": None, "v": i} for i in range(60)])
    assert {k: r["v"] for k, r in by_key(bucket).items()} == {(0,): 57, (1,): 58, (2,): 59}
    assert result.rows_inserted == 3


def test_highest_sequence_wins_in_batch_and_against_the_table(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path, SCHEMA, ["id"], sequence="v")
    bucket.write(
        [{"id": 1, "name": "b", "v": 5}, {"id": 1, "name": "a", "v": 3}, {"id": 2, "name": "n", "v": None}]
    )
    result = bucket.write([{"id": 1, "name": "late", "v": 4}, {"id": 2, "name": "x", "v": 0}])
    assert {k: r["name"] for k, r in by_key(bucket).items()} == {(1,): "b", (2,): "x"}
    assert (result.rows_late, result.rows_updated, result.rows_inserted) == (1, 1, 0)
    bucket.write([{"id": 1, "name": "unset", "v": None}])
    assert by_key(bucket)[(1,)]["name"] == "b"
    bucket.write([{"id": 1, "name": "same", "v": 5}])
    assert by_key(bucket)[(1,)]["name"] == "same"
    bucket.write([], deletes=[{"id": 1}])
    assert (1,) not in by_key(bucket)


def test_deletes_drop_whole_files_and_count_only_live_rows(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path, SCHEMA, ["id"])
    bucket.write([{"id": i, "name": None, "v": i} for i in range(4)])
    assert bucket.write([], deletes=[{"id": 1}, {"id": 9}]).rows_deleted == 1
    assert bucket.write([], deletes=[{"id": 1}]).rows_deleted == 0
    assert bucket.write([], deletes=[{"id": i} for i in range(4)]).rows_deleted == 3
    assert bucket.files == []


def test_delete_and_upsert_of_one_key_in_a_batch_go_by_order(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path, SCHEMA, ["id"])
    bucket.write([{"id": 1, "name": "a", "v": 1}])
    bucket.write([{"id": 1, "name": "b", "v": 2}], deletes=[{"id": 1}])
    assert bucket.rows() == []


def test_null_keys_are_refused_with_count_and_example_and_leave_no_file(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path, SCHEMA, ["id"])
    result = bucket.write([{"id": 1, "v": 1}, {"id": None, "v": 2}, {"id": None, "v": 3}])
    assert result.null_keys == 2
    assert result.null_key_example == "{'id': None}"
    assert list(tmp_path.rglob("*.parquet")) == []


def test_nulls_in_required_columns_are_counted(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path, SCHEMA, ["id"], required=["name"])
    assert bucket.write([{"id": 1, "name": None}, {"id": 2, "name": "x"}]).null_columns == {"name": 1}
    assert list(tmp_path.rglob("*.parquet")) == []


def test_partitions_are_kept_apart(tmp_path: Path) -> None:
    schema = pa.schema([("day", pa.string()), ("id", pa.int64()), ("v", pa.int64())])
    bucket = Bucket(tmp_path, schema, ["day", "id"], partition=["day"])
    bucket.write([{"day": d, "id": 1, "v": 0} for d in ("a/b", "ü", "x y")])
    bucket.write([{"day": "ü", "id": 1, "v": 1}])
    assert {k: r["v"] for k, r in by_key(bucket).items()} == {("a/b", 1): 0, ("ü", 1): 1, ("x y", 1): 0}


def test_empty_partition_text_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("day", pa.string()), ("id", pa.int64())])
    result = Bucket(tmp_path, schema, ["day", "id"], partition=["day"]).write([{"day": "", "id": 1}])
    assert "'day'" in str(result.error)


def test_negative_zero_and_nan_are_one_key_each(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.float64()), ("v", pa.int64())])
    bucket = Bucket(tmp_path, schema, ["k"])
    bucket.write([{"k": -0.0, "v": 1}, {"k": float("nan"), "v": 2}, {"k": 1.5, "v": 0}])
    bucket.write([{"k": 0.0, "v": 3}, {"k": -float("nan"), "v": 4}])
    assert sorted(r["v"] for r in bucket.rows()) == [0, 3, 4]


@pytest.mark.parametrize("key", [["id"], ["name"], ["name", "id"], ["day", "name", "id"]])
@pytest.mark.parametrize("seed", range(4))
def test_random_writes_and_merges_match_a_dict(
    tmp_path: Path, key: list[str], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 500)
    rng = random.Random(seed)
    schema = pa.schema([("day", pa.string()), ("id", pa.int64()), ("name", pa.string()), ("v", pa.int64())])
    bucket = Bucket(tmp_path, schema, key, partition=["day"] if "day" in key else [])
    model: dict[tuple[object, ...], dict[str, object]] = {}
    for step in range(30):
        rows = [
            {"day": "d", "id": rng.randrange(8), "name": f"n{rng.randrange(8)}", "v": rng.randrange(10**6)}
            for _ in range(rng.randrange(1, 40))
        ]
        deletes = [{c: rng.choice(rows)[c] for c in key} for _ in range(rng.randrange(3))]
        result = bucket.write(rows, deletes)
        new = {tuple(r[c] for c in key): r for r in rows}
        gone = {tuple(d[c] for c in key) for d in deletes}
        assert result.rows_updated == sum(k in model and k not in gone for k in new)
        assert result.rows_inserted == sum(k not in model and k not in gone for k in new)
        assert result.rows_deleted == sum(k in model for k in gone)
        model = {k: r for k, r in {**model, **new}.items() if k not in gone}
        if step % 7 == 6:
            bucket.merge()
            assert all(f.deletion_vector is None for f in bucket.files)
        assert by_key(bucket) == model


def test_match_finds_every_pair_of_composite_keys() -> None:
    rng = random.Random(1)
    old = pa.table(
        {"a": [rng.randrange(5) for _ in range(300)], "b": [f"{rng.randrange(9)}" for _ in range(300)]}
    )
    pairs = list({(rng.randrange(6), f"{rng.randrange(11)}") for _ in range(40)})
    new = pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    rows, slots = match(key_columns(old, ["a", "b"]), key_columns(new, ["a", "b"]))
    found = dict(zip(rows.tolist(), slots.tolist(), strict=True))
    values = list(zip(old["a"].to_pylist(), old["b"].to_pylist(), strict=True))
    assert found == {i: pairs.index(v) for i, v in enumerate(values) if v in pairs}


@pytest.mark.parametrize(
    "text",
    [
        lambda i: f"{i * 2654435761 % 2**32:08x}-and-a-tail",
        lambda i: f"customer-{i:012d}",  # alike for longer than what is compared at first
        lambda i: f"{i // 50:04d}/the same for many keys/{i % 50}",
        lambda i: "x" * (i % 40) + "\0" * (i % 3) + "é" * (i // 40),
        lambda i: "" if i == 0 else chr(65 + i % 26) * (i // 26 + 1),
    ],
)
def test_match_of_sorted_texts_is_that_of_a_dict(text: Callable[[int], str]) -> None:
    rng = random.Random(3)
    texts = sorted({text(i) for i in range(1_000)}, key=lambda t: t.encode())
    for old_share, new_share in ((0.9, 0.1), (0.1, 0.9), (0.5, 0.5), (0.002, 1), (1, 0.002)):
        old = [t for t in texts if rng.random() < old_share]
        new = [t for t in texts if rng.random() < new_share]
        for kind in (pa.string(), pa.binary()):
            rows, slots = match([pa.array(old, kind)], [pa.array(new, kind)], is_sorted=True)
            place = {t: i for i, t in enumerate(new)}
            expected = [(i, place[t]) for i, t in enumerate(old) if t in place]
            assert list(zip(rows.tolist(), slots.tolist(), strict=True)) == expected


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.date32(), pa.timestamp("us", "UTC")])
def test_match_of_sorted_numbers_is_that_of_a_dict(kind: pa.DataType) -> None:
    rng = random.Random(4)
    bounds = (-128, 128) if kind == pa.int8() else (-5_000, 5_000)
    words = pa.int8() if kind == pa.int8() else pa.int32() if pa.types.is_date(kind) else pa.int64()
    for size in (0, 1, 100):
        old, new = (sorted(rng.sample(range(*bounds), n)) for n in (100, size))
        columns = [[pa.array(values, words).view(kind)] for values in (old, new)]
        rows, slots = match(*columns, is_sorted=True)
        expected = [(i, new.index(k)) for i, k in enumerate(old) if k in new]
        assert list(zip(rows.tolist(), slots.tolist(), strict=True)) == expected
