"""SELECT over tables of the lake."""

import pytest

from lakekit import InvalidOptionError, QueryError, TableNotFoundError, VersionNotFoundError
from lakekit.names import quote


@pytest.fixture(scope="module", autouse=True)
def tables(run, database):
    run(
        "CREATE TABLE orders (id BIGINT, dt STRING, n INT, PRIMARY KEY (id, dt)) USING lake PARTITIONED BY (dt)"
    )
    run("INSERT INTO orders SELECT id, concat('d', id % 2), id * 10 FROM range(6)")
    run("INSERT INTO orders VALUES (100, 'd0', 1000)")
    run("CREATE TABLE events USING lake AS SELECT id, 'e' AS kind FROM range(3)")
    run("CREATE TABLE csvs USING csv AS SELECT id, 'c' AS kind FROM range(2)")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM orders WHERE id = 1", [(1, "d1", 10)]),
        ("SELECT orders.* FROM orders WHERE orders.id = 1", [(1, "d1", 10)]),
        ("SELECT {db}.orders.n, o.n FROM {db}.orders JOIN orders o USING (id) WHERE {db}.orders.id = 2", [(20, 20)]),
        ("SELECT ORDERS.N FROM `Orders` WHERE `ID` = 1", [(10,)]),
        ("SELECT spark_catalog.{db}.orders.n FROM spark_catalog.{db}.orders WHERE id = 1", [(10,)]),
        ("SELECT o.n FROM arctic.{db}.orders o WHERE o.id = 1", [(10,)]),
        ("WITH orders AS (SELECT 7 AS id) SELECT * FROM orders", [(7,)]),
        ("WITH o AS (SELECT * FROM orders) SELECT count(*) FROM o", [(7,)]),
        ("TABLE events UNION ALL SELECT 9, 'x' ORDER BY id DESC LIMIT 1", [(9, "x")]),
        ("FROM orders |> WHERE id = 1 |> SELECT n", [(10,)]),
        ("SELECT max(n) FROM orders WHERE id IN (SELECT id FROM events)", [(20,)]),
        ("SELECT count(*) FROM orders o LEFT ANTI JOIN events e ON o.id = e.id", [(4,)]),
        ("SELECT count(*) FROM orders, csvs, events", [(42,)]),
        ("SELECT o.id, e.kind FROM orders o LEFT JOIN events e ON e.id = 1 WHERE o.id = 1", [(1, "e")]),
        ("SELECT count(e.id) FROM orders o LEFT JOIN events e ON o.id = e.id WHERE e.id IS NULL", [(0,)]),
        ("SELECT count(*) FROM orders o LEFT JOIN (orders p JOIN events e ON p.id = e.id) ON o.id = p.id", [(7,)]),
        ("SELECT count(*) FROM orders TABLESAMPLE (2 ROWS) s", [(2,)]),
        ("SELECT k FROM orders AS o (k, p, m) WHERE o.m = 20", [(2,)]),
        ("SELECT count(*) FROM IDENTIFIER('{db}.orders')", [(7,)]),
        ("SELECT count(DISTINCT _metadata.file_path) > 0 FROM orders", [(True,)]),
        ("SELECT 'FROM orders', \"orders\" FROM orders WHERE id = 1", [("FROM orders", "orders")]),
        ("SELECT n FROM orders WHERE id = 1 AND dt = '_metadata' OR id = 2", [(20,)]),
        ("SELECT count(*) FROM orders GROUP BY ALL HAVING count(*) = 7", [(7,)]),
        ("SELECT DISTINCT kind FROM events NATURAL JOIN csvs WHERE false", []),
    ],
)  # fmt: skip
def test_rows(run, database, query, expected):
    assert run(query.format(db=database)) == expected


def test_the_bucket_column_is_hidden(lake, database):
    assert lake.sql("SELECT * FROM orders").columns == ["id", "dt", "n"]
    assert lake.sql("SELECT * FROM orders o JOIN events e ON o.id = e.id").columns == [
        "id",
        "dt",
        "n",
        "id",
        "kind",
    ]


WHERES = [
    "id = 3 AND dt = 'd1'",
    "id IN (1, 2, 100) AND dt IN ('d0', 'd1')",
    "id = :three AND dt = concat('d', '1')",
    "id = '3' AND dt = 'd1'",
    "id = 3.0 AND dt = 'd1'",
    "id = 3.5 AND dt = 'd1'",
    "id = 3 AND dt = 'd1' OR id = 4 AND dt = 'd0'",
    "id = 3 AND dt = 'd1' OR n = 40",
    "(id = 3 OR id = 5) AND 'd1' = dt",
    "id <=> 3 AND dt <=> 'd1'",
    "id BETWEEN 3 AND 3 AND dt = 'd1'",
    "id = NULL AND dt = 'd1'",
    "id = 1 AND id = 2 AND dt = 'd1'",
    "id = CAST('3' AS INT) AND dt = 'd1'",
    "id = 3L AND dt LIKE 'd1'",
    "id = -1 AND dt = 'd1'",
    "NOT (id = 3 AND dt = 'd1')",
    "id = 99999999999999999999 AND dt = 'd1'",
]


@pytest.mark.parametrize("where", WHERES)
def test_a_bucket_predicate_changes_no_result(lake, run, database, where):
    lake.table(f"{database}.orders").to_df().createOrReplaceTempView("all_orders")
    expected = sorted(run(f"SELECT * FROM all_orders WHERE {where}", three=3))
    assert sorted(run(f"SELECT * FROM orders WHERE {where}", three=3)) == expected


def test_a_key_is_looked_for_in_its_bucket_only(run, database):
    run("CREATE TABLE many (id INT PRIMARY KEY, s STRING) USING lake CLUSTERED BY (id) INTO 4 BUCKETS")
    ((plan,),) = run("EXPLAIN SELECT s FROM many WHERE id = 5")
    assert "_bucket" in plan
    ((plan,),) = run("EXPLAIN SELECT s FROM many WHERE id > 5")
    assert "PartitionFilters: []" in plan


def test_time_travel(run, database):
    assert run("SELECT count(*) FROM orders VERSION AS OF 1") == [(6,)]
    assert run("SELECT count(*) FROM orders FOR VERSION AS OF :v", v=0) == [(0,)]
    assert run("SELECT count(*) FROM orders VERSION AS OF '1' o JOIN orders USING (id)") == [(6,)]
    assert run("SELECT count(*) FROM orders /*+ OPTIONS('versionAsOf' = '1') */ WHERE id >= 0") == [(6,)]
    assert run("SELECT count(*) FROM orders TIMESTAMP AS OF current_timestamp()") == [(7,)]
    assert run("SELECT id FROM orders VERSION AS OF 1 WHERE id = 100 AND dt = 'd0'") == []


@pytest.mark.parametrize(
    "clause", ["VERSION AS OF 99", "TIMESTAMP AS OF '2001-01-01'", "/*+ OPTIONS('versionAsOf' = '99') */"]
)
def test_a_version_out_of_range(run, database, clause):
    with pytest.raises(VersionNotFoundError, match="from"):
        run(f"SELECT * FROM orders {clause}")


def test_a_version_that_is_none(run, database):
    with pytest.raises(QueryError, match="no version"):
        run("SELECT * FROM orders VERSION AS OF 'latest'")


def test_a_temporary_view_hides_the_table(lake, run, database):
    run("CREATE OR REPLACE TEMP VIEW events AS SELECT 'view' AS v")
    assert run("SELECT * FROM events") == [("view",)]
    assert run(f"SELECT count(*) FROM {database}.events") == [(3,)]
    lake.spark.catalog.dropTempView("events")


def test_tables_of_one_name_in_two_databases(lake, run, database):
    lake.create_database("other_select")
    run("CREATE TABLE other_select.orders USING lake AS SELECT 1L AS id, 5 AS n")
    query = """SELECT {db}.orders.n, other_select.orders.n FROM {db}.orders
               JOIN other_select.orders ON {db}.orders.id = other_select.orders.id"""
    assert run(query.format(db=database)) == [(10, 5)]
    lake.drop_database("other_select", cascade=True)


def test_views_and_tables_made_from_a_query(run, database):
    run("CREATE VIEW big AS SELECT * FROM orders WHERE n >= 50")
    assert run("SELECT count(*) FROM big") == [(2,)]
    run("CREATE TABLE copies USING parquet AS SELECT * FROM orders")
    assert len(run("SELECT * FROM copies")[0]) == 3
    run("INSERT INTO csvs SELECT id, 'o' FROM orders WHERE id = 100")
    assert run("SELECT kind FROM csvs WHERE id = 100") == [("o",)]
    run("DELETE FROM orders WHERE false")


def test_tables_that_spark_alone_knows_are_left_alone(lake, run, database):
    assert run("SELECT count(*) FROM csvs") != []
    assert lake.spark.catalog.tableExists(f"{quote(database)}.csvs")


def test_options(run, database):
    assert run("SELECT id FROM orders /*+ OPTIONS('arctic.read.mode' = 'file') */ o WHERE id = 1") == [(1,)]
    for hint, problem in [
        ("'read.mode' = 'log'", "log"),
        ("'nonsense' = '1'", "nonsense"),
        ("'bucket' = '1'", "bucket"),
    ]:
        with pytest.raises(InvalidOptionError, match=problem):
            run(f"SELECT * FROM orders /*+ OPTIONS({hint}) */")
    with pytest.raises(QueryError, match="OPTIONS"):
        run("SELECT * FROM csvs /*+ OPTIONS('read.mode' = 'file') */")


def test_unknown_tables(run, database):
    with pytest.raises(TableNotFoundError, match="Did you mean 'orders'"):
        run("SELECT * FROM oders")
    with pytest.raises(TableNotFoundError, match="does not exist"):
        run(f"SELECT * FROM {database}.nothing_like_it")
