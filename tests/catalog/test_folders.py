"""The folders of a warehouse, without Spark."""

from __future__ import annotations

import os

import pytest

from lakekit.catalog import folders
from lakekit.errors import AlreadyExistsError, InvalidNameError, UnsupportedTableError
from lakekit.names import TableName


@pytest.fixture
def warehouse(tmp_path):
    folder = tmp_path / "warehouse"
    folder.mkdir()
    return str(folder)


def make_table(warehouse, folder, version=0, name="{:020d}.json"):
    log = os.path.join(warehouse, folder, "_delta_log")
    os.makedirs(log, exist_ok=True)
    with open(os.path.join(log, name.format(version)), "w") as file:
        file.write("{}\n")


def test_databases_are_folders_and_default_is_always_there(warehouse):
    assert folders.list_databases(warehouse) == ["default"]
    assert folders.create_database(warehouse, "shop", "it's “ours”")
    assert not folders.create_database(warehouse, "shop", None)
    os.mkdir(os.path.join(warehouse, "made_by_spark.db"))
    os.mkdir(os.path.join(warehouse, "no name.db"))
    assert folders.list_databases(warehouse) == ["default", "made_by_spark", "shop"]
    assert folders.read_comment(warehouse, "shop") == "it's “ours”"
    assert folders.read_comment(warehouse, "made_by_spark") is None
    assert not folders.create_database(warehouse, "made_by_spark", None)


def test_comments_can_change(warehouse):
    folders.create_database(warehouse, "shop", "old")
    folders.write_comment(warehouse, "shop", "new")
    folders.write_comment(warehouse, "default", "of all")
    assert folders.read_comment(warehouse, "shop") == "new"
    assert folders.read_comment(warehouse, "default") == "of all"
    assert folders.list_databases(warehouse) == ["default", "shop"]


def test_tables_are_folders_with_a_log(warehouse):
    make_table(warehouse, "one")
    make_table(warehouse, "shop.db/two")
    make_table(warehouse, "shop.db/cleaned_up", 7)
    make_table(warehouse, "shop.db/checkpointed", 7, "{:020d}.checkpoint.parquet")
    make_table(warehouse, "shop.db/No Name")
    make_table(warehouse, "shop.db/being_made", 0, ".{:020d}.json.tmp")
    os.makedirs(os.path.join(warehouse, "shop.db", "just_files"))
    assert folders.list_tables(warehouse, "default") == ["one"]
    assert folders.list_tables(warehouse, "shop") == ["checkpointed", "cleaned_up", "two"]
    assert folders.is_table(warehouse, folders.table_folder(TableName("shop", "two")))
    assert not folders.is_table(warehouse, folders.table_folder(TableName("shop", "one")))


def test_a_dropped_table_is_gone_with_its_files(warehouse):
    make_table(warehouse, "shop.db/orders")
    make_table(warehouse, "shop.db/other")
    folders.delete_table(warehouse, "shop.db/orders")
    assert os.listdir(os.path.join(warehouse, "shop.db")) == ["other"]
    folders.delete_table(warehouse, "shop.db/orders")


def test_what_a_killed_drop_left_goes_with_the_next(warehouse):
    make_table(warehouse, "shop.db/.dropped-0123")
    make_table(warehouse, "shop.db/orders")
    folders.delete_table(warehouse, "shop.db/orders")
    assert os.listdir(os.path.join(warehouse, "shop.db")) == []


def test_links_are_removed_and_never_followed(warehouse, tmp_path):
    outside = tmp_path / "outside"
    make_table(str(tmp_path), "outside")
    os.symlink(outside, os.path.join(warehouse, "linked"))
    folders.delete_table(warehouse, "linked")
    assert not os.path.lexists(os.path.join(warehouse, "linked"))
    assert outside.exists()
    make_table(warehouse, "orders")
    os.symlink(outside, os.path.join(warehouse, "orders", "link"))
    folders.delete_table(warehouse, "orders")
    assert (outside / "_delta_log").exists()


def test_a_database_that_is_a_link_out_of_the_warehouse_is_not_touched(warehouse, tmp_path):
    make_table(str(tmp_path), "outside/orders")
    os.symlink(tmp_path / "outside", os.path.join(warehouse, "shop.db"))
    with pytest.raises(InvalidNameError, match="not inside the warehouse"):
        folders.delete_table(warehouse, "shop.db/orders")
    with pytest.raises(InvalidNameError, match="not inside the warehouse"):
        folders.move_table(warehouse, "shop.db/orders", "orders")
    folders.drop_database(warehouse, "shop", cascade=True)
    assert (tmp_path / "outside" / "orders" / "_delta_log").exists()


@pytest.mark.parametrize("folder", ["", "../outside", "shop.db/../../outside", "/tmp/outside"])
def test_paths_out_of_the_warehouse_are_refused(warehouse, tmp_path, folder):
    make_table(str(tmp_path), "outside")
    make_table(warehouse, "inside")
    with pytest.raises((InvalidNameError, ValueError), match="not inside"):
        folders.delete_table(warehouse, folder)
    assert (tmp_path / "outside" / "_delta_log").exists()
    assert os.path.exists(os.path.join(warehouse, "inside"))


def test_a_table_moves_between_databases(warehouse):
    make_table(warehouse, "shop.db/orders")
    folders.move_table(warehouse, "shop.db/orders", "archive.db/orders")
    assert folders.list_tables(warehouse, "shop") == []
    assert folders.list_tables(warehouse, "archive") == ["orders"]


def test_a_table_is_not_moved_onto_another(warehouse):
    make_table(warehouse, "one")
    make_table(warehouse, "two")
    with pytest.raises(AlreadyExistsError, match="exists already"):
        folders.move_table(warehouse, "one", "two")
    os.symlink("nowhere", os.path.join(warehouse, "three"))
    with pytest.raises(AlreadyExistsError, match="exists already"):
        folders.move_table(warehouse, "one", "three")
    assert folders.list_tables(warehouse, "default") == ["one", "two"]


def test_a_table_in_an_object_store_cannot_be_moved():
    with pytest.raises(UnsupportedTableError, match="CREATE TABLE"):
        folders.move_table("s3://bucket/warehouse", "one", "two")


def test_a_database_with_anything_in_it_is_dropped_only_by_cascade(warehouse):
    folders.create_database(warehouse, "shop", None)
    make_table(warehouse, "shop.db/orders")
    with open(os.path.join(warehouse, "shop.db", "notes.txt"), "w") as file:
        file.write("keep me")
    assert folders.drop_database(warehouse, "shop", cascade=False) == ["notes.txt", "orders"]
    assert folders.list_tables(warehouse, "shop") == ["orders"]
    assert folders.drop_database(warehouse, "shop", cascade=True) == []
    assert os.listdir(warehouse) == []


def test_an_empty_database_is_dropped(warehouse):
    folders.create_database(warehouse, "shop", "with a comment")
    assert folders.drop_database(warehouse, "shop", cascade=False) == []
    assert not folders.database_exists(warehouse, "shop")


def test_occupied_folders(warehouse):
    root = os.path.join(warehouse, "orders")
    assert not folders.is_occupied(root)
    os.makedirs(os.path.join(root, "_delta_log"))
    assert not folders.is_occupied(root)
    with open(os.path.join(root, "data.csv"), "w") as file:
        file.write("1")
    assert folders.is_occupied(root)
    os.symlink(root, os.path.join(warehouse, "link"))
    assert folders.is_occupied(os.path.join(warehouse, "link"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/w/t", "file:/w/t", True),
        ("file:///w/t", "/w/t/", True),
        ("/w/a b", "file:/w/a%20b", True),
        ("/w/t", "/w/u", False),
        ("s3://b/t", "s3a://b/t/", True),
        ("s3://b/t", "s3://c/t", False),
        ("/b/t", "s3://b/t", False),
    ],
)
def test_same_place(one, other, same):
    assert folders.same_place(one, other) is same
