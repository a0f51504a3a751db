"""Look-ups by key: every row that is there is found, as it is, and no other."""

from __future__ import annotations

import datetime as dt
import math
import os
import random
import shutil
import time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakekit.errors import ColumnNotFoundError, LakeError, PrimaryKeyError, SchemaMismatchError
from lakekit.filestore import runs
from lakekit.skipping.parquet_index import DataFileError
from lakekit.storage.actions import AddFile
from lakekit.storage.murmur3 import bucket_of
from lakekit.table.point import get, get_many
from tests.skipping.data import KINDS, value_of
from tests.table.lakes import DiskTable

UTC = dt.timezone.utc
EVERYTHING = {**KINDS, "note": "string"}


@pytest.fixture(params=["UTC", "America/New_York"])
def local_zone(request, monkeypatch):
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def small_pages(monkeypatch):
    """Files of many row groups and pages although there are few rows."""
    writer = pq.ParquetWriter

    def small(*args: Any, **kwargs: Any) -> pq.ParquetWriter:
        return writer(*args, **{**kwargs, "data_page_size": 64, "write_batch_size": 8})

    monkeypatch.setattr(runs.pq, "ParquetWriter", small)
    monkeypatch.setattr(runs, "ROW_GROUP_ROWS", 40)


def as_python(row: dict[str, Any]) -> dict[str, Any]:
    """Returns a row as look-ups give it: timestamps naive and local."""
    return {n: v.astimezone().replace(tzinfo=None) if n == "ts" and v else v for n, v in row.items()}


def same(left: Any, right: Any) -> bool:
    return repr(left) == repr(right) or left == right


@pytest.mark.parametrize("seed", range(6))
def test_random_writes_against_a_dict(tmp_path, small_pages, seed):
    at = random.Random(seed)
    key = [["id"], ["txt", "id"], ["day", "tiny"], ["id", "txt", "day"], ["dec", "bin"], ["ts", "ntz"]][seed]
    partition = [[], ["txt"], ["day"], ["day"], [], []][seed]
    table = DiskTable(tmp_path / "t", EVERYTHING, key, partition, buckets=3)
    model: dict[tuple, dict] = {}

    def some_row() -> dict[str, Any]:
        row = {n: value_of(k, at) if n in key or at.random() > 0.1 else None for n, k in KINDS.items()}
        for name in partition:
            row[name] = row[name] or "-"
        return row | {"note": f"{at.random()}"}

    for _ in range(5):
        rows = [some_row() for _ in range(at.choice([5, 200]))]
        gone = at.sample(list(model), min(len(model), 20))
        model.update({tuple(row[c] for c in key): row for row in rows})
        gone = [k for k in gone if k not in {tuple(row[c] for c in key) for row in rows}]
        table.write(rows, [dict(zip(key, k, strict=True)) for k in gone])
        for k in gone:
            model.pop(k)
    keys = [*model, *(tuple(some_row()[c] for c in key) for _ in range(50))]
    for k in keys:
        expected = model.get(k)
        found = get(table, dict(zip(key, k, strict=True)))
        assert (found is None) == (expected is None), k
        if found is not None:
            assert list(found) == list(EVERYTHING)
            assert same(found, as_python(expected)) or found == as_python(expected)
    at.shuffle(keys)
    keys = keys * 2
    asked = pa.Table.from_pylist([dict(zip(key, k, strict=True)) for k in keys], _schema(table, key))
    wanted = list(dict.fromkeys(k for k in keys if k in model))
    for count in (len(keys), 3):
        rows = get_many(table, asked.slice(0, count))
        expected = [k for k in wanted if k in keys[:count]]
        assert [tuple(row[c] for c in key) for row in rows.to_pylist()] == expected
        assert rows.schema.names == list(EVERYTHING)
        assert rows["note"].to_pylist() == [model[k]["note"] for k in expected]


def _schema(table: DiskTable, names: list[str]) -> pa.Schema:
    return pa.schema([table.arrow_schema.field(name) for name in names])


def test_nested_values_and_types_are_those_of_pyspark(tmp_path, local_zone):
    kinds = {
        "id": "long",
        "when": "timestamp",
        "wall": "timestamp_ntz",
        "amount": "decimal(10,2)",
        "raw": "binary",
        "who": {
            "type": "struct",
            "fields": [
                {"name": "name", "type": "string", "nullable": True, "metadata": {}},
                {"name": "since", "type": "timestamp", "nullable": True, "metadata": {}},
            ],
        },
        "tags": {"type": "array", "elementType": "timestamp", "containsNull": True},
        "scores": {"type": "map", "keyType": "string", "valueType": "binary", "valueContainsNull": True},
    }
    table = DiskTable(tmp_path / "t", kinds, ["id"])
    moment = dt.datetime(2022, 7, 1, 12, 0, 0, 5, tzinfo=UTC)
    local = moment.astimezone().replace(tzinfo=None)
    table.write(
        [
            {
                "id": 1,
                "when": moment,
                "wall": dt.datetime.fromisoformat("2022-07-01T12:00"),
                "amount": Decimal("1.50"),
                "raw": b"\0",
                "who": {"name": "x", "since": moment},
                "tags": [moment, None],
                "scores": [("a", b"1"), ("b", None)],
            },
            {"id": 2},
        ]
    )
    assert get(table, {"id": 1}) == {
        "id": 1,
        "when": local,
        "wall": dt.datetime.fromisoformat("2022-07-01T12:00"),
        "amount": Decimal("1.50"),
        "raw": bytearray(b"\0"),
        "who": {"name": "x", "since": local},
        "tags": [local, None],
        "scores": {"a": bytearray(b"1"), "b": None},
    }
    assert get(table, {"id": 2}) == {"id": 2, **dict.fromkeys(list(kinds)[1:])}
    assert get_many(table, [{"id": 2}, {"id": 1}])["id"].to_pylist() == [2, 1]


def test_naive_datetimes_are_local(tmp_path, local_zone):
    table = DiskTable(
        tmp_path / "t", {"at": "timestamp", "wall": "timestamp_ntz", "n": "long"}, ["at", "wall"]
    )
    moment, wall = dt.datetime(2022, 7, 1, 12, tzinfo=UTC), dt.datetime.fromisoformat("2022-07-01T09:00")
    table.write([{"at": moment, "wall": wall, "n": 1}])
    local = moment.astimezone().replace(tzinfo=None)
    found = get(table, {"at": local, "wall": wall})
    assert found == {"at": local, "wall": wall, "n": 1}
    assert get(table, {"at": moment.astimezone(dt.timezone(dt.timedelta(hours=3))), "wall": wall}) == found


def test_naive_timestamps_in_arrow_are_in_the_zone_of_the_session(tmp_path):
    table = DiskTable(tmp_path / "t", {"at": "timestamp", "n": "long"}, ["at"])
    table.write([{"at": dt.datetime(2022, 7, 1, 12, tzinfo=UTC), "n": 1}])
    berlin = pa.table({"at": pa.array([dt.datetime.fromisoformat("2022-07-01T14:00")], pa.timestamp("us"))})
    assert get_many(table, berlin)["n"].to_pylist() == [1]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_float_keys(tmp_path, kind):
    table = DiskTable(tmp_path / "t", {"x": kind, "n": "long"}, ["x"])
    table.write([{"x": x, "n": i} for i, x in enumerate([0.1, -0.0, math.nan, math.inf, 5.0])])
    found = [get(table, {"x": x}) for x in (0.1, 0.0, math.nan, math.inf, 5, np.float32(5))]
    assert [row and row["n"] for row in found] == [0, 1, 2, 3, 4, 4]
    assert get(table, {"x": 0.2}) is None
    rows = get_many(table, [{"x": x} for x in (math.nan, 0.0, -0.0, 0.1, 7.0)])
    assert rows["n"].to_pylist() == [2, 1, 0]


def test_a_key_of_partition_columns_alone(tmp_path):
    table = DiskTable(tmp_path / "t", {"day": "date", "n": "long"}, ["day"], ["day"])
    days = [dt.date(2022, 1, d) for d in (1, 2, 3)]
    table.write([{"day": day, "n": i} for i, day in enumerate(days)])
    assert get(table, {"day": days[0]}) == {"day": days[0], "n": 0}
    assert get(table, {"day": "2022-01-03"}) == {"day": days[2], "n": 2}
    assert get(table, {"day": dt.date(2022, 1, 4)}) is None
    assert get_many(table, [{"day": d} for d in days[1:]])["n"].to_pylist() == [1, 2]


def add_foreign(table: DiskTable, rows: list[dict[str, Any]], **layout: Any) -> None:
    """Adds files as another writer would: no tags, in no order, a count of rows at most."""
    data = pa.Table.from_pylist(rows, table.arrow_schema)
    buckets = bucket_of([data[name] for name in table.primary_key], 2)
    for bucket in set(buckets.tolist()):
        path = f"part-{bucket}-{len(table.snapshot().files)}.c000.snappy.parquet"
        part = data.filter(pa.array(buckets == bucket))
        pq.write_table(part, f"{table.root}/{path}", compression="snappy", **layout)
        stats = f'{{"numRecords":{part.num_rows}}}'
        size = os.path.getsize(f"{table.root}/{path}")
        table.commit([AddFile(path, {"_bucket": str(bucket)}, size, 0, True, stats)], "WRITE")


@pytest.mark.parametrize(
    "layout", [{}, {"row_group_size": 3, "write_page_index": True}, {"store_schema": False}]
)
def test_files_of_other_writers(tmp_path, layout):
    table = DiskTable(tmp_path / "t", {"id": "long", "name": "string"}, ["id"])
    table.write([{"id": i, "name": f"ours {i}"} for i in range(5)])
    foreign = [{"id": i, "name": f"theirs {i}"} for i in (9, 5, 7, 6, 8, 11, 10)]
    add_foreign(table, foreign, **layout)
    table.write([{"id": 5, "name": "new"}], [{"id": 7}])
    names = {i: row and row["name"] for i in range(12) for row in [get(table, {"id": i})]}
    assert names == {
        **{i: f"ours {i}" for i in range(5)},
        5: "new",
        7: None,
        **{i: f"theirs {i}" for i in (6, 8, 9, 10, 11)},
    }
    rows = get_many(table, [{"id": i} for i in range(12)])
    assert dict(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True)) == {
        i: name for i, name in names.items() if name
    }


def test_two_rows_of_one_key_left_by_another_writer_count_as_one(tmp_path):
    table = DiskTable(tmp_path / "t", {"id": "long", "name": "string"}, ["id"])
    for name in ("a", "b"):
        add_foreign(table, [{"id": 1, "name": name}, {"id": 1, "name": name}, {"id": 2, "name": name}])
    assert get(table, {"id": 1})["name"] in ("a", "b")
    assert get_many(table, [{"id": 2}, {"id": 1}])["id"].to_pylist() == [2, 1]


def test_columns_added_later_are_null_in_older_files(tmp_path):
    table = DiskTable(tmp_path / "t", {"id": "long"}, ["id"])
    table.write([{"id": 1}])
    table.commit([table.metadata(note="string")], "ADD COLUMNS")
    table.write([{"id": 2, "note": "x"}])
    assert get(table, {"id": 1}) == {"id": 1, "note": None}
    assert get_many(table, [{"id": 1}, {"id": 2}])["note"].to_pylist() == [None, "x"]


def test_the_newest_version_is_read(tmp_path):
    table = DiskTable(tmp_path / "t", {"id": "long", "n": "long"}, ["id"])
    for n in range(4):
        table.write([{"id": 1, "n": n}])
        assert get(table, {"id": 1}) == {"id": 1, "n": n}
    table.write([], [{"id": 1}])
    assert get(table, {"id": 1}) is None


def test_a_table_made_anew_in_the_same_folder(tmp_path):
    for n in range(2):
        table = DiskTable(tmp_path / "t", {"id": "long", "n": "long"}, ["id"])
        table.write([{"id": 1, "n": n}])
        assert get(table, {"id": 1}) == {"id": 1, "n": n}
        shutil.rmtree(table.root)


def test_a_missing_data_file_is_named(tmp_path):
    table = DiskTable(tmp_path / "t", {"id": "long"}, ["id"])
    table.write([{"id": 1}])
    for file in table.snapshot().files.values():
        os.remove(f"{table.root}/{file.file_path}")
        with pytest.raises(DataFileError, match=file.file_path):
            get(table, {"id": 1})


@pytest.fixture
def orders(tmp_path) -> DiskTable:
    table = DiskTable(
        tmp_path / "orders", {"order_id": "integer", "day": "date", "n": "long"}, ["order_id", "day"]
    )
    table.write([{"order_id": 1, "day": dt.date(2022, 1, 1), "n": 5}])
    return table


DAY = dt.date(2022, 1, 1)


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        ({"order_id": 1}, PrimaryKeyError, "day"),
        ({}, PrimaryKeyError, "order_id, day"),
        ({"order_id": 1, "day": None}, PrimaryKeyError, "'day'"),
        ({"order_id": 1, "day": DAY, "n": 5}, ColumnNotFoundError, "'n'"),
        ({"order": 1, "day": DAY}, ColumnNotFoundError, "Did you mean 'order_id'"),
        ({"order_id": 1, "ORDER_ID": 1, "day": DAY}, PrimaryKeyError, "twice"),
        ({"order_id": "1", "day": DAY}, SchemaMismatchError, "int"),
        ({"order_id": 1.0, "day": DAY}, SchemaMismatchError, "int"),
        ({"order_id": True, "day": DAY}, SchemaMismatchError, "int"),
        ({"order_id": 2**40, "day": DAY}, SchemaMismatchError, "int"),
        ({"order_id": 1, "day": "yesterday"}, SchemaMismatchError, "2022-01-31"),
        ({"order_id": 1, "day": dt.datetime.fromisoformat("2022-01-01")}, SchemaMismatchError, "date"),
    ],
)
def test_bad_keys(orders, key, error, text):
    with pytest.raises(error, match=text) as raised:
        get(orders, key)
    assert "shop.orders" in str(raised.value)
    assert isinstance(raised.value, LakeError)
    assert raised.value.hint


def test_names_in_any_case_and_numpy_values(orders):
    assert get(orders, {"ORDER_ID": np.int64(1), "Day": DAY})["n"] == 5


@pytest.mark.parametrize(
    ("rows", "error", "text"),
    [
        ([{"order_id": 1}], PrimaryKeyError, "day"),
        (pa.table({"order_id": [1, None], "day": [DAY, DAY]}), PrimaryKeyError, "1 key"),
        (pa.table({"order_id": ["1"], "day": [DAY]}), SchemaMismatchError, "int"),
        (pa.table({"order_id": [2**40], "day": [DAY]}), SchemaMismatchError, "int"),
        (
            pa.table({"order_id": [1], "day": [dt.datetime.fromisoformat("2022-01-01")]}),
            SchemaMismatchError,
            "date",
        ),
    ],
)
def test_bad_keys_of_many(orders, rows, error, text):
    with pytest.raises(error, match=text) as raised:
        get_many(orders, rows)
    assert raised.value.hint


def test_many_keys_in_other_forms(orders):
    import pandas as pd

    keys = pd.DataFrame({"order_id": [1, 2], "day": [DAY, DAY], "more": ["x", "y"]})
    assert get_many(orders, keys)["n"].to_pylist() == [5]
    wider = pa.table({"Order_Id": pa.array([1], pa.int64()), "day": pa.array([DAY], pa.date64())})
    assert get_many(orders, wider)["n"].to_pylist() == [5]
    assert get_many(orders, wider.slice(0, 0)).num_rows == 0
    assert get_many(orders, []).schema.names == ["order_id", "day", "n"]


def test_tables_without_a_key(tmp_path):
    table = DiskTable(tmp_path / "log", {"id": "long"}, [])
    for call in (lambda: get(table, {"id": 1}), lambda: get_many(table, [{"id": 1}])):
        with pytest.raises(PrimaryKeyError, match=r"shop\.log"):
            call()
