"""Catalogs over Spark Connect: the warehouse is reached on the server only."""

from __future__ import annotations

import os
import shutil

import pyarrow as pa
import pytest

from lakekit.catalog import SessionCatalog, folders
from lakekit.errors import (
    AlreadyExistsError,
    DatabaseNotFoundError,
    InvalidOptionError,
    PrimaryKeyError,
    TableNotFoundError,
    UnsupportedTableError,
)
from lakekit.lake import Lake
from lakekit.names import TableName
from lakekit.table import alter
from lakekit.table.buckets import MOST_DEFAULT_BUCKETS
from lakekit.table.create import create_table, define, write_first_version
from lakekit.table.describe import columns

T = TableName("far", "t")


@pytest.fixture
def far(remote_lake):
    """The remote lake with an empty database `far`."""
    remote_lake.create_database("far", comment="it's far")
    yield remote_lake
    remote_lake.use("default")
    remote_lake.drop_database("far", if_exists=True, cascade=True)


@pytest.fixture
def session_lake(remote_lake):
    """A lake on the server's own catalog, with an empty database `own`."""
    opened = Lake(remote_lake.spark, None, remote_lake.runner)
    assert isinstance(opened.catalog, SessionCatalog)
    opened.create_database("own", comment="it's own")
    yield opened
    opened.use("default")
    opened.drop_database("own", if_exists=True, cascade=True)


def test_the_life_of_a_table(far):
    table = create_table(far, "far.t", "id BIGINT, n INT, v VARIANT", primary_key="id", comment="x")
    assert table.buckets == MOST_DEFAULT_BUCKETS
    table.upsert(far.spark.sql("SELECT id, 1 AS n, parse_json('1') AS v FROM range(1, 3)"))
    alter.set_properties(table, {"compaction.auto": False})
    alter.add_columns(table, "seen TIMESTAMP_NTZ")
    alter.widen_column(table, "n", "bigint")
    assert columns(table)["type"].to_pylist() == ["bigint", "bigint", "variant", "timestamp_ntz"]
    assert table.properties["compaction.auto"] == "false"
    far.rename_table("far.t", "far.u")
    assert far.tables("far") == ["u"]
    assert far.spark.sql("SELECT id, n FROM far.u ORDER BY id").collect() == [(1, 1), (2, 1)]
    far.drop_table("far.u")
    assert os.listdir(os.path.join(far.warehouse, "far.db")) == ["_lakekit_database.json"]
    assert not far.spark.catalog.tableExists("far.u")


def test_a_table_from_a_query(far):
    table = create_table(far, "far.t", primary_key="id", as_=far.spark.sql("SELECT id FROM range(5)"))
    assert table.to_df().count() == 5
    with pytest.raises(PrimaryKeyError):
        create_table(
            far,
            "far.u",
            primary_key="id",
            as_=far.spark.sql("SELECT IF(id = 3, NULL, id) AS id FROM range(5)"),
        )
    assert far.tables("far") == ["t"]


def test_tables_of_other_sessions_come_and_go(far):
    root = f"{far.warehouse}/{folders.table_folder(T)}"
    write_first_version(root, "t", define("t", "id int", primary_key="id").actions())
    table = far.table("far.t")
    far.catalog.ensure_registered(T)
    assert far.spark.sql("SELECT * FROM far.t").columns == ["id", "_bucket"]
    shutil.rmtree(root)
    with pytest.raises(TableNotFoundError):
        table.snapshot()
    with pytest.raises(TableNotFoundError):
        far.table("far.t")
    write_first_version(root, "t", define("t", "other int", primary_key="other").actions())
    assert far.table("far.t").to_df().columns == ["other"]


def test_databases(far):
    assert "far" in far.databases()
    assert far.catalog.database_comment("far") == "it's far"
    far.use("far")
    assert far.current_database == "far"
    with pytest.raises(AlreadyExistsError):
        far.create_database("far")
    with pytest.raises(DatabaseNotFoundError, match="Did you mean 'far'"):
        far.use("farr")


def test_the_catalog_of_the_server(session_lake):
    lake = session_lake
    table = create_table(lake, "own.t", "id BIGINT, n INT", primary_key="id")
    table.upsert(pa.table({"id": [1], "n": [2]}))
    assert lake.tables("own") == ["t"]
    assert lake.spark.sql("SELECT id, n FROM own.t").collect() == [(1, 2)]
    with pytest.raises(AlreadyExistsError):
        create_table(lake, "own.t", "id BIGINT")
    lake.rename_table("own.t", "own.u")
    assert lake.tables("own") == ["u"]
    assert lake.table("own.u").to_df().collect() == [(1, 2)]
    with pytest.raises(TableNotFoundError, match=r"Did you mean 'own\.u'"):
        lake.table("own.uu")
    root = lake.table("own.u").root
    lake.drop_table("own.u")
    assert lake.tables("own") == []
    with pytest.raises(TableNotFoundError):
        lake.drop_table("own.u")
    assert root.endswith("own.db/u")
    assert not lake.runner.run(folders.is_table, root, "")


def test_databases_of_the_server(session_lake):
    lake = session_lake
    assert "own" in lake.databases()
    assert lake.catalog.database_comment("own") == "it's own"
    lake.catalog.set_database_comment("own", "changed")
    assert lake.catalog.database_comment("own") == "changed"
    create_table(lake, "own.t", "id int")
    with pytest.raises(InvalidOptionError, match="holds t"):
        lake.drop_database("own")
    with pytest.raises(AlreadyExistsError):
        lake.create_database("own")
    with pytest.raises(DatabaseNotFoundError):
        lake.drop_database("nowhere")
    lake.drop_database("own", cascade=True)
    assert "own" not in lake.databases()


def test_a_table_that_is_not_delta(session_lake):
    session_lake.spark.sql("CREATE TABLE own.p (a INT) USING parquet")
    with pytest.raises(UnsupportedTableError, match="parquet"):
        session_lake.table("own.p")
