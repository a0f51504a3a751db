"""Look-ups in tables that Spark and lakekit wrote: the same rows as Spark's, without a job."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

ROWS = [
    {
        "id": i,
        "part": f"p{i % 2}",
        "amount": Decimal(i).scaleb(-2),
        "score": i / 3,
        "day": dt.date(2022, 1, 1) + dt.timedelta(days=i),
        "at": dt.datetime(1960 + i, 7, 1, 12, 30, 0, 5, tzinfo=dt.timezone.utc),
        "wall": dt.datetime.fromisoformat("2022-07-01T12:30:00.000001"),
        "raw": bytes([i]),
        "who": {"name": f"n{i}", "since": dt.datetime(2022, 7, 1, tzinfo=dt.timezone.utc)},
        "tags": [f"t{i}", None],
        "scores": [("a", i)],
    }
    for i in range(40)
]
SCHEMA = """id BIGINT, part STRING, amount DECIMAL(10,2), score DOUBLE, day DATE, at TIMESTAMP, wall TIMESTAMP_NTZ,
    raw BINARY, who STRUCT<name: STRING, since: TIMESTAMP>, tags ARRAY<STRING>, scores MAP<STRING, BIGINT>"""
KEYS = [{"id": i, "part": f"p{i % 2}"} for i in range(45)]


@pytest.fixture(scope="module")
def table(lake):
    """Rows that lakekit wrote, changed and rewrote by plain Spark."""
    made = lake.create_table("points", SCHEMA, primary_key=["id", "part"], partition_by=["part"], buckets=2)
    kinds = pa.schema(
        [
            ("id", pa.int64()),
            ("part", pa.string()),
            ("amount", pa.decimal128(10, 2)),
            ("score", pa.float64()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("wall", pa.timestamp("us")),
            ("raw", pa.binary()),
            ("who", pa.struct([("name", pa.string()), ("since", pa.timestamp("us", "UTC"))])),
            ("tags", pa.list_(pa.string())),
            ("scores", pa.map_(pa.string(), pa.int64())),
        ]
    )
    made.upsert(pa.Table.from_pylist(ROWS[:30], kinds))
    made.upsert(pa.Table.from_pylist([row | {"score": 0.5} for row in ROWS[20:35]], kinds))
    made.delete([{"id": 3, "part": "p1"}])
    lake.spark.createDataFrame(pa.Table.from_pylist(ROWS[35:], kinds)).createOrReplaceTempView("more")
    names = ", ".join(kinds.names)
    lake.spark.sql(f"INSERT INTO {made.relation()} ({names}) SELECT {names} FROM more")
    lake.spark.sql(f"UPDATE {made.relation()} SET score = -1 WHERE id IN (7, 36)")
    return made


def rows_by_spark(table):
    return {row.id: row.asDict(recursive=True) for row in table.to_df().collect()}


def check(table):
    expected = rows_by_spark(table)
    assert {key["id"]: table.get(**key) for key in KEYS} == {
        key["id"]: expected.get(key["id"]) for key in KEYS
    }
    found = table.get_many(KEYS)
    assert found.schema.names == table.schema.names
    assert found["id"].to_pylist() == sorted(expected)
    assert found["score"].to_pylist() == [expected[i]["score"] for i in sorted(expected)]


def test_rows_are_those_of_spark(table):
    assert len(rows_by_spark(table)) == 39
    check(table)


def test_rows_rewritten_by_spark(lake, table):
    lake.spark.sql(f"OPTIMIZE {table.relation()}").collect()
    files = table.snapshot().files.values()
    assert any(file.run_id is None for file in files)
    check(table)


def test_no_job_is_started(lake, table):
    tracker = lake.spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    for key in KEYS[:10]:
        table.get(**key)
    table.get_many(KEYS)
    assert set(tracker.getJobIdsForGroup(None)) == before


def test_inspection_of_what_spark_wrote(table):
    snapshots = table.inspect.snapshots().to_pylist()
    assert snapshots[-1]["rows"] == table.to_df().count()
    assert {"UPSERT", "WRITE", "UPDATE"} <= {row["operation"] for row in snapshots}
    assert [row["rows"] for row in snapshots[:3]] == [0, 30, 35]
    assert sum(row["rows"] for row in table.inspect.files().to_pylist()) == snapshots[-1]["rows"]
    update = next(row for row in snapshots if row["operation"] == "UPDATE")
    assert update["rows_updated"] == 2
    first = table.inspect.files(version=1).to_pylist()[0]
    assert json.loads(first["key_min"])["part"] == "p0"
