"""Look-ups and inspection through Spark Connect: the cluster reads the files, the notebook gets the rows."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from lakekit.errors import PrimaryKeyError, SchemaMismatchError
from lakekit.skipping.predicate import Comparison
from lakekit.skipping.report import explain
from lakekit.table.inspect import FILES_SCHEMA


@pytest.fixture(scope="module")
def table(remote_lake):
    made = remote_lake.create_table(
        "points", "id BIGINT, name STRING, at TIMESTAMP", primary_key=["id"], buckets=2
    )
    moment = pa.array([dt.datetime(2022, 7, 1, 12, tzinfo=dt.timezone.utc)] * 3, pa.timestamp("us", "UTC"))
    made.upsert(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"], "at": moment}))
    made.delete([{"id": 2}])
    return made


def test_rows(table):
    local = dt.datetime(2022, 7, 1, 12, tzinfo=dt.timezone.utc).astimezone().replace(tzinfo=None)
    assert table.get(id=1) == {"id": 1, "name": "a", "at": local}
    assert table.get(id=2) is None
    assert table.get_many([{"id": 3}, {"id": 2}, {"id": 1}])["name"].to_pylist() == ["c", "a"]


def test_errors_come_back_as_themselves(table):
    with pytest.raises(PrimaryKeyError, match="id"):
        table.get(id=None)
    with pytest.raises(SchemaMismatchError, match="bigint"):
        table.get(id="one")


def test_inspection_and_reports(table):
    files = table.inspect.files()
    assert files.schema == FILES_SCHEMA
    assert sum(files["rows"].to_pylist()) == 2
    report = table.lake.runner.run(explain, table.root, str(table.name), Comparison("id", "=", 1))
    assert len(report.buckets) == 1
    assert report.read.files_left == 1
