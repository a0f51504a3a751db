"""INSERT INTO, INSERT OVERWRITE and TRUNCATE."""

import datetime as dt

import pytest

from lakekit import (
    ColumnNotFoundError,
    InvalidOptionError,
    LakeError,
    PrimaryKeyError,
    QueryError,
    SchemaMismatchError,
)

ALL = "SELECT * FROM orders ORDER BY id, dt"


def test_insert_is_an_upsert(lake, run, orders):
    frame = lake.sql("INSERT INTO orders VALUES (1, 'a', 11, 'new'), (5, 'c', 50, 'v')")
    (commit,) = frame.collect()
    assert (commit.version, commit.rows_inserted, commit.rows_updated, commit.rows_deleted) == (2, 1, 1, 0)
    assert [row[0::3] for row in run(ALL)] == [(1, "new"), (2, "y"), (3, None), (4, "z"), (5, "v")]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("INSERT INTO orders (dt, id) VALUES ('n', '9')", (9, "n", None, None)),
        ("INSERT INTO orders BY NAME SELECT 9 AS ID, 'n' AS dt, 1.5 AS amount", (9, "n", 1.5, None)),
        ("INSERT INTO TABLE orders SELECT 9, 'n', :amount, DATE '2020-01-31'", (9, "n", 2.5, "2020-01-31")),
        ("INSERT INTO orders PARTITION (dt = 'n') SELECT 9, 1, 'p'", (9, "n", 1, "p")),
        ("INSERT INTO orders PARTITION (dt = 'n') (note, id) VALUES ('p', 9)", (9, "n", None, "p")),
        ("WITH w AS (SELECT 9 AS a) INSERT INTO orders SELECT a, 'n', a, NULL FROM w", (9, "n", 9, None)),
        ("INSERT INTO orders WITH w AS (SELECT 9 AS a) SELECT a, 'n', a, NULL FROM w", (9, "n", 9, None)),
        ("INSERT INTO orders (SELECT id + 8, 'n', amount, note FROM orders WHERE id = 1)", (9, "n", 10, "x")),
        ("INSERT INTO orders VALUES (9, 'n', DEFAULT, 'DEFAULT')", (9, "n", None, "DEFAULT")),
        ("INSERT INTO orders /*+ OPTIONS('emit.mode' = 'auto') */ VALUES (9, 'n', 1, ';')", (9, "n", 1, ";")),
        ("INSERT INTO IDENTIFIER(:t) VALUES (9, 'n', 1, :note)", (9, "n", 1, "it's :x")),
        ("INSERT INTO orders FROM orders SELECT 9, 'n', max(amount), NULL", (9, "n", 40, None)),
    ],
)
def test_forms(run, orders, statement, expected):
    run(statement, amount=2.5, t=orders, note="it's :x")
    assert run("SELECT * FROM orders WHERE id = 9") == [expected]


def test_a_table_of_rows(run, orders):
    run("CREATE TEMP VIEW staged AS SELECT * FROM orders WHERE id < 3")
    run("INSERT OVERWRITE orders TABLE staged")
    assert [row[0] for row in run(ALL)] == [1, 2]
    run("DROP VIEW staged")


@pytest.mark.parametrize(
    ("statement", "error", "problem"),
    [
        ("INSERT INTO orders VALUES (1, 'a')", SchemaMismatchError, "expects 4 columns"),
        ("INSERT INTO orders (id, colour) VALUES (1, 'a')", ColumnNotFoundError, "colour"),
        ("INSERT INTO orders (id, ID) VALUES (1, 2)", SchemaMismatchError, "twice"),
        ("INSERT INTO orders BY NAME SELECT 1 AS id, 'a' AS colour", ColumnNotFoundError, "colour"),
        ("INSERT INTO orders VALUES (NULL, 'a', 1, 'x')", PrimaryKeyError, "1 row"),
        ("INSERT INTO orders (id) VALUES (1)", PrimaryKeyError, "null in the primary key"),
        ("INSERT INTO orders VALUES ('one', 'a', 1, 'x')", LakeError, "CAST_INVALID_INPUT"),
        ("INSERT INTO orders VALUES (array(1), 'a', 1, 'x')", QueryError, "CAST"),
        ("INSERT INTO orders SELECT id, dt, amount, nope FROM orders", QueryError, "line 1, column 43"),
        (
            "INSERT INTO orders PARTITION (note = 'x') SELECT 1, 'a', 2",
            ColumnNotFoundError,
            "no partition column",
        ),
        ("INSERT INTO orders REPLACE WHERE id = 1 VALUES (1, 'a', 1, 'x')", QueryError, "INSERT OVERWRITE"),
        ("INSERT INTO orders", QueryError, "expected a query"),
        (
            "INSERT INTO orders /*+ OPTIONS('emit.mode' = 'log') */ VALUES (1, 'a', 1, 'x')",
            InvalidOptionError,
            "log",
        ),
        ("FROM orders INSERT INTO orders SELECT * INSERT INTO orders SELECT *", QueryError, "of its own"),
        ("EXECUTE IMMEDIATE 'INSERT INTO orders (id, dt) VALUES (1, \"a\")'", QueryError, "of its own"),
    ],
)
def test_what_is_refused_changes_nothing(run, lake, orders, statement, error, problem):
    with pytest.raises(error, match=problem):
        run(statement)
    assert lake.table(orders).version == 1


@pytest.mark.parametrize(
    ("statement", "ids"),
    [
        ("INSERT OVERWRITE orders PARTITION (dt = 'a') SELECT 7, 1, 'n'", [3, 4, 7]),
        ("INSERT OVERWRITE TABLE orders PARTITION (dt = 'c') VALUES (7, 1, 'n')", [1, 2, 3, 4, 7]),
        ("INSERT OVERWRITE orders PARTITION (dt) SELECT 7, 'b', 1, 'n'", [1, 2, 7]),
        ("INSERT OVERWRITE orders SELECT 7, 'b', 1, 'n'", [7]),
        (
            "INSERT OVERWRITE orders PARTITION (dt = 'a') SELECT id, amount, note FROM orders WHERE id = 2",
            [2, 3, 4],
        ),
        ("TRUNCATE TABLE orders PARTITION (dt = 'b')", [1, 2]),
        ("TRUNCATE TABLE orders", []),
    ],
)
def test_overwrite(run, orders, statement, ids):
    run(statement)
    assert sorted(row[0] for row in run("SELECT id FROM orders")) == ids


def test_overwrite_follows_sparks_setting(lake, run, orders):
    lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        run("INSERT OVERWRITE orders VALUES (7, 'b', 1, 'n')")
    finally:
        lake.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert sorted(row[0] for row in run("SELECT id FROM orders")) == [1, 2, 7]


def test_partitions_of_other_types(run):
    run("CREATE TABLE days (id INT, day DATE, n INT, PRIMARY KEY (id, day)) USING lake PARTITIONED BY (day)")
    run("INSERT INTO days VALUES (1, '2020-01-01', 1), (1, '2020-01-02', 2)")
    run("INSERT OVERWRITE days PARTITION (day = date_add('2020-01-01', 1)) VALUES (5, 3)")
    assert run("SELECT * FROM days ORDER BY day") == [
        (1, dt.date(2020, 1, 1), 1),
        (5, dt.date(2020, 1, 2), 3),
    ]
    run("INSERT INTO days PARTITION (day = '2020-01-03') VALUES (6, 4)")
    assert run("SELECT n FROM days WHERE day = DATE '2020-01-03'") == [(4,)]


def test_append_tables(run):
    run("CREATE TABLE logs (id INT, s STRING) USING lake")
    run("INSERT INTO logs VALUES (1, 'a')")
    run("INSERT INTO logs (s) VALUES ('b')")
    assert sorted(run("SELECT * FROM logs"), key=str) == [(1, "a"), (None, "b")]
    run("INSERT OVERWRITE logs VALUES (2, 'c')")
    assert run("SELECT * FROM logs") == [(2, "c")]


def test_values_that_do_not_fit_are_refused_without_ansi_mode_too(lake, run, orders):
    lake.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        run("INSERT INTO orders VALUES ('9', 'n', '1.5', 7)")
        with pytest.raises(LakeError, match="column id does not fit bigint"):
            run("INSERT INTO orders VALUES ('nine', 'n', 1, 'x')")
    finally:
        lake.spark.conf.set("spark.sql.ansi.enabled", "true")
    assert run("SELECT amount, note FROM orders WHERE id = 9") == [(1.5, "7")]
