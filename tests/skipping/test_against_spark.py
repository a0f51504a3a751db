"""What Spark finds is never in a file or row that is left out: our model of its comparisons against Spark."""

from __future__ import annotations

import datetime as dt
import random
import urllib.parse
from decimal import Decimal

import pytest

from lakekit.skipping.predicate import And, Anything, In, IsNotNull, IsNull, Or, StartsWith
from lakekit.skipping.prune import prune
from lakekit.storage.log import open_log
from lakekit.table.fetch import fetch
from tests.skipping.data import KINDS, random_predicate, random_table


def column_of(predicate, functions):
    """Returns a predicate as a Spark column."""
    if isinstance(predicate, And | Or):
        parts = [column_of(child, functions) for child in predicate.children]
        result = functions.lit(isinstance(predicate, And))
        for part in parts:
            result = result & part if isinstance(predicate, And) else result | part
        return result
    if isinstance(predicate, Anything):
        return functions.lit(True)
    column = functions.col(predicate.column)
    kind = KINDS[predicate.column.lower()]

    def literal(value):
        if kind == "timestamp_ntz" and isinstance(value, dt.datetime):
            return functions.lit(value.isoformat()).cast("timestamp_ntz")
        if isinstance(value, int) and abs(value) >= 2**63:
            return functions.lit(Decimal(value))
        return functions.lit(value)

    if isinstance(predicate, IsNull):
        return column.isNull()
    if isinstance(predicate, IsNotNull):
        return column.isNotNull()
    if isinstance(predicate, StartsWith):
        return column.startswith(predicate.prefix)
    if isinstance(predicate, In):
        either = functions.lit(False)
        for value in predicate.values:
            either = either | (column == literal(value))
        return either
    value = literal(predicate.value)
    return {"=": column == value, "<": column < value, "<=": column <= value, ">": column > value}.get(
        predicate.op, column >= value
    )


@pytest.fixture(scope="module")
def folder(lake, tmp_path_factory):
    """A Delta table of six files that plain Spark wrote, one with a deletion vector."""
    from pyspark.sql import functions as F

    at = random.Random(11)
    path = str(tmp_path_factory.mktemp("spark") / "t")
    for _ in range(6):
        rows = lake.spark.createDataFrame(random_table(at, 12)).coalesce(1)
        rows.write.format("delta").mode("append").option("delta.enableDeletionVectors", "true").save(path)
    from delta.tables import DeltaTable

    DeltaTable.forPath(lake.spark, path).delete(F.col("tiny") == 3)
    return path


def test_nothing_that_spark_finds_is_skipped(lake, folder):
    from pyspark.sql import functions as F

    at = random.Random(12)
    snapshot = open_log(folder).snapshot()
    rows = lake.spark.read.format("delta").load(folder).select("*", "_metadata.file_name")
    predicates = [random_predicate(at) for _ in range(150)]
    # Computed as columns, so that Spark itself skips nothing.
    wanted = [F.max(column_of(predicate, F)).alias(f"p{i}") for i, predicate in enumerate(predicates)]
    found = rows.groupBy("file_name").agg(*wanted).collect()
    assert len(found) == len(snapshot.files)
    skipped = 0
    for i, predicate in enumerate(predicates):
        kept = {urllib.parse.unquote(file.path) for file in prune(snapshot, predicate).kept}
        assert {row.file_name for row in found if row[f"p{i}"]} <= kept, predicate
        skipped += len(snapshot.files) - len(kept)
    assert skipped > 100


@pytest.fixture(scope="module")
def keyed(lake):
    """A keyed table of the same columns in four runs, whose vectors hide rows of the first ones."""
    import pyarrow as pa

    at = random.Random(13)
    columns = ", ".join(f"{name} {'bigint' if kind == 'long' else kind}" for name, kind in KINDS.items())
    columns = columns.replace("tiny byte", "tiny tinyint")
    table = lake.create_table("fetched", f"n INT, {columns}", primary_key=["n"], buckets=2)
    for first in (0, 20, 10, 30):
        rows = random_table(at, 30)
        table.upsert(rows.add_column(0, "n", pa.array(range(first, first + 30), pa.int32())))
    table.delete([{"n": n} for n in range(0, 60, 7)])
    return table


def test_rows_that_are_fetched_are_those_that_spark_finds(lake, keyed):
    from pyspark.sql import functions as F

    at = random.Random(14)
    predicates = [random_predicate(at) for _ in range(150)]
    rows = keyed.to_df()
    wanted = [column_of(predicate, F).alias(f"p{i}") for i, predicate in enumerate(predicates)]
    found = rows.select("n", *wanted).collect()
    everything = {row.n: row for row in rows.collect()}
    assert len(everything) == 51
    left_out = 0
    for i, predicate in enumerate(predicates):
        fetched = fetch(keyed.root, predicate)
        numbers = fetched["n"].to_pylist()
        assert len(set(numbers)) == len(numbers)
        assert {row.n for row in found if row[f"p{i}"]} <= set(numbers) <= set(everything), predicate
        left_out += len(everything) - len(numbers)
    assert left_out > 2_500
    assert sorted(fetch(keyed.root, And(())).column("n").to_pylist()) == sorted(everything)
