"""SHOW and DESCRIBE."""

import pytest

from lakekit import ColumnNotFoundError


def test_tables_and_databases(lake, run, database, orders):
    run("CREATE TABLE csvs (id INT) USING csv")
    run("CREATE TEMP VIEW shown AS SELECT * FROM orders$files")
    rows = run("SHOW TABLES")
    assert (database, "orders", False) in rows
    assert (database, "csvs", False) in rows
    assert [name for _, name, temporary in rows if temporary and name.startswith("__")] == []
    assert run(f"SHOW TABLES IN {database} LIKE 'ord*|x'") == [(database, "orders", False)]
    assert run(f"SHOW TABLES FROM spark_catalog.{database} 'ORDERS'") == [(database, "orders", False)]
    assert (database,) in run("SHOW DATABASES")
    assert run(f"SHOW SCHEMAS LIKE '{database}'") == [(database,)]
    lake.spark.catalog.dropTempView("shown")


def test_about_a_table(run, database, orders):
    assert run("SHOW COLUMNS IN orders") == [("id",), ("dt",), ("amount",), ("note",)]
    assert run(f"SHOW COLUMNS FROM orders FROM {database}") == run(f"SHOW COLUMNS IN {database}.orders")
    assert run("SHOW PARTITIONS orders") == [("dt=a",), ("dt=b",)]
    assert ("bucket", "3") in run("SHOW TBLPROPERTIES orders")
    assert run("SHOW TBLPROPERTIES orders ('bucket')") == [("bucket", "3")]


def test_show_create_makes_the_same_table(lake, run, orders):
    ((statement,),) = run("SHOW CREATE TABLE orders")
    run("ALTER TABLE orders RENAME TO first_orders")
    run(statement)
    first, second = lake.table("first_orders"), lake.table("orders")
    assert second.schema == first.schema
    assert (second.primary_key, second.partition_by, second.buckets) == (first.primary_key, ("dt",), 3)
    assert second.properties == first.properties


def test_describe(lake, run, orders):
    names = [row[0] for row in run("DESCRIBE TABLE orders")]
    assert names[:4] == ["id", "dt", "amount", "note"]
    assert "_bucket" not in names
    assert ("primary key", "id, dt", "") in run("DESC EXTENDED orders")
    assert ("data_type", "decimal(10,2)") in run("DESCRIBE orders amount")
    with pytest.raises(ColumnNotFoundError):
        run("DESCRIBE orders _bucket")
    assert [row[0] for row in run("DESCRIBE SELECT * FROM orders")] == ["id", "dt", "amount", "note"]
    assert [row[0] for row in run("DESCRIBE QUERY TABLE orders")] == ["id", "dt", "amount", "note"]
    assert "operation" in lake.sql("DESCRIBE HISTORY orders").columns
