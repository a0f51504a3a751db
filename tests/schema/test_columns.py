"""Names and types of columns, keys, partitions and wider types."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from lakekit.errors import (
    AlreadyExistsError,
    ColumnNotFoundError,
    InvalidNameError,
    PrimaryKeyError,
    SchemaMismatchError,
)
from lakekit.schema import (
    check_columns,
    check_key,
    check_partitions,
    declared_type,
    parse_schema,
    parse_type,
    struct_of,
)
from lakekit.schema.columns import can_widen, required_features, stored_field

KEY_TYPES = [
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(20,3)"),
    *("string", "char(3)", "varchar(3)", "binary", "date", "timestamp", "timestamp_ntz"),
]


@pytest.mark.parametrize("name", ["a'b", 'a"b', "a`b", "a.b", "größe", "列", "select", "1st", "a-b", "$x"])
def test_columns_may_have_such_names(name):
    check_columns("t", t.StructType([t.StructField(name, t.IntegerType())]))


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a;b", "a(b", "a{b}", "a=b", "a\tb", "a\nb"])
def test_columns_cannot_have_names_that_parquet_cannot(name):
    with pytest.raises(InvalidNameError, match="cannot be the name of a column"):
        check_columns("t", t.StructType([t.StructField(name, t.IntegerType())]))


@pytest.mark.parametrize("name", ["_bucket", "_BUCKET", "_change_type", "_version", "__lake_op"])
def test_reserved_names_are_refused(name):
    with pytest.raises(InvalidNameError, match="reserved"):
        check_columns("t", t.StructType([t.StructField(name, t.IntegerType())]))


def test_names_that_differ_by_case_only_are_refused():
    with pytest.raises(AlreadyExistsError, match="'Id' and 'iD'"):
        check_columns("t", parse_schema("Id int, iD string"))


def test_a_table_has_columns():
    with pytest.raises(SchemaMismatchError, match="no columns"):
        check_columns("t", t.StructType([]))


def test_every_column_of_an_impossible_type_is_named():
    schema = t.StructType(
        [
            t.StructField("fine", t.IntegerType()),
            t.StructField("v", t.NullType()),
            t.StructField("span", t.DayTimeIntervalType()),
            t.StructField("text", t.StringType("UTF8_LCASE")),
            t.StructField("codes", t.ArrayType(t.VarcharType(3))),
            t.StructField("m", t.MapType(t.ArrayType(t.IntegerType()), t.IntegerType())),
        ]
    )
    with pytest.raises(SchemaMismatchError) as caught:
        check_columns("t", schema)
    text = str(caught.value)
    assert all(f"'{name}'" in text for name in ("v", "span", "text", "codes", "m"))
    assert "'fine'" not in text


def test_nested_types_can_be_stored():
    check_columns(
        "t", parse_schema("a array<struct<x: map<string, array<variant>>, `y.z`: timestamp_ntz>>, b variant")
    )


def test_defaults_are_refused():
    field = t.StructField("a", t.IntegerType(), True, {"CURRENT_DEFAULT": "4"})
    with pytest.raises(SchemaMismatchError, match="no defaults"):
        check_columns("t", t.StructType([field]))


@pytest.mark.parametrize("text", KEY_TYPES)
def test_types_with_a_stable_order_can_be_keys(text):
    assert check_key("t", parse_schema(f"Id {text}, b int"), ["ID"]) == ("Id",)


@pytest.mark.parametrize("text", ["array<int>", "map<int, int>", "struct<a: int>", "variant"])
def test_types_without_an_order_are_refused_as_keys(text):
    with pytest.raises(PrimaryKeyError, match=r"'k' \("):
        check_key("t", parse_schema(f"k {text}, b int"), ["b", "k"])


def test_key_columns_must_exist_and_be_given_once():
    with pytest.raises(ColumnNotFoundError, match="Did you mean 'order_id'"):
        check_key("t", parse_schema("order_id int"), ["orderid"])
    with pytest.raises(AlreadyExistsError, match="given twice"):
        check_key("t", parse_schema("id int"), ["id", "ID"])


def test_the_key_contains_the_partition_columns():
    schema = parse_schema("id int, dt date, hour int")
    assert check_partitions("t", schema, ["DT"], ("id", "dt")) == ("dt",)
    with pytest.raises(PrimaryKeyError, match=r"partition columns hour.*PRIMARY KEY \(id, dt, hour\)"):
        check_partitions("t", schema, ["dt", "hour"], ("id", "dt"))
    with pytest.raises(PrimaryKeyError, match="only partition columns"):
        check_partitions("t", schema, ["dt"], ("dt",))
    assert check_partitions("t", schema, ["hour"], ()) == ("hour",)


def test_what_cannot_be_a_partition_column_is_refused():
    with pytest.raises(SchemaMismatchError, match=r"'x' \(double\), 'a' \(array<int>\)"):
        check_partitions("t", parse_schema("x double, a array<int>, b int"), ["x", "a", "b"], ())
    with pytest.raises(SchemaMismatchError, match="only partition columns"):
        check_partitions("t", parse_schema("a int"), ["a"], ())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tinyint", "smallint"),
        ("int", "bigint"),
        ("int", "double"),
        ("int", "decimal(10,0)"),
        ("bigint", "decimal(20,0)"),
        ("float", "double"),
        ("decimal(10,2)", "decimal(12,4)"),
        ("decimal(10,2)", "decimal(11,2)"),
        ("date", "timestamp_ntz"),
        ("varchar(3)", "varchar(4)"),
        ("varchar(3)", "string"),
        ("char(3)", "varchar(3)"),
    ],
)
def test_wider_types(old, new):
    assert can_widen(parse_type(old), parse_type(new))
    assert not can_widen(parse_type(new), parse_type(old))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int", "int"),
        ("bigint", "double"),
        ("int", "float"),
        ("int", "decimal(9,0)"),
        ("decimal(10,2)", "decimal(10,3)"),
        ("decimal(10,2)", "decimal(10,2)"),
        ("decimal(10,2)", "double"),
        ("date", "timestamp"),
        ("int", "string"),
        ("string", "varchar(3)"),
        ("char(3)", "char(4)"),
        ("array<int>", "array<bigint>"),
    ],
)
def test_types_that_are_not_wider(old, new):
    assert not can_widen(parse_type(old), parse_type(new))


def test_char_and_varchar_are_stored_as_strings_that_note_their_length():
    stored = stored_field(
        t.StructField("c", t.VarcharType(7), True, {"comment": "x", "other": 1}), nullable=False
    )
    assert stored == t.StructField(
        "c", t.StringType(), False, {"comment": "x", "__CHAR_VARCHAR_TYPE_STRING": "varchar(7)"}
    )
    assert declared_type(stored) == t.VarcharType(7)
    assert stored_field(stored, nullable=False).metadata == stored.metadata


def test_features_of_types_at_any_depth():
    assert required_features(parse_schema("a int, b string")) == set()
    assert required_features(parse_schema("a map<string, array<timestamp_ntz>>, b struct<x: variant>")) == {
        "timestampNtz",
        "variantType",
    }


def test_columns_are_given_in_many_forms():
    expected = t.StructType([t.StructField("a", t.LongType()), t.StructField("b", t.StringType())])
    assert struct_of("a bigint, b string") == expected
    assert struct_of({"a": "bigint", "b": t.StringType()}) == expected
    assert struct_of(pa.schema({"a": pa.int64(), "b": pa.string()})) == expected
    assert struct_of(expected) is expected
    with pytest.raises(SchemaMismatchError, match="cannot be read"):
        struct_of(pa.schema({"a": pa.uint64()}))
    with pytest.raises(SchemaMismatchError, match="of type int"):
        struct_of(5)
