"""ALTER TABLE, COMMENT ON, DROP TABLE."""

import pytest

from lakekit import (
    AlreadyExistsError,
    ColumnNotFoundError,
    InvalidOptionError,
    LakeError,
    QueryError,
    TableNotFoundError,
)


def test_properties(lake, run, orders):
    run("ALTER TABLE orders SET TBLPROPERTIES ('lake.target-file-size' = '64mb', compaction.num-runs = 7)")
    assert lake.table(orders).options.compaction_num_runs == 7
    run("ALTER TABLE orders UNSET TBLPROPERTIES ('target-file-size')")
    assert "target-file-size" not in lake.table(orders).properties
    run("ALTER TABLE orders UNSET TBLPROPERTIES IF EXISTS ('target-file-size')")
    with pytest.raises(InvalidOptionError):
        run("ALTER TABLE orders SET TBLPROPERTIES ('bucket' = '9')")


def test_columns(lake, run, orders):
    run("ALTER TABLE orders ADD COLUMNS (n INT COMMENT 'new', s STRUCT<a: INT, b: MAP<STRING, INT>>)")
    run("ALTER TABLE orders ADD COLUMN z STRING")
    run("UPDATE orders SET n = 5, s = named_struct('a', 1, 'b', map('k', 2)) WHERE id = 1")
    run("ALTER TABLE orders ALTER COLUMN n TYPE BIGINT")
    run("ALTER TABLE orders CHANGE COLUMN n COMMENT 'wide'")
    run("INSERT INTO orders (id, dt, n) VALUES (9, 'z', 5000000000)")
    assert run("SELECT id, n, s.a, z FROM orders WHERE n IS NOT NULL ORDER BY id") == [
        (1, 5, 1, None),
        (9, 5000000000, None, None),
    ]
    field = lake.table(orders).schema["n"]
    assert (field.dataType.simpleString(), field.metadata["comment"]) == ("bigint", "wide")


@pytest.mark.parametrize(
    ("statement", "error", "problem"),
    [
        ("ALTER TABLE orders ADD COLUMN note STRING", AlreadyExistsError, "note"),
        ("ALTER TABLE orders ADD COLUMN n INT NOT NULL", LakeError, "NOT NULL"),
        ("ALTER TABLE orders ADD COLUMN n INT FIRST", QueryError, "behind the others"),
        ("ALTER TABLE orders ALTER COLUMN amount TYPE INT", LakeError, "amount"),
        ("ALTER TABLE orders ALTER COLUMN id TYPE STRING", LakeError, "key"),
        ("ALTER TABLE orders ALTER COLUMN colour TYPE INT", ColumnNotFoundError, "colour"),
        ("ALTER TABLE orders ALTER COLUMN amount SET NOT NULL", QueryError, "TYPE or COMMENT"),
        ("ALTER TABLE orders DROP COLUMN note", QueryError, "not possible"),
        ("ALTER TABLE orders RENAME COLUMN note TO n", QueryError, "expected TO|not possible"),
        ("ALTER TABLE orders SET LOCATION '/tmp'", QueryError, "not possible"),
        ("ALTER TABLE nothing ADD COLUMN n INT", TableNotFoundError, "nothing"),
    ],
)
def test_refused(lake, run, orders, statement, error, problem):
    version = lake.table(orders).version
    with pytest.raises(error, match=problem):
        run(statement)
    assert lake.table(orders).version == version


def test_check_constraints(run):
    run("CREATE TABLE checked (id INT PRIMARY KEY, n INT) USING lake")
    run("ALTER TABLE checked ADD CONSTRAINT positive CHECK (n > 0)")
    run("INSERT INTO checked VALUES (1, 1)")
    with pytest.raises(LakeError, match="positive"):
        run("UPDATE checked SET n = -1")


def test_rename_and_drop(lake, run, database):
    run("CREATE TABLE old_name USING lake AS SELECT 1 AS id")
    run("ALTER TABLE old_name RENAME TO new_name")
    assert run(f"SELECT * FROM {database}.new_name") == [(1,)]
    with pytest.raises(TableNotFoundError):
        run("SELECT * FROM old_name")
    run("DROP TABLE new_name")
    with pytest.raises(TableNotFoundError):
        run("DROP TABLE new_name")
    run("DROP TABLE IF EXISTS new_name")
    assert "new_name" not in lake.tables()


def test_comments(lake, run, orders, database):
    run("COMMENT ON TABLE orders IS 'all of them'")
    run(f"COMMENT ON COLUMN {database}.orders.note IS 'a note'")
    run(f"COMMENT ON DATABASE {database} IS 'a database'")
    table = lake.table(orders)
    assert (table.comment, table.schema["note"].metadata["comment"]) == ("all of them", "a note")
    run("COMMENT ON TABLE orders IS NULL")
    assert lake.table(orders).comment is None
    assert lake.catalog.database_comment(database) == "a database"
