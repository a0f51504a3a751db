"""Rows are made to fit a table, or refused with every column that does not."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.sql import types as t

from lakekit.errors import SchemaMismatchError
from lakekit.schema import align, parse_schema, parse_type
from lakekit.schema.align import Fit, fit
from lakekit.schema.columns import stored_field
from lakekit.session.failures import spark_failure


@pytest.mark.parametrize(
    ("source", "target", "how"),
    [
        ("int", "int", Fit.SAME),
        ("string", "varchar(3)", Fit.NONE),  # a column of varchar is stored as string
        ("void", "array<int>", Fit.CAST),
        ("int", "bigint", Fit.CAST),
        ("bigint", "int", Fit.EXACT),
        ("bigint", "decimal(10,2)", Fit.EXACT),
        ("int", "decimal(12,2)", Fit.CAST),
        ("bigint", "double", Fit.EXACT),
        ("int", "double", Fit.CAST),
        ("int", "float", Fit.EXACT),
        ("double", "float", Fit.CAST),
        ("double", "int", Fit.EXACT),
        ("double", "decimal(10,2)", Fit.RANGE),
        ("decimal(10,2)", "double", Fit.CAST),
        ("decimal(10,2)", "decimal(12,2)", Fit.CAST),
        ("decimal(10,2)", "decimal(10,1)", Fit.EXACT),
        ("decimal(10,2)", "bigint", Fit.EXACT),
        ("date", "timestamp", Fit.CAST),
        ("date", "timestamp_ntz", Fit.CAST),
        ("timestamp", "date", Fit.NONE),
        ("timestamp_ntz", "timestamp", Fit.CAST),
        ("timestamp", "timestamp_ntz", Fit.CAST),
        ("int", "string", Fit.NONE),
        ("string", "int", Fit.NONE),
        ("string", "binary", Fit.NONE),
        ("boolean", "int", Fit.NONE),
        ("string", "variant", Fit.NONE),
        ("array<bigint>", "array<int>", Fit.EXACT),
        ("array<int>", "array<bigint>", Fit.CAST),
        ("array<double>", "array<decimal(5,2)>", Fit.EXACT),
        ("map<string,int>", "map<string,bigint>", Fit.CAST),
        ("map<string,bigint>", "map<string,int>", Fit.NONE),
        ("struct<a: int>", "struct<A: int>", Fit.CAST),
        ("struct<a: int>", "struct<b: int>", Fit.NONE),
        ("struct<a: int, b: int>", "struct<b: int, a: int>", Fit.NONE),
        ("struct<a: int>", "struct<a: int not null>", Fit.NONE),
        ("struct<a: bigint>", "struct<a: int>", Fit.EXACT),
        ("struct<a: int>", "array<int>", Fit.NONE),
    ],
)
def test_what_fits_into_what(source, target, how):
    assert fit(parse_type(source), parse_type(target)) is how


def test_a_collation_is_taken_off():
    assert fit(t.StringType("UTF8_LCASE"), t.StringType()) is Fit.CAST


def target(text):
    return t.StructType([stored_field(f, nullable=f.nullable) for f in parse_schema(text)])


def test_rows_that_fit_are_left_alone(lake):
    rows = lake.spark.sql("SELECT 1L AS id, 'x' AS v, 'U' AS op")
    assert align(rows, target("id bigint, v string"), "t", keep=["op"]) is rows


def test_columns_are_put_in_order_and_cast(lake):
    rows = lake.spark.sql(
        "SELECT 'U' AS op, 5 AS _bucket, 1.5D AS D, DATE'2024-01-02' AS at, 3.0D AS n, 'ab' AS c, "
        "named_struct('X', 1) AS s, NULL AS z, 19.99D AS price"
    )
    wanted = target(
        "n int, d float, at timestamp_ntz, c char(4), s struct<x: bigint>, z array<int>, price decimal(5,2)"
    )
    aligned = align(rows, wanted, "t", keep=["op"])
    assert aligned.columns == [*wanted.names, "op"]
    assert [f.dataType for f in aligned.schema][:-1] == [f.dataType for f in wanted]
    row = aligned.collect()[0]
    assert row.asDict(recursive=True) == {
        "n": 3, "d": 1.5, "at": dt.datetime(2024, 1, 2), "c": "ab  ", "s": {"x": 1}, "z": None,  # noqa: DTZ001
        "price": Decimal("19.99"), "op": "U",
    }  # fmt: skip


def test_every_column_that_is_wrong_is_named(lake):
    rows = lake.spark.sql("SELECT 1 AS id, 'x' AS amount, 2 AS extra, 3 AS other, 4 AS dup, 5 AS DUP")
    with pytest.raises(SchemaMismatchError) as caught:
        align(rows, target("id bigint, amount decimal(5,2), missing date, dup int"), "shop.t")
    text = str(caught.value)
    assert "shop.t" in text
    assert "'dup' given twice" in text
    assert "'extra', 'other' unknown" in text
    assert "'missing' missing" in text
    assert "'amount' is STRING and not DECIMAL(5,2)" in text
    assert "'id'" not in text


def test_missing_and_new_columns_can_be_allowed(lake):
    rows = lake.spark.sql("SELECT 1L AS id, 2 AS extra")
    wanted = target("id bigint, more date, must int not null")
    aligned = align(rows, t.StructType(wanted.fields[:2]), "t", allow_missing=True, allow_new=True)
    assert [tuple(row) for row in aligned.collect()] == [(1, None)]
    with pytest.raises(SchemaMismatchError, match="'must' missing"):
        align(rows, wanted, "t", allow_missing=True, allow_new=True)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("3000000000L", "int"),
        ("1.5D", "int"),
        ("double('NaN')", "bigint"),
        ("1e30D", "decimal(5,2)"),
        ("1.25BD", "decimal(5,1)"),
        ("9007199254740993L", "double"),
        ("array(1L, 3000000000L)", "array<int>"),
        ("named_struct('a', 1.5D)", "struct<a: int>"),
    ],
)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_value_that_would_change_is_an_error(lake, value, wanted, ansi):
    before = lake.spark.conf.get("spark.sql.ansi.enabled")
    lake.spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        rows = align(lake.spark.sql(f"SELECT {value} AS `a'b`"), target(f"`a'b` {wanted}"), "shop.t")
        with pytest.raises(Exception, match="USER_RAISED_EXCEPTION") as caught:
            rows.collect()
        assert "does not fit column a'b of shop.t" in spark_failure(caught.value, "Test").message
    finally:
        lake.spark.conf.set("spark.sql.ansi.enabled", before)
