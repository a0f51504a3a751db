"""Changing properties, comments and columns, and describing tables."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from deltalake import DeltaTable
from pyspark.sql import types as t

from lakekit.errors import (
    AlreadyExistsError,
    ColumnNotFoundError,
    InvalidNameError,
    InvalidOptionError,
    PrimaryKeyError,
    SchemaMismatchError,
)
from lakekit.storage.actions import Metadata, Protocol
from lakekit.storage.log import open_log
from lakekit.table import alter
from lakekit.table.create import create_table
from lakekit.table.describe import COLUMNS_SCHEMA, DETAILS_SCHEMA, columns, details, show_create


@pytest.fixture
def lake_db(lake):
    """A lake with an empty database `alt`."""
    lake.create_database("alt")
    yield lake
    lake.drop_database("alt", cascade=True)


@pytest.fixture
def table(lake_db):
    """A keyed table without rows."""
    return create_table(
        lake_db,
        "alt.orders",
        "id BIGINT COMMENT 'the key', dt DATE, amount DECIMAL(10, 2), n INT, w VARCHAR(3)",
        primary_key=["id", "dt"],
        partition_by=["dt"],
        buckets=2,
        properties={"compaction.auto": "false"},
        comment="it's",
    )


ROW = "SELECT 1L AS id, DATE'2024-01-01' AS dt, 1.5BD AS amount, 2 AS n, 'abc' AS w"


# Properties


def test_properties_are_set_and_seen_by_spark(table, lake_db):
    version = alter.set_properties(table, {"arctic.emit.mode": "file", "delta.checkpointInterval": 20})
    assert version == table.version == 1
    assert table.properties == {
        "bucket": "2", "compaction.auto": "false", "emit.mode": "file", "delta.checkpointInterval": "20",
    }  # fmt: skip
    seen = {row.key: row.value for row in lake_db.spark.sql("SHOW TBLPROPERTIES alt.orders").collect()}
    assert seen["lake.emit.mode"] == "file"
    assert seen["delta.checkpointInterval"] == "20"


def test_setting_what_is_set_commits_nothing(table):
    assert alter.set_properties(table, {"bucket": "2", "compaction.auto": False}) == 0
    assert alter.set_comment(table, "it's") == 0


@pytest.mark.parametrize(
    "properties",
    [
        {"bucket": "4"},
        {"primary-key": "id"},
        {"sequence.field": "n"},
        {"emit.mode": "log"},
        {"log-store.enabled": "true"},
        {"delta.appendOnly": "true"},
        {"delta.enableTypeWidening": "true"},
        {"emit.mod": "file"},
        {"my.password": "x"},
    ],
)
def test_bad_properties_change_nothing(table, properties):
    with pytest.raises(InvalidOptionError):
        alter.set_properties(table, properties)
    assert table.version == 0


def test_properties_are_unset(table):
    alter.unset_properties(table, ["lake.compaction.auto"])
    assert table.options.compaction_auto is True
    with pytest.raises(InvalidOptionError, match=r"'compaction\.auto' is not set"):
        alter.unset_properties(table, ["compaction.auto"])
    assert alter.unset_properties(table, ["compaction.auto"], if_exists=True) == 1
    with pytest.raises(InvalidOptionError, match="cannot be changed"):
        alter.unset_properties(table, ["bucket"])


# Comments


def test_comments_of_table_and_columns(table, lake_db):
    alter.set_comment(table, "new\n'text'")
    alter.set_column_comment(table, "AMOUNT", "in €")
    alter.set_column_comment(table, "w", "x")
    alter.set_column_comment(table, "id", None)
    assert table.comment == "new\n'text'"
    assert lake_db.spark.catalog.getTable("alt.orders").description == "new\n'text'"
    about = dict(zip(*(columns(table)[name].to_pylist() for name in ("column", "comment")), strict=True))
    assert about == {"id": None, "dt": None, "amount": "in €", "n": None, "w": "x"}
    alter.set_comment(table, None)
    assert table.comment is None
    with pytest.raises(ColumnNotFoundError, match="Did you mean 'amount'"):
        alter.set_column_comment(table, "amont", "x")
    with pytest.raises(ColumnNotFoundError):
        alter.set_column_comment(table, "_bucket", "x")


# Columns


def test_a_column_is_added_before_the_bucket(table, lake_db):
    table.upsert(lake_db.spark.sql(ROW))
    alter.add_columns(table, "note STRING COMMENT 'x', tags ARRAY<VARIANT>, `größe'x` CHAR(2)")
    assert table.schema.names == ["id", "dt", "amount", "n", "w", "note", "tags", "größe'x"]
    stored = lake_db.spark.table("alt.orders").columns
    assert stored == [*table.schema.names, "_bucket"]
    assert "variantType" in table.snapshot().protocol.reader_features
    lake_db.spark.sql(
        "INSERT INTO alt.orders (id, dt, note, `größe'x`) VALUES (2, DATE'2024-01-01', 'y', 'q')"
    )
    table.upsert(lake_db.spark.sql(f"{ROW}, 'z' AS note, array(parse_json('1')) AS tags, 'k' AS `größe'x`"))
    rows = [(r.id, r.note, r["größe'x"]) for r in table.to_df().orderBy("id").collect()]
    assert rows == [(1, "z", "k "), (2, "y", "q ")]


@pytest.mark.parametrize(
    ("column", "error"),
    [
        ("n int", AlreadyExistsError),
        ("N string", AlreadyExistsError),
        ("x int not null", SchemaMismatchError),
        ("_bucket int", InvalidNameError),
        ("x void", SchemaMismatchError),
        ("x int default 5", SchemaMismatchError),
        ("x nonsense", SchemaMismatchError),
    ],
)
def test_bad_new_columns_change_nothing(table, column, error):
    with pytest.raises(error):
        alter.add_columns(table, column)
    assert table.version == 0


def test_what_the_metadata_holds_beyond_our_knowledge_is_kept(table):
    log = open_log(table.root)
    metadata = log.snapshot().metadata
    schema = json.loads(metadata.schema_string)
    schema["fields"][2]["metadata"]["of.someone.else"] = {"deep": [1]}
    foreign = Metadata.from_json(
        {**metadata.to_json(), "schemaString": json.dumps(schema), "someField": 5,
         "configuration": {**metadata.configuration, "someone.else": "x"}}
    )  # fmt: skip
    assert log.write(1, [foreign], "foreign")
    alter.add_columns(table, "note STRING")
    alter.set_column_comment(table, "amount", "x")
    alter.set_properties(table, {"emit.mode": "file"})
    now = table.snapshot().metadata
    assert now.extra["someField"] == 5
    assert now.configuration["someone.else"] == "x"
    field = json.loads(now.schema_string)["fields"][2]
    assert field["metadata"] == {"of.someone.else": {"deep": [1]}, "comment": "x"}


def test_a_type_is_widened_with_the_rows_there_are(table, lake_db):
    table.upsert(lake_db.spark.sql(ROW))
    alter.widen_column(table, "N", "bigint")
    alter.widen_column(table, "amount", t.DecimalType(12, 4))
    table.upsert(
        lake_db.spark.sql(
            "SELECT 2L AS id, DATE'2024-01-01' AS dt, 0.0001BD AS amount, 5000000000L AS n, 'x' AS w"
        )
    )
    assert table.schema["n"].dataType == t.LongType()
    assert [tuple(map(str, r)) for r in table.to_df().orderBy("id").collect()] == [
        ("1", "2024-01-01", "1.5000", "2", "abc"), ("2", "2024-01-01", "0.0001", "5000000000", "x"),
    ]  # fmt: skip
    assert "typeWidening" not in table.snapshot().protocol.writer_features
    assert DeltaTable(table.root).version() == table.version
    assert [r.n for r in table.to_df(version=1).collect()] == [2]


def test_a_type_of_a_table_without_a_key_is_widened(lake_db):
    table = create_table(lake_db, "alt.plain", "n INT, s STRING")
    table.upsert(lake_db.spark.sql("SELECT 1 AS n, 'x' AS s"))
    alter.widen_column(table, "n", "bigint")
    table.upsert(lake_db.spark.sql("SELECT 5000000000L AS n, 'y' AS s"))
    assert sorted(tuple(r) for r in table.to_df().collect()) == [(1, "x"), (5000000000, "y")]
    assert table.schema["n"].dataType == t.LongType()


def test_a_longer_varchar_rewrites_nothing(table, lake_db):
    table.upsert(lake_db.spark.sql(ROW))
    files = set(table.snapshot().files)
    alter.widen_column(table, "w", "varchar(5)")
    assert set(table.snapshot().files) == files
    table.upsert(lake_db.spark.sql(ROW.replace("abc", "abcde")))
    assert [r.w for r in table.to_df().collect()] == ["abcde"]
    alter.widen_column(table, "w", "string")
    assert columns(table)["type"].to_pylist()[-1] == "string"
    assert alter.widen_column(table, "w", "string") == table.version


def test_an_empty_table_is_widened_by_metadata_alone(table):
    assert alter.widen_column(table, "n", "double") == 1
    assert alter.widen_column(table, "n", "double") == 1
    assert table.schema["n"].dataType == t.DoubleType()


@pytest.mark.parametrize(
    ("column", "to", "error"),
    [
        ("id", "decimal(20,0)", PrimaryKeyError),
        ("dt", "timestamp_ntz", PrimaryKeyError),
        ("n", "smallint", SchemaMismatchError),
        ("n", "string", SchemaMismatchError),
        ("amount", "decimal(10,4)", SchemaMismatchError),
        ("w", "varchar(2)", SchemaMismatchError),
        ("n", "nonsense", SchemaMismatchError),
        ("none", "bigint", ColumnNotFoundError),
        ("_bucket", "bigint", ColumnNotFoundError),
    ],
)
def test_types_that_cannot_be_widened(table, column, to, error):
    with pytest.raises(error):
        alter.widen_column(table, column, to)
    assert table.version == 0


# Several at once


def test_changes_of_many_sessions_are_all_kept(table):
    start = threading.Barrier(6)

    def change(i):
        mine = type(table)(table.lake, table.name)
        start.wait()
        return alter.add_columns(mine, f"c{i} INT")

    with ThreadPoolExecutor(6) as pool:
        versions = list(pool.map(change, range(6)))
    assert sorted(versions) == [1, 2, 3, 4, 5, 6]
    assert sorted(table.schema.names[5:]) == [f"c{i}" for i in range(6)]


def test_of_many_that_add_the_same_column_one_wins(table):
    start = threading.Barrier(4)

    def change(i):
        mine = type(table)(table.lake, table.name)
        start.wait()
        try:
            return alter.add_columns(mine, f"c {'INT' if i % 2 else 'STRING'}")
        except AlreadyExistsError:
            return None

    with ThreadPoolExecutor(4) as pool:
        assert [v for v in pool.map(change, range(4)) if v is not None] == [1]


def test_an_older_protocol_names_all_its_features_when_one_is_added():
    extended = alter._extended(Protocol(1, 4), t.StructType([t.StructField("v", t.VariantType())]))
    assert (extended.min_reader_version, extended.min_writer_version) == (3, 7)
    assert extended.reader_features == ("variantType",)
    assert set(extended.writer_features) == {
        "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "variantType",
    }  # fmt: skip
    assert alter._extended(extended, t.StructType([t.StructField("v", t.VariantType())])) is None


# Describe


def test_describe(table, lake_db):
    described = columns(table)
    assert described.schema == COLUMNS_SCHEMA
    assert described.to_pylist()[0] == {
        "column": "id", "type": "bigint", "nullable": False, "key": 1, "partition": None, "comment": "the key",
    }  # fmt: skip
    assert described["type"].to_pylist() == ["bigint", "date", "decimal(10,2)", "int", "varchar(3)"]
    assert described["partition"].to_pylist() == [None, 1, None, None, None]
    facts = details(table)
    assert facts.schema == DETAILS_SCHEMA
    shown = dict(zip(facts["property"].to_pylist(), facts["value"].to_pylist(), strict=True))
    assert shown["primary key"] == "id, dt"
    assert shown["option compaction.auto"] == "false"
    assert shown["location"] == table.root


def test_show_create_makes_such_a_table_again(table, lake_db):
    alter.add_columns(
        table, "`odd``'name` STRUCT<`x.y`: ARRAY<INT> COMMENT 'deep \\\\ \\'quote\\''>, v VARIANT"
    )
    statement = show_create(table)
    before = table.snapshot()
    lake_db.drop_table("alt.orders")
    lake_db.sql(statement)
    again = lake_db.table("alt.orders")
    after = again.snapshot()
    assert again.schema == table.schema_of(before)
    assert [f.metadata for f in again.schema] == [f.metadata for f in table.schema_of(before)]
    assert after.configuration == before.configuration
    assert after.partition_columns == before.partition_columns
    assert after.metadata.description == before.metadata.description
    assert show_create(again) == statement


def test_show_create_of_an_append_table(lake_db):
    table = create_table(lake_db, "alt.plain", "n INT, dt DATE", partition_by=["dt"])
    assert (
        show_create(table)
        == "CREATE TABLE `alt`.`plain` (\n  `n` INT,\n  `dt` DATE\n)\nUSING lake\nPARTITIONED BY (`dt`)"
    )
