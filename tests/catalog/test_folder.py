"""The catalog of a warehouse folder, with Spark."""

from __future__ import annotations

import os
import shutil

import pytest

from lakekit.catalog import FolderCatalog, folders
from lakekit.errors import (
    AlreadyExistsError,
    DatabaseNotFoundError,
    InvalidNameError,
    InvalidOptionError,
    SessionError,
    TableNotFoundError,
    UnsupportedTableError,
)
from lakekit.names import TableName
from lakekit.session.runner import LocalRunner
from lakekit.table.create import define, write_first_version


@pytest.fixture
def catalog(lake):
    """A catalog with the database `cat`, empty before and after."""
    lake.create_database("cat", comment="for tests")
    yield lake.catalog
    lake.use("default")
    lake.drop_database("cat", if_exists=True, cascade=True)


def made_elsewhere(lake, name, columns="id bigint, v string", **kwargs):
    """Does to the folders what a create in another process does."""
    root = os.path.join(lake.warehouse, folders.table_folder(name))
    assert write_first_version(root, str(name), define(str(name), columns, **kwargs).actions())
    return root


def columns_in_spark(lake, name):
    return lake.spark.table(name.sql).columns


T = TableName("cat", "t")


def test_a_table_made_by_another_process_is_found(lake, catalog):
    assert not catalog.exists(T)
    with pytest.raises(TableNotFoundError):
        catalog.ensure_registered(T)
    root = made_elsewhere(lake, T)
    assert catalog.tables("cat") == ["t"]
    assert catalog.location(T) == root
    catalog.ensure_registered(T)
    assert columns_in_spark(lake, T) == ["id", "v"]


def test_a_table_dropped_by_another_process_is_forgotten(lake, catalog):
    root = made_elsewhere(lake, T)
    catalog.ensure_registered(T)
    shutil.rmtree(root)
    assert catalog.tables("cat") == []
    with pytest.raises(TableNotFoundError, match=r"Table 'cat\.t' does not exist"):
        catalog.ensure_registered(T)
    # Views that other tests left are listed in every database.
    assert lake.spark.sql("SHOW TABLES IN cat").where("NOT isTemporary").collect() == []


def test_a_table_replaced_by_another_process_is_seen_as_it_is_now(lake, catalog):
    root = made_elsewhere(lake, T)
    catalog.ensure_registered(T)
    shutil.rmtree(root)
    made_elsewhere(lake, T, "other date")
    catalog.ensure_registered(T)
    assert columns_in_spark(lake, T) == ["other"]


def test_a_table_renamed_by_another_process_is_found_under_its_new_name(lake, catalog):
    root = made_elsewhere(lake, T)
    catalog.ensure_registered(T)
    os.rename(root, os.path.join(os.path.dirname(root), "u"))
    with pytest.raises(TableNotFoundError, match=r"cat\.u"):
        catalog.location(T)
    catalog.ensure_registered(TableName("cat", "u"))
    assert columns_in_spark(lake, TableName("cat", "u")) == ["id", "v"]


def test_a_new_session_sees_everything_by_name_in_plain_spark(lake, catalog):
    made_elsewhere(lake, T)
    broken = os.path.join(lake.warehouse, "cat.db", "broken", "_delta_log")
    os.makedirs(broken)
    with open(os.path.join(broken, f"{0:020d}.json"), "w") as file:
        file.write("no json\n")
    fresh = FolderCatalog(lake.spark, lake.warehouse, LocalRunner())
    fresh.register_all()
    assert lake.spark.sql("SELECT * FROM cat.t").columns == ["id", "v"]
    with pytest.raises(UnsupportedTableError, match=r"cat\.broken"):
        fresh.ensure_registered(TableName("cat", "broken"))


def test_a_database_is_found_and_its_comment_survives(lake, catalog):
    folders.create_database(lake.warehouse, "elsewhere", "made elsewhere")
    try:
        assert "elsewhere" in catalog.databases()
        lake.use("Elsewhere")
        assert lake.current_database == "elsewhere"
        assert lake.spark.catalog.getDatabase("elsewhere").description == "made elsewhere"
        catalog.set_database_comment("elsewhere", "it's changed")
        assert lake.spark.catalog.getDatabase("elsewhere").description == "it's changed"
        assert (
            FolderCatalog(lake.spark, lake.warehouse, LocalRunner()).database_comment("elsewhere")
            == "it's changed"
        )
    finally:
        lake.drop_database("elsewhere")
    assert lake.current_database == "default"
    assert not lake.spark.catalog.databaseExists("elsewhere")
    assert not os.path.exists(os.path.join(lake.warehouse, "elsewhere.db"))


def test_a_database_of_another_process_is_not_deleted_by_forgetting_it(lake, catalog):
    """Spark deletes the folder of a database it drops; another process may have made it anew."""
    made_elsewhere(lake, T)
    catalog.ensure_registered(T)
    catalog._forget_database("cat")
    assert catalog.tables("cat") == ["t"]
    catalog.ensure_registered(T)


def test_databases_that_exist_are_not_made_again(lake, catalog):
    with pytest.raises(AlreadyExistsError, match="'cat' exists"):
        lake.create_database("CAT")
    lake.create_database("cat", if_not_exists=True, comment="ignored")
    assert catalog.database_comment("cat") == "for tests"


def test_databases_that_do_not_exist(lake, catalog):
    for use in (lake.use, lake.drop_database, lake.tables, catalog.database_comment):
        with pytest.raises(DatabaseNotFoundError, match="Did you mean 'cat'"):
            use("catt")
    with pytest.raises(DatabaseNotFoundError, match="Did you mean 'cat'"):
        catalog.location(TableName("catt", "t"))
    lake.drop_database("catt", if_exists=True)


def test_a_database_with_tables_needs_cascade(lake, catalog):
    made_elsewhere(lake, T)
    with pytest.raises(InvalidOptionError, match="holds t"):
        lake.drop_database("cat")
    with pytest.raises(InvalidOptionError, match="'default' cannot be dropped"):
        lake.drop_database("default", cascade=True)
    assert catalog.exists(T)


def test_drop(lake, catalog):
    root = made_elsewhere(lake, T)
    catalog.ensure_registered(T)
    lake.drop_table("cat.t")
    assert not os.path.exists(root)
    assert not lake.spark.catalog.tableExists("cat.t")
    with pytest.raises(TableNotFoundError):
        lake.drop_table("cat.t")
    lake.drop_table("cat.t", if_exists=True)


def test_drop_of_a_table_that_plain_spark_made(lake, catalog):
    lake.use("cat")
    lake.spark.sql("CREATE TABLE cat.t (a INT) USING delta")
    assert catalog.tables() == ["t"]
    catalog.ensure_registered(T)
    lake.rename_table("t", "u")
    assert lake.spark.sql("SELECT * FROM cat.u").columns == ["a"]
    lake.drop_table("u")
    assert os.listdir(os.path.join(lake.warehouse, "cat.db")) == ["_lakekit_database.json"]


def test_rename(lake, catalog):
    old = made_elsewhere(lake, T)
    made_elsewhere(lake, TableName("cat", "taken"))
    catalog.ensure_registered(T)
    lake.rename_table("cat.t", "cat.New")
    assert not os.path.exists(old)
    assert lake.spark.sql("SELECT * FROM cat.new").columns == ["id", "v"]
    assert not lake.spark.catalog.tableExists("cat.t")
    with pytest.raises(AlreadyExistsError, match=r"'cat\.taken' exists"):
        lake.rename_table("cat.new", "cat.taken")
    with pytest.raises(TableNotFoundError):
        lake.rename_table("cat.t", "cat.other")
    with pytest.raises(DatabaseNotFoundError):
        lake.rename_table("cat.new", "nowhere.new")
    lake.rename_table("cat.new", "default.moved")
    assert catalog.exists(TableName("default", "moved"))
    lake.drop_table("default.moved")


def test_a_table_of_another_place_gives_way(lake, catalog, tmp_path):
    elsewhere = str(tmp_path / "other" / "t")
    write_first_version(elsewhere, "other", define("other", "x int").actions())
    lake.spark.sql(f"CREATE TABLE cat.t USING delta LOCATION '{elsewhere}'")
    made_elsewhere(lake, T)
    catalog.ensure_registered(T)
    assert columns_in_spark(lake, T) == ["id", "v"]
    assert os.path.exists(elsewhere)


def test_a_name_dropped_with_plain_spark_is_registered_again(lake, catalog):
    made_elsewhere(lake, T)
    catalog.ensure_registered(T)
    lake.spark.sql("DROP TABLE cat.t")
    catalog.ensure_registered(T)
    assert columns_in_spark(lake, T) == ["id", "v"]


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE cat.t USING parquet AS SELECT 1 AS kept", "CREATE VIEW cat.t AS SELECT 1 AS kept"],
)
def test_tables_of_other_kinds_are_not_touched(lake, catalog, statement):
    lake.spark.sql(statement)
    with pytest.raises(TableNotFoundError):
        lake.drop_table("cat.t")
    with pytest.raises(TableNotFoundError):
        lake.table("cat.t")
    lake.drop_table("cat.t", if_exists=True)
    assert lake.spark.sql("SELECT * FROM cat.t").collect() == [(1,)]


def test_a_view_of_the_same_name_is_named(lake, catalog):
    lake.spark.sql("CREATE VIEW cat.t AS SELECT 1 AS kept")
    made_elsewhere(lake, T)
    with pytest.raises(SessionError, match="a view"):
        catalog.ensure_registered(T)


def test_a_refused_drop_leaves_the_table_as_it_was(lake, catalog, tmp_path):
    root = made_elsewhere(lake, T)
    catalog.ensure_registered(T)
    outside = tmp_path / "outside"
    os.rename(os.path.dirname(root), outside)
    os.symlink(outside, os.path.dirname(root))
    with pytest.raises(InvalidNameError, match="not inside the warehouse"):
        lake.drop_table("cat.t")
    assert columns_in_spark(lake, T) == ["id", "v"]
    os.unlink(os.path.dirname(root))
    os.rename(outside, os.path.dirname(root))


def test_a_table_that_spark_manages_elsewhere_is_not_touched(lake, tmp_path):
    other = FolderCatalog(lake.spark, str(tmp_path / "warehouse"), LocalRunner())
    name = TableName("default", "managed")
    lake.spark.sql("CREATE TABLE managed (a INT) USING delta")
    try:
        root = str(tmp_path / "warehouse" / "managed")
        write_first_version(root, "managed", define("managed", "x int").actions())
        with pytest.raises(SessionError, match=r"default\.managed"):
            other.ensure_registered(name)
        assert lake.spark.table("managed").columns == ["a"]
    finally:
        lake.spark.sql("DROP TABLE managed")
