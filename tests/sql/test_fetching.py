"""Queries of few rows: the same answers as from Spark's own reading, without its jobs."""

import pytest

from lakekit import LakeError, QueryError
from lakekit.sql.fetching import named_columns
from lakekit.sql.lexer import tokenize
from lakekit.sql.scanner import scan
from lakekit.table import fetch


@pytest.fixture(scope="module")
def table(lake, database):
    """50,000 keys in four buckets; a tenth of them changed, 50 removed, a column added in between."""
    made = lake.create_table(
        "many",
        "id BIGINT, dt DATE, n INT COMMENT 'a number', s STRING NOT NULL, at TIMESTAMP, "
        "who STRUCT<name: STRING, tags: ARRAY<STRING>, since: TIMESTAMP>, wall TIMESTAMP_NTZ, raw BINARY, "
        "scores MAP<STRING, DECIMAL(10, 2)>, score DOUBLE",
        primary_key=["id"],
        buckets=4,
        properties={"compaction.auto": "false"},
    )
    columns = (
        "id, DATE'2022-01-01' + INT(id % 30) AS dt, INT(id % 100) AS n, concat('s', id) AS s, "
        "TIMESTAMP'2022-01-01 12:00:00' + make_interval(0, 0, 0, 0, 0, 0, id) AS at, "
        "named_struct('name', string(id), 'tags', array('a', NULL), 'since', TIMESTAMP'2022-07-01 12:00:00') AS who, "
        "TIMESTAMP_NTZ'2022-07-01 12:30:00' AS wall, X'00ff' AS raw, map('a', 1.5BD) AS scores, id / 7 AS score"
    )
    lake.sql(f"INSERT INTO many SELECT {columns} FROM range(50000)")
    lake.sql("ALTER TABLE many ADD COLUMN extra DECIMAL(10, 2)")
    lake.sql(f"INSERT INTO many SELECT {columns}, 1.5 FROM range(0, 50000, 10)")
    made.delete([{"id": i} for i in range(0, 50_000, 1_000)])
    return made


@pytest.fixture
def jobs(lake):
    """Returns the number of Spark jobs so far."""
    tracker = lake.spark.sparkContext.statusTracker()
    return lambda: len(tracker.getJobIdsForGroup(None))


FEW = [
    "SELECT * FROM many WHERE id = 4321",
    "SELECT * FROM many WHERE id = 3000",
    "SELECT * FROM many WHERE id = 99999999",
    "SELECT s, extra FROM many WHERE id IN (10, 20, 21, 1000) ORDER BY id",
    "SELECT count(*), sum(n), max(at), count(extra) FROM many WHERE id BETWEEN 4000 AND 4999",
    "SELECT who.name, who.tags FROM many WHERE id > 49990 ORDER BY id",
    "SELECT m.* FROM many AS m JOIN VALUES (11), (12) AS v (id) ON m.id = v.id WHERE m.id < 100 ORDER BY 1",
    "SELECT a.s, b.s FROM many a JOIN many VERSION AS OF 1 b ON a.id = b.id + 1 WHERE a.id = 50 AND b.id = 49",
    "SELECT id, n FROM many VERSION AS OF 1 WHERE id = 1000",
    "SELECT n AS number FROM many WHERE id = :key AND n = :key % 100",
    "FROM many |> WHERE id = 77 |> SELECT s",
    "WITH w AS (SELECT id, s FROM many WHERE id < 5) SELECT * FROM w WHERE s LIKE 's%' ORDER BY id",
]


@pytest.mark.parametrize("query", FEW)
def test_the_rows_are_those_of_spark(lake, run, table, query, monkeypatch):
    params = {"key": 4242} if ":key" in query else {}
    fetched = lake.sql(query, **params)
    rows = fetched.collect()
    monkeypatch.setattr("lakekit.sql.rewrite.can_fetch", lambda _: False)
    by_spark = lake.sql(query, **params)
    assert rows == by_spark.collect()
    assert fetched.schema == by_spark.schema


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_times_are_those_of_spark_in_any_zone(lake, table, zone, monkeypatch):
    query = "SELECT at, who.since, wall, string(at), string(who.since) FROM many WHERE id = 7"
    lake.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        fetched = lake.sql(query).collect()
        monkeypatch.setattr("lakekit.sql.rewrite.can_fetch", lambda _: False)
        assert lake.sql(query).collect() == fetched
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize("partitions", [[], ["dt"]])
def test_tables_that_spark_wrote(lake, run, database, table, partitions, monkeypatch):
    """Appends go through Spark's own writer, with its types and its names of folders."""
    name = "appended" + "".join(partitions)
    lake.create_table(name, table.schema, partition_by=partitions)
    run(f"INSERT INTO {name} SELECT * FROM many WHERE id < 3000")
    run(f"INSERT INTO {name} SELECT * FROM many WHERE id BETWEEN 2990 AND 2999")
    query = f"SELECT * FROM {name} WHERE id >= 2985 OR dt = DATE'2022-01-02' AND id < 100 ORDER BY id, dt"
    fetched = lake.sql(query)
    rows = fetched.collect()
    assert len(rows) == 15 + 10 + 4
    monkeypatch.setattr("lakekit.sql.rewrite.can_fetch", lambda _: False)
    by_spark = lake.sql(query)
    assert by_spark.collect() == rows
    assert by_spark.schema == fetched.schema


def test_no_job_is_started(lake, table, jobs):
    before = jobs()
    assert lake.sql("SELECT * FROM many WHERE id = 4321").collect()[0].s == "s4321"
    assert len(lake.sql("SELECT s FROM many WHERE id BETWEEN 100 AND 300").collect()) == 201
    assert jobs() == before


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT count(*) FROM many", 49_950),
        ("SELECT count(*) FROM many WHERE n = 7", 500),
        ("SELECT count(*) FROM many WHERE id > 1", 49_949),
        ("SELECT count(*) FROM many WHERE id % 2 = 1", 25_000),
    ],
)
def test_spark_reads_many_rows(run, table, query, expected):
    assert run(query) == [(expected,)]


def test_too_much_is_not_fetched(table, monkeypatch):
    from lakekit.skipping.predicate import And, Comparison

    key = Comparison("id", "<=", 99)
    assert fetch.fetch(table.root, key).num_rows == 99
    assert fetch.fetch(table.root, And(())) is None
    assert fetch.fetch(table.root, Comparison("n", "=", 7)).num_rows == 500
    for limit, least in [("FILES", 0), ("ROWS", 99), ("JUDGED", 1_000), ("READ", 1_000), ("BYTES", 1_000)]:
        with monkeypatch.context() as patch:
            patch.setattr(fetch, f"MOST_{limit}", least)
            assert fetch.fetch(table.root, key) is None


def test_a_query_keeps_the_rows_it_was_made_with(lake, run, database):
    run("CREATE TABLE small (id INT PRIMARY KEY, s STRING) USING lake")
    run("INSERT INTO small VALUES (1, 'old')")
    frame = lake.sql("SELECT s FROM small WHERE id = 1")
    run("UPDATE small SET s = 'new' WHERE id = 1")
    assert run("SELECT s FROM small WHERE id = 1") == [("new",)]
    assert frame.collect()[0].s == "old"


def test_a_view_sees_later_rows(run, database):
    run("CREATE TABLE seen (id INT PRIMARY KEY, s STRING) USING lake")
    run("INSERT INTO seen VALUES (1, 'old')")
    run("CREATE OR REPLACE TEMP VIEW first_seen AS SELECT s FROM seen WHERE id = 1")
    run("UPDATE seen SET s = 'new' WHERE id = 1")
    assert run("SELECT * FROM first_seen") == [("new",)]


def test_text_that_spark_pads(run, database):
    run("CREATE TABLE padded (id INT PRIMARY KEY, c CHAR(5), v VARCHAR(5)) USING lake")
    run("INSERT INTO padded VALUES (1, 'ab', 'ab')")
    assert run("SELECT c, v FROM padded WHERE id = 1") == [("ab   ", "ab")]


def test_values_that_only_spark_reads(run, database):
    run("CREATE TABLE loose (id INT PRIMARY KEY, v VARIANT, parts ARRAY<STRUCT<v: VARIANT>>) USING lake")
    run("INSERT INTO loose SELECT 1, parse_json('{\"a\": 5}'), array(named_struct('v', parse_json('7')))")
    query = "SELECT variant_get(v, '$.a', 'int'), variant_get(parts[0].v, '$', 'int') FROM loose WHERE id = 1"
    assert run(query) == [(5, 7)]


def test_errors_are_those_of_the_whole_table(lake, table):
    with pytest.raises(LakeError, match="extra"):
        lake.sql("SELECT extre FROM many WHERE id = 1")
    with pytest.raises(QueryError):
        lake.sql("SELECT s + FROM many WHERE id = 1")


def test_a_damaged_file(lake, run, database):
    run("CREATE TABLE broken (id INT PRIMARY KEY, s STRING) USING lake")
    run("INSERT INTO broken VALUES (1, 'a')")
    table = lake.table("broken")
    for file in table.snapshot().files.values():
        with open(f"{table.root}/{file.file_path}", "wb") as data:
            data.write(b"no Parquet")
    with pytest.raises(Exception, match=r"[Pp]arquet|file"):
        lake.sql("SELECT s FROM broken WHERE id = 1").collect()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT a, `B c` FROM t WHERE k = 1", {"a", "b c", "k"}),
        ("SELECT count(*) FROM t WHERE k = 1", {"k"}),
        ("SELECT s.x FROM t JOIN u ON t.k = u.k", {"s", "x", "k"}),
        ("SELECT * FROM t", None),
        ("SELECT a * 2 FROM t", None),
        ("SELECT t.* FROM t", None),
        ("FROM t", None),
        ("FROM t |> WHERE a = 1", None),
        ("TABLE t", None),
        ("SELECT a FROM t NATURAL JOIN u", None),
        ("SELECT a FROM t PIVOT (sum(b) FOR c IN (1, 2))", None),
        ("SELECT a FROM t WHERE IDENTIFIER(:c) = 1", None),
        ("WITH w AS (FROM t) SELECT a FROM w", None),
    ],
)
def test_the_columns_that_a_query_names(query, names):
    found = named_columns(scan(tokenize(query)))
    assert (found is None) == (names is None)
    assert found is None or found >= names
