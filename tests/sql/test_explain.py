"""EXPLAIN LAKE."""

import pytest

from lakekit import QueryError
from lakekit.skipping.report import SkippingReport


@pytest.fixture(scope="module", autouse=True)
def tables(run):
    run(
        """CREATE TABLE facts (id INT, dt STRING, t TIMESTAMP, d DATE, PRIMARY KEY (id, dt)) USING lake
           PARTITIONED BY (dt) CLUSTERED BY (id, dt) INTO 4 BUCKETS"""
    )
    run(
        "INSERT INTO facts SELECT id, concat('d', id % 3), timestamp_seconds(id * 86400),"
        " DATE '1970-01-01' + CAST(id AS INT) FROM range(60)"
    )
    run("CREATE TABLE names (id INT PRIMARY KEY, s STRING) USING lake")


def test_one_table(lake):
    report = lake.explain("SELECT * FROM facts WHERE id = :id AND dt = 'd1'", id=4)
    assert isinstance(report, SkippingReport)
    assert len(report.buckets) == 1
    assert report.read.files_left <= 1
    assert report.total.files_left == 12
    assert sorted(report.conditions) == ["dt = 'd1'", "id = 4"]


@pytest.mark.parametrize(
    ("where", "used"),
    [
        ("d = '1970-01-05'", 1),
        ("d BETWEEN DATE '1970-01-05' AND date_add('1970-01-05', 2)", 2),
        ("t >= TIMESTAMP '1970-01-05 00:00:00'", 1),
        ("t < '1970-01-05'", 1),
        ("t < DATE '1970-01-05'", 1),
        ("id = '7'", 1),
        ("id = 'seven'", 0),
        ("id = length(dt)", 0),
        ("dt LIKE 'd1%'", 1),
        ("id IN (1, 2) OR dt = 'd2'", 1),
        ("length(dt) = 1", 0),
    ],
)
def test_conditions(lake, where, used):
    report = lake.explain(f"SELECT * FROM facts WHERE {where}")
    assert len(report.conditions) == used


def test_as_a_statement(lake, run):
    rows = run("EXPLAIN LAKE SELECT n.s FROM facts f JOIN names n ON f.id = n.id WHERE f.dt = 'd0'")
    frame = lake.sql("EXPLAIN LAKE SELECT * FROM facts VERSION AS OF 0")
    assert {row[0].split(".")[1] for row in rows} == {"facts", "names"}
    assert frame.columns[:3] == ["table", "version", "step"]
    assert {row.version for row in frame.collect()} == {0}


def test_several_tables(lake):
    reports = lake.explain("SELECT * FROM facts f JOIN names n ON f.id = n.id WHERE n.id = 3")
    assert [r.table.split(".")[1] for r in reports] == ["facts", "names"]


def test_refused(lake, run):
    with pytest.raises(QueryError, match="no table of the lake"):
        run("EXPLAIN LAKE SELECT 1")
    with pytest.raises(QueryError, match="nope"):
        run("EXPLAIN LAKE SELECT nope FROM facts")
    with pytest.raises(QueryError, match="2 statements"):
        lake.explain("SELECT 1; SELECT 2")
