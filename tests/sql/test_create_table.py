"""CREATE TABLE: reading the statement, and making tables of the lake."""

import pytest

from lakekit import (
    AlreadyExistsError,
    ColumnNotFoundError,
    InvalidOptionError,
    LakeError,
    PrimaryKeyError,
    QueryError,
)
from lakekit.sql.create import is_lake_table, parse_create
from lakekit.sql.statement import Statement
from lakekit.sql.text import SqlText


def read(text):
    return parse_create(Statement(SqlText.user(text)))


def columns(wanted):
    return [(f.name, f.dataType.simpleString(), f.nullable) for f in wanted.columns]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("CREATE TABLE t (id INT) USING lake", True),
        ("create table t (id int) using ARCTIC", True),
        ("CREATE TABLE t (id INT) USING `mixed`", True),
        ("CREATE TABLE t (id INT, PRIMARY KEY (id))", True),
        ("CREATE TABLE t (id INT PRIMARY KEY)", True),
        ("CREATE TABLE t (id INT) WITH ('a' = 'b')", True),
        ("CREATE TABLE t (PRIMARY KEY (id)) AS SELECT 1 AS id", True),
        ("CREATE TABLE t (id INT)", False),
        ("CREATE TABLE t (id INT) USING delta", False),
        ("CREATE TABLE t USING parquet AS SELECT 1", False),
        ("CREATE TABLE t AS WITH x AS (SELECT 1) SELECT * FROM x", False),
        ("CREATE TABLE t AS SELECT 1 AS id, 'PRIMARY KEY' AS x", False),
        ("CREATE TABLE t (id INT, primary INT) STORED AS parquet", False),
    ],
)
def test_what_is_a_table_of_the_lake(statement, expected):
    assert is_lake_table(Statement(SqlText.user(statement))) is expected


def test_all_clauses():
    wanted = read(
        """CREATE TABLE IF NOT EXISTS db.t (
             id BIGINT NOT NULL COMMENT 'the, key', `two words` DECIMAL(10, 2),
             s STRUCT<a: INT, b: ARRAY<MAP<STRING, INT>>> COMMENT 'x', CONSTRAINT pk PRIMARY KEY (id, dt) NOT ENFORCED)
           USING lake PARTITIONED BY (dt STRING, bucket(8, id, dt)) COMMENT 'it''s'
           TBLPROPERTIES ('a' = 'b', compaction.num-runs = 7, x.y true) LOCATION '/tmp/x'"""
    )
    assert wanted.name.parts == ("db", "t")
    assert wanted.if_not_exists
    assert columns(wanted) == [
        ("id", "bigint", False),
        ("two words", "decimal(10,2)", True),
        ("s", "struct<a:int,b:array<map<string,int>>>", True),
        ("dt", "string", True),
    ]
    assert (wanted.primary_key, wanted.partition_by) == (["id", "dt"], ["dt"])
    assert (wanted.buckets, wanted.bucket_columns) == (8, ["id", "dt"])
    assert wanted.properties == {"a": "b", "compaction.num-runs": "7", "x.y": "true"}
    assert (wanted.comment, wanted.location) == ("it's", "/tmp/x")
    assert wanted.columns[0].metadata == {"comment": "the, key"}


def test_types_of_flink():
    wanted = read(
        "CREATE TABLE t (a BYTES, b TIMESTAMP(3), c TIMESTAMP_LTZ(6), d INT PRIMARY KEY NOT ENFORCED) WITH ()"
    )
    assert [c[1] for c in columns(wanted)] == ["binary", "timestamp", "timestamp", "int"]
    assert wanted.primary_key == ["d"]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("CREATE TABLE t (id INT, PRIMARY KEY (id) USING lake", r"expected \)"),
        ("CREATE TABLE t (id INT PRIMARY KEY, PRIMARY KEY (id)) USING lake", "twice"),
        ("CREATE TABLE t (id INT DEFAULT 3) USING lake", "no defaults"),
        ("CREATE TABLE t (id INT, UNIQUE (id)) USING lake", "UNIQUE is not supported"),
        ("CREATE TABLE t (id INT) USING lake CLUSTER BY (id)", "not expected"),
        ("CREATE TABLE t (id INT) USING lake PARTITIONED BY (days(id))", "not by functions"),
        ("CREATE TABLE t (id INT) USING lake AS SELECT 1", "columns from the query"),
        ("CREATE TABLE t (id INT) USING lake TBLPROPERTIES ('a' = 'b', 'a' = 'c')", "twice"),
        ("CREATE TABLE t (id) USING lake", "type of the column"),
        ("CREATE TEMPORARY TABLE t (id INT) USING lake", "temporary"),
    ],
)
def test_syntax_errors(statement, problem):
    with pytest.raises(QueryError, match=problem):
        read(statement)


def test_a_keyed_table(lake, run):
    run(
        """CREATE TABLE keyed (id BIGINT COMMENT 'the key', v VARCHAR(5), dt DATE NOT NULL, PRIMARY KEY (id, dt))
           USING lake PARTITIONED BY (dt) CLUSTERED BY (dt, id) INTO 5 BUCKETS COMMENT 'words'
           TBLPROPERTIES ('arctic.sequence.field' = 'v', 'delta.logRetentionDuration' = 'interval 2 days')"""
    )
    table = lake.table("keyed")
    assert (table.primary_key, table.partition_by, table.buckets) == (("id", "dt"), ("dt",), 5)
    assert (table.comment, table.sequence_field) == ("words", "v")
    assert table.properties["delta.logRetentionDuration"] == "interval 2 days"
    assert table.schema["id"].metadata["comment"] == "the key"


def test_as_select(lake, run):
    run(
        """CREATE TABLE chosen (PRIMARY KEY (k)) USING lake TBLPROPERTIES ('bucket' = '2')
           AS WITH x AS (SELECT id AS k, :s AS s FROM range(3)) SELECT * FROM x WHERE k > 0""",
        s="a;b",
    )
    assert run("SELECT * FROM chosen ORDER BY k") == [(1, "a;b"), (2, "a;b")]
    run("CREATE TABLE appended USING lake (SELECT k FROM chosen)")
    assert lake.table("appended").primary_key == ()
    with pytest.raises(PrimaryKeyError):
        run("CREATE TABLE broken (PRIMARY KEY (k)) USING lake AS SELECT CAST(NULL AS INT) AS k")
    assert not lake.catalog.exists(lake.catalog.resolve("broken"))


def test_like(lake, run):
    run(
        "CREATE TABLE a1 (id INT, dt STRING, PRIMARY KEY (id, dt)) USING lake PARTITIONED BY (dt) WITH ('bucket' = '3')"
    )
    run("CREATE TABLE a2 LIKE a1")
    table = lake.table("a2")
    assert (table.primary_key, table.partition_by, table.buckets) == (("id", "dt"), ("dt",), 3)


def test_if_not_exists(run):
    run("CREATE TABLE once (id INT PRIMARY KEY) USING lake")
    run("CREATE TABLE IF NOT EXISTS once (other STRING PRIMARY KEY) USING lake")
    with pytest.raises(AlreadyExistsError):
        run("CREATE TABLE once (id INT PRIMARY KEY) USING lake")
    with pytest.raises(QueryError, match="cannot be replaced"):
        run("CREATE OR REPLACE TABLE once (id INT PRIMARY KEY) USING lake")
    for statement in (
        "CREATE OR REPLACE TABLE once USING delta AS SELECT 1",
        "REPLACE TABLE once (id INT) USING csv",
    ):
        with pytest.raises(QueryError, match="cannot be replaced"):
            run(statement)


def test_other_formats_go_to_spark(lake, run, database):
    run("CREATE TABLE plain USING delta AS SELECT 1 AS id")
    run("CREATE TABLE csvs (id INT) USING csv")
    run("INSERT INTO csvs VALUES (1)")
    run("INSERT INTO plain SELECT id + 1 FROM csvs")
    assert sorted(run("SELECT * FROM plain")) == [(1,), (2,)]
    assert lake.spark.catalog.tableExists(f"{database}.csvs")


@pytest.mark.parametrize(
    ("statement", "error", "problem"),
    [
        ("CREATE TABLE x (id INT, PRIMARY KEY (idd)) USING lake", ColumnNotFoundError, "Did you mean 'id'"),
        ("CREATE TABLE x (id ARRAY<INT> PRIMARY KEY) USING lake", PrimaryKeyError, "array"),
        ("CREATE TABLE x (id INT PRIMARY KEY, d INT) USING lake PARTITIONED BY (d)", PrimaryKeyError, "partition"),
        ("CREATE TABLE x (id INT PRIMARY KEY) USING lake CLUSTERED BY (id) INTO 0 BUCKETS", InvalidOptionError, "b"),
        ("CREATE TABLE x (id INT PRIMARY KEY, d INT) WITH () CLUSTERED BY (d) INTO 2 BUCKETS", InvalidOptionError, "d"),
        ("CREATE TABLE x (id INT PRIMARY KEY) USING lake WITH ('buckets' = '2')", InvalidOptionError, "mean 'bucket'"),
        ("CREATE TABLE x (id NUMBER PRIMARY KEY) USING lake", LakeError, "NUMBER"),
        ("CREATE TABLE `x y` (id INT PRIMARY KEY) USING lake", LakeError, "name"),
        ("CREATE TABLE x (id INT PRIMARY KEY) USING lake LOCATION '/tmp/elsewhere'", InvalidOptionError, "location"),
        ("CREATE TABLE nowhere.x (id INT PRIMARY KEY) USING lake", LakeError, "nowhere"),
    ],
)  # fmt: skip
def test_what_is_refused_creates_nothing(lake, run, statement, error, problem):
    with pytest.raises(error, match=problem):
        run(statement)
    assert not lake.catalog.exists(lake.catalog.resolve("x"))
