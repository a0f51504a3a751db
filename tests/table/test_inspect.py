"""The tables that tell what a table is made of, checked against what was written."""

from __future__ import annotations

import datetime as dt
import json
import os

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakekit.errors import InvalidOptionError, VersionNotFoundError
from lakekit.storage.actions import AddFile
from lakekit.table import inspect
from tests.table.lakes import DiskTable

DAYS = [dt.date(2022, 1, 1), dt.date(2022, 1, 2)]


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> DiskTable:
    """Version 1 loads 100 rows, 2 updates 10 and inserts 5, 3 deletes 20, 4 is another writer's file."""
    made = DiskTable(
        tmp_path_factory.mktemp("inspect") / "orders",
        {"id": "long", "day": "date", "name": "string"},
        ["id", "day"],
        ["day"],
        buckets=2,
    )
    rows = [{"id": i, "day": DAYS[i % 2], "name": f"n{i}"} for i in range(105)]
    made.write(rows[:100])
    made.write([*rows[:10], *rows[100:]])
    made.write([], rows[50:70])
    data = pa.table({"id": [1000], "name": ["x"]})
    pq.write_table(data, f"{made.root}/foreign.parquet")
    size = os.path.getsize(f"{made.root}/foreign.parquet")
    file = AddFile("foreign.parquet", {"day": None, "_bucket": "1"}, size, 1640995200123, True)
    made.commit([file], "WRITE", metrics={"numOutputRows": "1"})
    return made


SCHEMAS = {
    "snapshots": inspect.SNAPSHOTS_SCHEMA,
    "manifests": inspect.MANIFESTS_SCHEMA,
    "files": inspect.FILES_SCHEMA,
    "buckets": inspect.BUCKETS_SCHEMA,
    "partitions": inspect.PARTITIONS_SCHEMA,
}


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("version", [None, 0, 2])
def test_schemas_are_as_declared(table, name, version):
    found = getattr(table.inspect, name)(version=version)
    assert found.schema == SCHEMAS[name]
    found.validate(full=True)


def test_snapshots(table):
    rows = table.inspect.snapshots().to_pylist()
    assert [row["version"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row["operation"] for row in rows] == ["CREATE TABLE", "UPSERT", "UPSERT", "UPSERT", "WRITE"]
    assert [row["rows"] for row in rows[:4]] == [0, 100, 105, 85]
    assert [row["rows_inserted"] for row in rows] == [None, 100, 5, 0, 1]
    assert [row["rows_updated"] for row in rows] == [None, 0, 10, 0, None]
    assert [row["rows_deleted"] for row in rows] == [None, 0, 0, 20, None]
    assert rows[1]["duration_ms"] == 12
    assert rows[1]["writer"] == "lakekit/test"
    assert dict(rows[1]["parameters"]) == {"mode": "Append", "count": "1"}
    assert dict(rows[1]["metrics"])["numInsertedRows"] == "100"
    assert rows[0]["files"] == 0
    for row in rows:
        snapshot = table.log.snapshot(row["version"])
        assert (row["files"], row["bytes"]) == (len(snapshot.files), snapshot.total_bytes)
    assert sorted(row["committed_at"] for row in rows) == [row["committed_at"] for row in rows]
    assert table.inspect.snapshots(version=2).to_pylist() == rows[:3]


def test_files(table):
    rows = table.inspect.files(version=3).to_pylist()
    assert sum(row["rows"] for row in rows) == 85
    assert sum(row["deleted_rows"] for row in rows) == 30
    for row in rows:
        assert os.path.getsize(f"{table.root}/{row['path']}") == row["bytes"]
        stored = pq.read_table(f"{table.root}/{row['path']}", partitioning=None)
        assert stored.num_rows == row["rows"] + row["deleted_rows"]
        assert row["deleted_share"] == row["deleted_rows"] / stored.num_rows
        assert row["level"] == 0
        assert row["partition"] == f"day={dict(row['partition_values'])['day']}"
        low, high = json.loads(row["key_min"]), json.loads(row["key_max"])
        assert [low["id"], high["id"]] == list(pc.min_max(stored["id"]).as_py().values())
        assert low["day"] == high["day"] == dict(row["partition_values"])["day"]
    assert len({row["run_id"] for row in rows}) == 4  # two writes of rows, two buckets


def test_files_of_other_writers(table):
    foreign = next(row for row in table.inspect.files().to_pylist() if row["path"] == "foreign.parquet")
    assert foreign["rows"] == 1  # from the file itself: the log does not say
    assert foreign["level"] is None
    assert foreign["run_id"] is None
    assert foreign["partition"] == "day=null"
    assert foreign["key_min"] is None
    assert foreign["modified_at"] == dt.datetime(2022, 1, 1, 0, 0, 0, 123000, tzinfo=dt.timezone.utc)


def test_buckets(table):
    rows = table.inspect.buckets().to_pylist()
    files = table.inspect.files().to_pylist()
    assert [(row["partition"], row["bucket"]) for row in rows] == sorted(
        {(f["partition"], f["bucket"]) for f in files}
    )
    for row in rows:
        mine = [f for f in files if (f["partition"], f["bucket"]) == (row["partition"], row["bucket"])]
        assert row["files"] == len(mine)
        assert row["rows"] == sum(f["rows"] for f in mine)
        assert row["deleted_rows"] == sum(f["deleted_rows"] for f in mine)
        assert row["bytes"] == sum(f["bytes"] for f in mine)
        assert row["runs"] == row["level0_runs"] == len({f["run_id"] for f in mine})
        if row["key_min"]:
            assert json.loads(row["key_min"])["id"] == min(json.loads(f["key_min"])["id"] for f in mine)
    assert rows[-1]["partition"] == "day=null"


def test_partitions(table):
    rows = table.inspect.partitions().to_pylist()
    assert [row["partition"] for row in rows] == ["day=2022-01-01", "day=2022-01-02", "day=null"]
    assert [row["rows"] for row in rows] == [43, 42, 1]
    assert [row["buckets"] for row in rows] == [2, 2, 1]
    assert sum(row["files"] for row in rows) == len(table.snapshot().files)
    assert [row["rows"] for row in table.inspect.partitions(version=1).to_pylist()] == [50, 50]


def test_manifests(table):
    rows = table.inspect.manifests().to_pylist()
    assert [(row["kind"], row["version"]) for row in rows] == [("commit", v) for v in range(5)]
    for row in rows:
        assert os.path.getsize(f"{table.root}/{row['path']}") == row["bytes"]
    assert rows[1]["rows_added"] == 100
    assert rows[2]["rows_added"] == 15
    assert rows[2]["rows_removed"] == 10
    assert rows[3]["rows_removed"] == 20
    assert rows[3]["files_added"] == 0
    assert rows[3]["vectors_changed"] > 0
    assert json.loads(rows[1]["key_min"]) == {"id": 0, "day": "2022-01-01"}
    assert json.loads(rows[1]["key_max"]) == {"id": 99, "day": "2022-01-02"}
    live = len(table.log.snapshot(4).files)
    assert sum(row["files_added"] - row["files_removed"] for row in rows) == live


def test_manifests_after_a_checkpoint(tmp_path):
    made = DiskTable(tmp_path / "t", {"id": "long"}, ["id"])
    for i in range(4):
        made.write([{"id": i}])
    made.log.checkpoint(2)
    rows = made.inspect.manifests().to_pylist()
    assert [(row["kind"], row["version"]) for row in rows] == [
        ("checkpoint", 2),
        ("commit", 3),
        ("commit", 4),
    ]
    assert rows[0]["files_added"] == 2
    assert rows[0]["path"].endswith(".checkpoint.parquet")
    assert [row["kind"] for row in made.inspect.manifests(version=1).to_pylist()] == ["commit", "commit"]


def test_times_and_bad_versions(table):
    times = table.inspect.snapshots()["committed_at"].to_pylist()
    assert table.inspect.files(timestamp=times[1]) == table.inspect.files(version=1)
    with pytest.raises(VersionNotFoundError, match="99"):
        table.inspect.files(version=99)
    with pytest.raises(InvalidOptionError):
        table.inspect.files(version=1, timestamp=times[1])
    with pytest.raises(InvalidOptionError):
        table.inspect.files(version="1")


def test_a_table_without_key_or_partitions(tmp_path):
    made = DiskTable(tmp_path / "log", {"id": "long"}, [])
    assert made.inspect.partitions().num_rows == 0
    pq.write_table(pa.table({"id": [1, 2]}), f"{made.root}/a.parquet")
    made.commit([AddFile("a.parquet", {}, 500, 0, True, '{"numRecords":2}')], "WRITE")
    assert made.inspect.partitions().to_pylist()[0]["partition"] == ""
    bucket = made.inspect.buckets().to_pylist()[0]
    assert (bucket["bucket"], bucket["rows"], bucket["key_min"]) == (None, 2, None)
