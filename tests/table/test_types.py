"""Every column type, and names that need quoting, through writes, merges and reads."""

from __future__ import annotations

import lakekit

COLUMNS = """`a.b` INT, `we``ird` STRING, bo BOOLEAN, ti TINYINT, sm SMALLINT, bi BIGINT, f FLOAT, d DOUBLE,
    de DECIMAL(10, 2), big DECIMAL(38, 6), s STRING, vc VARCHAR(5), c CHAR(3), b BINARY, da DATE, ts TIMESTAMP,
    ntz TIMESTAMP_NTZ, v VARIANT, ar ARRAY<INT>, m MAP<STRING, STRUCT<a: INT>>,
    st STRUCT<x: INT NOT NULL, y: ARRAY<STRUCT<z: INT NOT NULL>>>"""
FULL = """SELECT 1, 'k', true, 1Y, 2S, 3L, CAST(1.5 AS FLOAT), double('NaN'), 1.25BD, CAST(-7.000001 AS DECIMAL(38, 6)),
    'ünï', 'vc', 'c', X'00FF', DATE'1582-01-01',
    TIMESTAMP'2024-02-29 12:00:00.123456', TIMESTAMP_NTZ'1999-01-01 00:00:00',
    parse_json('{"a": [1, null]}'), array(1, null), map('k', named_struct('a', 1)),
    named_struct('x', 1, 'y', array(named_struct('z', 2)))"""


def test_every_type_survives_writing_merging_and_looking_up(lake: lakekit.Lake) -> None:
    table = lake.create_table("every_type", COLUMNS, primary_key=["a.b", "we`ird"], buckets=2)
    names = [f.name for f in table.schema]
    full = lake.spark.sql(FULL).toDF(*names)
    nulls = lake.spark.range(1).selectExpr("2", "'k'", *["null"] * (len(names) - 2)).toDF(*names)
    table.upsert(full.union(nulls))
    assert table.upsert(full.union(nulls)).rows_updated == 2
    table.compact()
    expected = {row[0]: str(row) for row in full.union(nulls).collect()}
    found = {row[0]: str(row).replace("c='c  '", "c='c'") for row in table.to_df().collect()}
    assert found == expected
    row = table.get(**{"a.b": 1, "we`ird": "k"})
    assert row is not None
    assert (row["st"], row["m"], row["ar"]) == ({"x": 1, "y": [{"z": 2}]}, {"k": {"a": 1}}, [1, None])
    assert table.changes(since=2, until=2).count() == 4


def test_every_key_type_finds_its_row(lake: lakekit.Lake) -> None:
    keys = {
        "BOOLEAN": "true",
        "TINYINT": "1Y",
        "SMALLINT": "2S",
        "DOUBLE": "double('-0.0')",
        "FLOAT": "float('NaN')",
        "DECIMAL(10, 2)": "1.25BD",
        "DECIMAL(38, 6)": "CAST(-7.000001 AS DECIMAL(38, 6))",
        "CHAR(3)": "'c'",
        "VARCHAR(5)": "'vc'",
        "BINARY": "X'00FF'",
        "DATE": "DATE'1969-07-20'",
        "TIMESTAMP": "TIMESTAMP'2024-02-29 12:00:00.123456'",
        "TIMESTAMP_NTZ": "TIMESTAMP_NTZ'1969-01-01 00:00:00'",
    }
    columns = ", ".join(f"k{i} {kind}" for i, kind in enumerate(keys))
    names = [f"k{i}" for i in range(len(keys))]
    table = lake.create_table("every_key", f"{columns}, v INT", primary_key=names, buckets=3)
    row = lake.spark.sql(f"SELECT {', '.join(keys.values())}, 1 AS v").toDF(*names, "v")
    table.upsert(row)
    assert table.upsert(row).rows_updated == 1
    key = table.to_df().drop("v").first()
    assert key is not None
    assert (table.get(**key.asDict()) or {}).get("v") == 1
    assert table.delete(row.drop("v")).rows_deleted == 1


def test_spark_finds_nan_and_negative_zero_in_our_files(lake: lakekit.Lake) -> None:
    table = lake.create_table("floats", "id INT, x DOUBLE", primary_key=["id"], buckets=1)
    table.upsert(
        [{"id": 1, "x": float("nan")}, {"id": 2, "x": -0.0}, {"id": 3, "x": 7.0}, {"id": 4, "x": None}]
    )
    queries = {"x > 5": [1, 3], "x >= 7": [1, 3], "x = double('NaN')": [1], "x = 0.0": [2], "x < 1": [2]}
    found = {q: sorted(r["id"] for r in table.to_df().where(q).collect()) for q in queries}
    assert found == queries
