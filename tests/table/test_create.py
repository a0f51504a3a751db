"""Creating tables: what is checked, what is written, and that a failed create leaves nothing."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import types as t

from lakekit.errors import (
    AlreadyExistsError,
    ColumnNotFoundError,
    DatabaseNotFoundError,
    InvalidNameError,
    InvalidOptionError,
    LakeError,
    PrimaryKeyError,
    SchemaMismatchError,
)
from lakekit.storage.log import open_log
from lakekit.storage.protocol import check_writable
from lakekit.table.buckets import MOST_DEFAULT_BUCKETS
from lakekit.table.create import create_table, define, write_first_version

ALL_TYPES = """
    id BIGINT, b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, f FLOAT, d DOUBLE, m DECIMAL(20, 3), s STRING, c CHAR(4),
    w VARCHAR(3), raw BINARY, dt DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, v VARIANT, a ARRAY<INT>,
    mp MAP<STRING, ARRAY<DOUBLE>>, st STRUCT<x: INT, `y.z`: STRUCT<deep: DATE>>
"""
ALL_VALUES = """
    true AS b, 1Y AS i8, 2S AS i16, 3 AS i32, float(0.5) AS f, 0.25D AS d, 12.345BD AS m, 'text' AS s, 'ch' AS c,
    'var' AS w, X'00ff' AS raw, DATE'2024-02-29' AS dt, TIMESTAMP'2024-02-29 12:00:00.123456' AS ts,
    TIMESTAMP_NTZ'2024-02-29 12:00:00' AS ntz, parse_json('{"k": [1, "two"]}') AS v, array(1, 2) AS a,
    map('k', array(0.5D)) AS mp, named_struct('x', 1, 'y.z', named_struct('deep', DATE'2024-01-01')) AS st
"""


@pytest.fixture
def db(lake):
    """An empty database `made`."""
    lake.create_database("made")
    yield lake
    lake.drop_database("made", cascade=True)


# What is checked; without Spark


def test_a_keyed_table_is_a_delta_table_with_a_computed_bucket():
    definition = define("t", "Id bigint, dt date, v string comment 'x'", primary_key=["id", "DT"], partition_by=["dt"],
                        buckets=3, comment="all")  # fmt: skip
    info, protocol, metadata = definition.actions()
    assert info.fields["operation"] == "CREATE TABLE"
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert protocol.reader_features == ("deletionVectors",)
    assert set(protocol.writer_features) == {
        "appendOnly", "changeDataFeed", "deletionVectors", "generatedColumns", "invariants",
    }  # fmt: skip
    check_writable(protocol)
    assert metadata.partition_columns == ("dt", "_bucket")
    assert metadata.description == "all"
    assert metadata.configuration == {
        "delta.dataSkippingNumIndexedCols": "-1",
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": "true",
        "lake.format-version": "1",
        "lake.primary-key": '["Id", "dt"]',
        "lake.bucket": "3",
    }
    schema = t.StructType.fromJson(json.loads(metadata.schema_string))
    assert [(f.name, f.nullable) for f in schema] == [
        ("Id", False),
        ("dt", False),
        ("v", True),
        ("_bucket", True),
    ]
    assert schema["v"].metadata == {"comment": "x"}
    assert schema["_bucket"].metadata == {"delta.generationExpression": "pmod(hash(`Id`, `dt`), 3)"}


def test_an_append_table_has_no_bucket():
    definition = define("t", "id bigint, dt date", partition_by="dt")
    _, protocol, metadata = definition.actions()
    assert "generatedColumns" not in protocol.writer_features
    assert metadata.partition_columns == ("dt",)
    assert "_bucket" not in metadata.schema_string
    assert not {"lake.primary-key", "lake.bucket"} & set(metadata.configuration)
    assert metadata.configuration["lake.format-version"] == "1"


def test_types_that_need_a_feature_get_it():
    protocol = define("t", "a int, n array<timestamp_ntz>, v variant").protocol()
    assert protocol.reader_features == ("deletionVectors", "timestampNtz", "variantType")
    check_writable(protocol)


def test_odd_names_are_quoted_in_the_bucket_formula():
    columns = t.StructType([t.StructField("a`b.c'd", t.IntegerType()), t.StructField("v", t.IntegerType())])
    schema = define("t", columns, primary_key=["a`b.c'd"], buckets=1).stored_schema()
    assert schema["_bucket"].metadata["delta.generationExpression"] == "pmod(hash(`a``b.c'd`), 1)"


@pytest.mark.parametrize(
    ("columns", "rows", "buckets"),
    [
        ("k bigint, v bigint", 1_000, 2),
        ("k bigint, v bigint", 1_000_000_000, 15),
        ("k bigint, s string, a array<string>, d decimal(38, 2), v double", 100_000_000, 12),
        ("k bigint, v bigint", 10**18, 32_768),
    ],
)
def test_expected_rows_choose_the_number_of_buckets(columns, rows, buckets):
    properties = {"expected-rows": rows}
    assert (
        define("t", columns, primary_key=["k"], properties=properties, default_buckets=2).buckets == buckets
    )


def test_a_number_of_buckets_that_is_given_counts_more_than_expected_rows():
    given = define("t", "k bigint", primary_key=["k"], properties={"expected-rows": 10**9}, buckets=3)
    assert given.buckets == 3
    with pytest.raises(PrimaryKeyError, match="expected-rows"):
        define("t", "k bigint", properties={"expected-rows": 10**9})


def test_the_statement_of_the_reference_is_accepted():
    log = {
        "log-store.enabled": "true",
        "log-store.topic": "topic_log_test",
        "log-store.address": "localhost:9092",
    }
    definition = define(
        "db.log_table", "id int, name string, ts timestamp", primary_key=["id"], properties=log
    )
    assert definition.configuration["lake.log-store.topic"] == "topic_log_test"
    assert definition.buckets == MOST_DEFAULT_BUCKETS


def test_a_user_can_turn_the_change_feed_of_an_append_table_off():
    definition = define("t", "id int", properties={"delta.enableChangeDataFeed": "false"})
    assert definition.configuration["delta.enableChangeDataFeed"] == "false"


def test_the_sequence_field_is_a_column_with_an_order():
    options = {"sequence.field": "TS"}
    configuration = define("t", "id int, ts timestamp", primary_key=["id"], properties=options).configuration
    assert configuration["lake.sequence.field"] == "ts"
    with pytest.raises(ColumnNotFoundError, match="Did you mean 'ts1'"):
        define("t", "id int, ts1 timestamp", primary_key=["id"], properties=options)
    with pytest.raises(InvalidOptionError, match=r"ts \(array<int>\)"):
        define("t", "id int, ts array<int>", primary_key=["id"], properties=options)
    with pytest.raises(PrimaryKeyError, match="no primary key"):
        define("t", "id int, ts timestamp", properties=options)


@pytest.mark.parametrize("buckets", [0, -1, 1.5, "x", True, "0", 1 << 20])
def test_bad_bucket_counts(buckets):
    with pytest.raises(InvalidOptionError, match="whole number from 1"):
        define("t", "id int, v int", primary_key=["id"], buckets=buckets)
    with pytest.raises(InvalidOptionError, match="whole number from 1"):
        define(
            "t",
            "id int, v int",
            primary_key=["id"],
            properties={"bucket": buckets} if buckets is not True else {"bucket": "true"},
        )


def test_buckets_can_be_an_option_and_must_agree():
    assert define("t", "id int, v int", primary_key="id", properties={"arctic.bucket": "7"}).buckets == 7
    assert define("t", "id int, v int", primary_key="id", buckets=7, properties={"bucket": "7"}).buckets == 7
    for name in ("bucket", "arctic.bucket"):
        with pytest.raises(InvalidOptionError, match="bucket"):
            define("t", "id int, v int", primary_key="id", buckets=7, properties={name: "8"})
    with pytest.raises(PrimaryKeyError, match="no primary key"):
        define("t", "id int", buckets=4)


@pytest.mark.parametrize(
    ("columns", "arguments", "error"),
    [
        ("id int", {"primary_key": ["idd"]}, ColumnNotFoundError),
        ("id int", {"primary_key": [1]}, InvalidOptionError),
        ("id int, a array<int>", {"primary_key": ["a"]}, PrimaryKeyError),
        ("id int, dt date", {"primary_key": ["id"], "partition_by": ["dt"]}, PrimaryKeyError),
        ("id int, x float", {"partition_by": ["x"]}, SchemaMismatchError),
        ("id int, _bucket int", {}, InvalidNameError),
        ("id int, ID int", {}, AlreadyExistsError),
        ("id int", {"properties": {"log-store.enabled": "true"}}, InvalidOptionError),
        ("id int", {"properties": {"nonsense": "true"}}, InvalidOptionError),
        (
            "id int, v int",
            {"primary_key": "id", "properties": {"delta.appendOnly": "true"}},
            InvalidOptionError,
        ),
        ("id int", {"comment": 5}, InvalidOptionError),
        ("id", {}, SchemaMismatchError),
    ],
)
def test_what_is_wrong_is_refused(columns, arguments, error):
    with pytest.raises(error):
        define("t", columns, **arguments)


# What is written; without Spark


def test_of_many_creators_exactly_one_wins(tmp_path):
    root = str(tmp_path / "orders")
    start = threading.Barrier(8)

    def create(i):
        actions = define("orders", f"id int, v{i} int").actions()
        start.wait()
        return write_first_version(root, "orders", actions)

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(create, range(8)))
    assert sum(won) == 1
    assert open_log(root).snapshot().user_columns == ["id", f"v{won.index(True)}"]
    assert os.listdir(os.path.join(root, "_delta_log")) == [f"{0:020d}.json"]


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "data.csv").write_text("1")
    with pytest.raises(AlreadyExistsError, match="holds other files"):
        write_first_version(str(tmp_path), "orders", define("orders", "id int").actions())
    assert os.listdir(tmp_path) == ["data.csv"]


# With Spark


def test_every_type_can_be_written_and_read_by_spark_itself(db):
    table = create_table(db, "made.types", ALL_TYPES, primary_key="id", buckets=2)
    names = ", ".join(f"`{name}`" for name in table.schema.names)
    db.spark.sql(f"INSERT INTO made.types ({names}) SELECT id, {ALL_VALUES} FROM range(5)")
    db.spark.sql("DELETE FROM made.types WHERE id = 1")
    db.spark.sql(
        "MERGE INTO made.types t USING (SELECT 9L AS id, 'new' AS s) u ON t.id = u.id "
        "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (u.id, u.s)"
    )
    rows = db.spark.sql(
        "SELECT *, pmod(hash(id), 2) = _bucket AS right FROM made.types ORDER BY id"
    ).collect()
    assert [(row.id, row.s, row.right) for row in rows] == [
        (0, "text", True), (2, "text", True), (3, "text", True), (4, "text", True), (9, "new", True),
    ]  # fmt: skip
    assert rows[0].c == "ch  "
    assert rows[0].v.toPython() == {"k": [1, "two"]}


def test_every_type_can_be_written_by_lakekit(db):
    table = create_table(db, "made.types", ALL_TYPES, primary_key="id", buckets=2)
    table.upsert(db.spark.sql(f"SELECT id, {ALL_VALUES} FROM range(5)"))
    table.upsert(db.spark.sql(f"SELECT id, {ALL_VALUES} FROM range(3, 6)"))
    expected = db.spark.sql(f"SELECT {ALL_VALUES}").collect()[0].asDict(recursive=True) | {"c": "ch  "}
    rows = [row.asDict(recursive=True) for row in table.to_df().orderBy("id").collect()]
    assert [row.pop("id") for row in rows] == list(range(6))
    for row in rows:
        assert str(row.pop("v")) == str(expected["v"])
        assert row == {k: v for k, v in expected.items() if k != "v"}


def test_delta_rs_opens_what_was_created(db):
    columns = "id BIGINT, dt DATE, amount DECIMAL(10, 2), seen TIMESTAMP, ntz TIMESTAMP_NTZ, c VARCHAR(3)"
    table = create_table(
        db, "made.orders", columns, primary_key=["id", "dt"], partition_by="dt", comment="it's"
    )
    opened = DeltaTable(table.root)
    assert opened.version() == 0
    assert opened.metadata().description == "it's"
    assert opened.metadata().partition_columns == ["dt", "_bucket"]
    assert [f.name for f in opened.schema().fields] == [*table.schema.names, "_bucket"]


def test_a_table_can_be_used_at_once(db):
    table = db.create_table("made.orders", "id bigint, v string", primary_key=["id"], comment="of the shop")
    assert (table.version, table.primary_key, table.comment) == (0, ("id",), "of the shop")
    assert 1 <= table.buckets <= MOST_DEFAULT_BUCKETS
    assert db.spark.sql("SELECT * FROM made.orders").columns == ["id", "v", "_bucket"]
    assert db.spark.catalog.getTable("made.orders").description == "of the shop"


def test_a_table_that_exists(db):
    first = create_table(db, "made.orders", "id bigint")
    with pytest.raises(AlreadyExistsError, match=r"'made\.orders' exists"):
        create_table(db, "made.Orders", "id bigint")
    again = create_table(db, "made.orders", "other date, wrong nonsense", if_not_exists=True)
    assert again.schema == first.schema


def test_a_create_that_lost_the_race_says_so(db, monkeypatch):
    create_table(db, "made.orders", "mine bigint")
    answers, exists = [False], db.catalog.exists
    monkeypatch.setattr(db.catalog, "exists", lambda name: answers.pop(0) if answers else exists(name))
    with pytest.raises(AlreadyExistsError):
        create_table(db, "made.orders", "other date")
    answers.append(False)
    assert create_table(db, "made.orders", "other date", if_not_exists=True).schema.names == ["mine"]


def test_a_failed_create_leaves_nothing(db):
    with pytest.raises(PrimaryKeyError):
        create_table(db, "made.orders", "id array<int>", primary_key=["id"])
    with pytest.raises(DatabaseNotFoundError):
        create_table(db, "nowhere.orders", "id int")
    with pytest.raises(InvalidOptionError, match="location"):
        create_table(db, "made.orders", "id int", location="/somewhere/else")
    assert os.listdir(os.path.join(db.warehouse, "made.db")) == ["_lakekit_database.json"]
    assert "nowhere" not in db.databases()


def test_the_location_may_be_said_if_it_is_the_right_one(db):
    root = os.path.join(db.warehouse, "made.db", "orders")
    assert create_table(db, "made.orders", "id int", location=f"file://{root}").root == root


def test_a_table_from_a_query(db):
    rows = db.spark.sql("SELECT id, array(id) AS a, named_struct('x', 1) AS s FROM range(10)")
    table = create_table(db, "made.orders", primary_key="id", as_=rows)
    assert table.to_df().count() == 10
    assert table.version == 1
    assert not table.schema["id"].nullable
    assert table.schema["a"].dataType == t.ArrayType(t.LongType(), True)
    assert table.schema["s"].dataType == t.StructType([t.StructField("x", t.IntegerType(), True)])
    copy = create_table(db, "made.copy", as_=db.spark.table("made.orders"))
    assert copy.schema.names == ["id", "a", "s"]
    assert copy.to_df().count() == 10


def test_a_table_from_arrow(db):
    table = create_table(
        db, "made.orders", primary_key="id", as_=pa.table({"id": [1, 2, 2], "v": ["a", "b", "c"]})
    )
    assert sorted(tuple(row) for row in table.to_df().collect()) == [(1, "a"), (2, "c")]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT IF(id = 5, NULL, id) AS id FROM range(10)",  # a null in the key
        "SELECT id, raise_error('stop') AS v FROM range(10)",
        "SELECT id, NULL AS v FROM range(10)",  # a column without a type
    ],
)
def test_a_table_from_a_query_that_fails_does_not_exist(db, query):
    with pytest.raises(LakeError):
        create_table(db, "made.orders", primary_key="id", as_=db.spark.sql(query))
    assert db.tables("made") == []
    assert not db.spark.catalog.tableExists("made.orders")
    assert os.listdir(os.path.join(db.warehouse, "made.db")) == ["_lakekit_database.json"]


def test_columns_come_from_one_place(db):
    with pytest.raises(SchemaMismatchError, match="Both"):
        create_table(db, "made.orders", "id int", as_=pa.table({"id": [1]}))
    with pytest.raises(SchemaMismatchError, match="no columns"):
        create_table(db, "made.orders")
