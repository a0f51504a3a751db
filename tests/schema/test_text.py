"""Types as SQL text."""

from __future__ import annotations

import pytest
from pyspark.sql import types as t

from lakekit.errors import SchemaMismatchError
from lakekit.schema import field_text, parse_schema, parse_type, type_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("boolean", t.BooleanType()),
        ("TINYINT", t.ByteType()),
        ("byte", t.ByteType()),
        ("smallint", t.ShortType()),
        ("int", t.IntegerType()),
        ("Integer", t.IntegerType()),
        ("bigint", t.LongType()),
        ("long", t.LongType()),
        ("float", t.FloatType()),
        ("double", t.DoubleType()),
        ("decimal", t.DecimalType(10, 0)),
        ("decimal(5)", t.DecimalType(5, 0)),
        ("numeric( 38 , 18 )", t.DecimalType(38, 18)),
        ("string", t.StringType()),
        ("string collate utf8_binary", t.StringType()),
        ("char(3)", t.CharType(3)),
        ("varchar(255)", t.VarcharType(255)),
        ("binary", t.BinaryType()),
        ("date", t.DateType()),
        ("timestamp", t.TimestampType()),
        ("timestamp_ltz", t.TimestampType()),
        ("timestamp_ntz", t.TimestampNTZType()),
        ("variant", t.VariantType()),
        ("array<int>", t.ArrayType(t.IntegerType())),
        ("array<array<array<int>>>", t.ArrayType(t.ArrayType(t.ArrayType(t.IntegerType())))),
        ("map<string, array<date>>", t.MapType(t.StringType(), t.ArrayType(t.DateType()))),
        ("struct<>", t.StructType([])),
        (
            "struct<a: int not null comment 'x', `b c` string>",
            t.StructType(
                [
                    t.StructField("a", t.IntegerType(), False, {"comment": "x"}),
                    t.StructField("b c", t.StringType()),
                ]
            ),
        ),
    ],
)
def test_every_type_is_read(text, expected):
    assert parse_type(text) == expected
    assert parse_type(type_text(expected)) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("strng", "Did you mean 'string'"),
        ("", "a type is missing"),
        ("int int", "'int' is not expected"),
        ("array", "'<' is missing"),
        ("array<int", "'>' is missing"),
        ("map<int>", "',' is missing"),
        ("decimal(40)", "1 to 38 digits"),
        ("decimal(5, 6)", "1 to 38 digits"),
        ("decimal(1,2,3)", "1 to 38 digits"),
        ("decimal(x)", "no whole number"),
        ("varchar", "needs a length"),
        ("char(0)", "needs a length"),
        ("interval day to second", "intervals cannot be stored"),
        ("string collate utf8_lcase", "cannot be stored"),
        ("int)", r"'\)' is not expected"),
    ],
)
def test_what_is_no_type_is_explained(text, why):
    with pytest.raises(SchemaMismatchError, match=why):
        parse_type(text)


def test_columns_are_read_with_quotes_and_comments():
    schema = parse_schema("""id bigint NOT NULL COMMENT 'it''s \\'the\\' key\\n', `a``b` : string, 名 int""")
    assert schema.names == ["id", "a`b", "名"]
    assert schema["id"].metadata == {"comment": "it's 'the' key\n"}
    assert not schema["id"].nullable


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "name of a column is missing"),
        ("id", "a type is missing"),
        ("id int,", "name of a column is missing"),
        ("id int default 4", "has a DEFAULT clause"),
        ("id int generated always as (a + 1)", "has a GENERATED clause"),
        ("id int not", "'null' is missing"),
        ("id int primary key", "'primary' is not expected"),
    ],
)
def test_what_is_no_list_of_columns_is_explained(text, why):
    with pytest.raises(SchemaMismatchError, match=why):
        parse_schema(text)


def test_written_columns_are_read_again():
    text = "`a``b` BIGINT NOT NULL COMMENT 'don\\'t \\\\ drop', `s` STRUCT<`x`: ARRAY<INT> COMMENT 'y'>"
    schema = parse_schema(text)
    assert ", ".join(map(field_text, schema)) == text
    assert parse_schema(", ".join(map(field_text, schema))) == schema
