"""The same SQL through Spark Connect."""

import pytest

from lakekit import QueryError, TableNotFoundError


@pytest.fixture(scope="module")
def run(remote_lake):
    def runs(query, /, **params):
        return [tuple(row) for row in remote_lake.sql(query, **params).collect()]

    runs("CREATE DATABASE IF NOT EXISTS remote_sql")
    runs("USE remote_sql")
    runs(
        "CREATE TABLE t (id INT, k STRING, n INT, PRIMARY KEY (id, k)) PARTITIONED BY (k) WITH ('bucket' = '2')"
    )
    runs("INSERT INTO t SELECT CAST(id AS INT), 'a', 0 FROM range(5)")
    yield runs
    runs("USE default")
    runs("DROP DATABASE remote_sql CASCADE")


def test_reads_and_writes(remote_lake, run):
    assert remote_lake.sql("SELECT * FROM t").columns == ["id", "k", "n"]
    assert run("SELECT remote_sql.t.id FROM t WHERE id = :id AND k = 'a'", id=3) == [(3,)]
    run("UPDATE t SET n = :n WHERE id IN (SELECT 3)", n=7)
    run("UPDATE t SET id = id + 100 WHERE id = 4")
    run("DELETE FROM t WHERE id = 0")
    run("MERGE INTO t USING (SELECT 1 AS id UNION SELECT 50) s ON t.id = s.id WHEN MATCHED THEN DELETE"
        " WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, :k)", k="b")  # fmt: skip
    assert sorted(run("SELECT * FROM t"), key=str) == [
        (104, "a", 0),
        (2, "a", 0),
        (3, "a", 7),
        (50, "b", None),
    ]
    assert run("SELECT count(*) FROM t VERSION AS OF 1") == [(5,)]


def test_about_tables(remote_lake, run):
    frame = remote_lake.sql("SELECT min(version) FROM t$snapshots")
    run("SELECT 1")
    assert frame.collect()[0][0] == 0
    assert ("id", "int", None) in run("DESCRIBE t")
    assert ("remote_sql", "t", False) in run("SHOW TABLES")
    assert len(run("EXPLAIN LAKE SELECT * FROM t WHERE id = 3 AND k = 'a'")) == 7


def test_errors(run):
    with pytest.raises(QueryError, match=r"line 1, column 8(.|\n)*Did you mean 'id'"):
        run("SELECT idd FROM t")
    with pytest.raises(TableNotFoundError):
        run("SELECT * FROM nothing")
    with pytest.raises(QueryError, match=":gone"):
        run("SELECT :gone")
    with pytest.raises(QueryError, match="SYNTAX_ERROR"):
        run("SELECT * FORM t")
    with pytest.raises(QueryError, match=r"several source rows"):
        run(
            "MERGE INTO t USING (SELECT 3 id UNION ALL SELECT 3) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1"
        )
