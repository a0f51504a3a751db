"""MERGE INTO, compared with Delta's own on a plain table."""

import pytest

from lakekit import ColumnNotFoundError, PrimaryKeyError, QueryError, SchemaMismatchError
from tests.sql.conftest import fresh

COLUMNS = "id BIGINT, k STRING, n INT, s STRING"
TARGET = "SELECT id, concat('k', id % 3) AS k, CAST(id * 10 AS INT) AS n, concat('s', id) AS s FROM range(8)"
SOURCE = """SELECT * FROM VALUES (1L, 'k1', 100, 'a'), (2L, 'k2', NULL, 'b'), (9L, 'k0', 900, 'c'),
            (5L, 'other', 500, 'd') AS v (id, k, n, s)"""

MERGES = [
    """ON t.id = s.id AND t.k = s.k
       WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
    """ON t.id = s.id AND t.k = s.k
       WHEN MATCHED AND s.n IS NULL THEN DELETE
       WHEN MATCHED THEN UPDATE SET t.n = t.n + s.n, s = upper(s.s)
       WHEN NOT MATCHED BY TARGET AND s.id > 8 THEN INSERT (id, k, n) VALUES (s.id, s.k, s.n)""",
    """ON t.id = s.id
       WHEN NOT MATCHED BY SOURCE AND t.n > 50 THEN DELETE
       WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = -1""",
    """ON t.id = s.id
       WHEN MATCHED AND t.k <> s.k THEN UPDATE SET n = CASE WHEN s.n > 1 THEN 7 END
       WHEN NOT MATCHED THEN INSERT *
       WHEN NOT MATCHED BY SOURCE AND t.id = 7 THEN DELETE""",
    """ON t.k = s.k AND t.id = s.id AND s.n > 200 WHEN MATCHED THEN DELETE""",
    """ON s.id + 10 = t.id
       WHEN NOT MATCHED THEN INSERT (id, k, s) VALUES (s.id + 100, DEFAULT, concat(s.k, ', WHEN'))""",
    """ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = t.id + 50, n = s.n""",
]


@pytest.fixture
def tables(lake, run):
    run(f"CREATE OR REPLACE TEMP VIEW source AS {SOURCE}")
    if not fresh(lake, "target"):
        run(
            f"CREATE TABLE target ({COLUMNS}, PRIMARY KEY (id, k)) USING lake CLUSTERED BY (id, k) INTO 2 BUCKETS"
        )
        run(f"INSERT INTO target {TARGET}")


def all_rows(run, table="target"):
    return sorted(run(f"SELECT id, k, n, s FROM {table}"), key=str)


@pytest.mark.parametrize("clauses", MERGES)
def test_like_delta(run, tables, clauses):
    run(f"CREATE TABLE plain USING delta AS {TARGET}")
    with_key = clauses.replace("DEFAULT", "'new'")
    run(f"MERGE INTO plain t USING source s {with_key}")
    run(f"MERGE INTO target AS t USING source AS s {with_key}")
    expected = all_rows(run, "plain")
    run("DROP TABLE plain")
    assert all_rows(run) == expected


def test_counts_and_parameters(run, tables):
    ((_, operation, inserted, updated, deleted, *_),) = run(
        "MERGE INTO target t USING (SELECT * FROM source) s ON t.id = s.id AND t.k = s.k"
        " WHEN MATCHED AND t.id = :id THEN DELETE WHEN MATCHED THEN UPDATE SET s = :s WHEN NOT MATCHED THEN INSERT *",
        id=1,
        s="it's :s",
    )
    assert (operation, inserted, updated, deleted) == ("MERGE", 2, 1, 1)
    assert run("SELECT s FROM target WHERE id = 2") == [("it's :s",)]


def test_names_without_aliases(run, database, tables):
    run(
        f"MERGE INTO {database}.target USING source ON {database}.target.id = source.id AND target.k = source.k"
        f" WHEN MATCHED THEN UPDATE SET {database}.target.n = 1"
    )
    assert run("SELECT count(*) FROM target WHERE n = 1") == [(2,)]


def test_a_table_of_the_lake_as_source(run, tables):
    run("WITH c AS (SELECT 1) MERGE INTO target t USING target VERSION AS OF 0 s ON t.id = s.id"
        " WHEN NOT MATCHED BY SOURCE THEN DELETE")  # fmt: skip
    assert run("SELECT count(*) FROM target") == [(0,)]


def test_several_source_rows_for_one_row(run, lake, tables):
    run("CREATE OR REPLACE TEMP VIEW twice AS SELECT * FROM source UNION ALL SELECT 1, 'k1', 7, 'x'")
    on = "MERGE INTO target t USING twice s ON t.id = s.id AND t.k = s.k WHEN MATCHED"
    with pytest.raises(QueryError, match=r"several source rows.*id = 1, k = 'k1'"):
        run(f"{on} THEN UPDATE SET n = s.n")
    with pytest.raises(QueryError, match=r"several source rows.*id = 1, k = 'k1'"):
        run("MERGE INTO target t USING twice s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n, k = 'z'")
    run(f"{on} AND s.n < 50 THEN UPDATE SET n = s.n")
    assert run("SELECT n FROM target WHERE id = 1") == [(7,)]
    run(f"{on} THEN DELETE")
    assert run("SELECT count(*) FROM target WHERE id = 1") == [(0,)]
    with pytest.raises(QueryError, match=r"insert several rows.*id = 1"):
        run("MERGE INTO target t USING twice s ON t.id = s.id AND t.k = s.k WHEN NOT MATCHED THEN INSERT *")


def test_an_inserted_key_that_is_taken(run, tables):
    with pytest.raises(QueryError, match="key of another row"):
        run("MERGE INTO target t USING source s ON t.id = s.id AND t.n = -5 WHEN NOT MATCHED THEN INSERT *")


@pytest.mark.parametrize(
    ("rest", "error", "problem"),
    [
        ("ON t.id = s.id AND t.k = s.k WHEN MATCHED THEN UPDATE SET n = s.nn", QueryError, "column"),
        ("ON t.id = s.id WHEN MATCHED THEN UPDATE SET colour = 1", ColumnNotFoundError, "colour"),
        ("ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, k) VALUES (1)", SchemaMismatchError, "2 columns"),
        ("ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (77)", PrimaryKeyError, "null"),
        (
            "ON t.id = s.id WHEN NOT MATCHED AND s.id = 9 THEN INSERT (id) VALUES (77)",
            PrimaryKeyError,
            "null",
        ),
        ("ON t.id = s.id", QueryError, "expected WHEN"),
        ("WHEN MATCHED THEN DELETE", QueryError, "expected ON"),
        ("ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", QueryError, "no source row"),
        ("ON t.id = s.id WHEN MATCHED THEN INSERT *", QueryError, "expected UPDATE"),
    ],
)
def test_what_is_refused_changes_nothing(run, lake, tables, rest, error, problem):
    with pytest.raises(error, match=problem):
        run(f"MERGE INTO target t USING source s {rest}")
    assert lake.table("target").version == 1


def test_no_schema_evolution(run, tables):
    with pytest.raises(QueryError, match="SCHEMA EVOLUTION"):
        run(
            "MERGE WITH SCHEMA EVOLUTION INTO target t USING source s ON t.id = s.id WHEN MATCHED THEN DELETE"
        )


def test_append_tables(run, tables):
    run(f"CREATE TABLE logs USING lake AS {TARGET}")
    run("MERGE INTO logs USING target ON logs.id = target.id WHEN MATCHED AND target.id > 2 THEN DELETE")
    assert run("SELECT count(*) FROM logs") == [(3,)]
