"""A table is right for readers that are not ours: plain Spark, delta-rs and DuckDB, at every version looked at."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from importlib import resources
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

import lakekit
from lakekit.session import jars, versions
from lakekit.table.table import Table

OPERATIONS = 200
KEYS = 60
CHECKED = 12
"""Versions that every reader reads, the newest among them."""

Rows = dict[tuple[int, str], dict[str, Any]]

_PLAIN_SPARK = """
import json, sys
from pyspark.sql import SparkSession
jars, root, versions = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
spark = (SparkSession.builder.master("local[1]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.databricks.delta.snapshotPartitions", "1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.session.timeZone", "UTC").getOrCreate())
assert "lakekit" not in sys.modules
for version in versions:
    rows = spark.read.format("delta").option("versionAsOf", version).load(root).drop("_bucket")
    print("ROWS", json.dumps([version, [r.asDict() for r in rows.collect()]]))
"""


def test_a_random_mix_reads_the_same_everywhere(lake: lakekit.Lake) -> None:
    table = lake.create_table(
        "mixed_readers",
        "id INT, grp STRING, n INT, name STRING",
        primary_key=["id", "grp"],
        partition_by=["grp"],
        buckets=2,
    )
    rng = random.Random(20)
    model: Rows = {}
    states: dict[int, Rows] = {}
    for step in range(OPERATIONS):
        model = _operate(table, rng, model, step)
        states[table.version] = dict(model)
    lake.background_compaction.wait()
    states[table.version] = dict(model)
    operations = {record["operation"] for record in table.inspect.snapshots().to_pylist()}
    assert {"UPSERT", "DELETE", "COMPACT"} <= operations

    looked_at = sorted({*rng.sample(sorted(states), CHECKED), table.version})
    ours = {v: _by_key(table.to_df(version=v).toArrow().to_pylist()) for v in looked_at}
    for version in looked_at:
        assert ours[version] == _expected(states[version], ours[version]), f"lakekit at version {version}"
        assert _by_key(_delta_rs(table.root, version)) == ours[version], f"delta-rs at version {version}"
        assert _by_key(_duckdb(table.root, version)) == ours[version], f"DuckDB at version {version}"
    for version, rows in _plain_spark(table.root, looked_at):
        assert _by_key(rows) == ours[version], f"Spark at version {version}"


def _operate(table: Table, rng: random.Random, model: Rows, step: int) -> Rows:
    if step == 60:
        table.add_columns("extra STRING")
        return {k: {**r, "extra": None} for k, r in model.items()}
    if step == 120:
        table.widen_column("n", "BIGINT")
        return model
    kind = rng.choices(["upsert", "delete", "compact"], [7, 2, 1])[0]
    if kind == "compact":
        table.compact()
        return model
    keys = [(rng.randrange(KEYS), rng.choice("ab")) for _ in range(rng.randrange(1, 25))]
    if kind == "delete":
        table.delete([{"id": i, "grp": g} for i, g in keys])
        return {k: r for k, r in model.items() if k not in keys}
    rows = [_row(rng, key, step) for key in keys]
    table.upsert(rows)
    return model | {(r["id"], r["grp"]): r for r in rows}


def _row(rng: random.Random, key: tuple[int, str], step: int) -> dict[str, Any]:
    big = 10**12 if step > 120 else 10**6
    row = {"id": key[0], "grp": key[1], "n": rng.randrange(big), "name": rng.choice([None, f"näme {step}"])}
    return {**row, "extra": rng.choice([None, "e" * 40])} if step > 60 else row


def _expected(model: Rows, like: Rows) -> Rows:
    """The model's rows with the columns that the version had."""
    names = next((list(r) for r in like.values()), ["id", "grp", "n", "name"])
    return {k: {name: r.get(name) for name in names} for k, r in model.items()}


def _by_key(rows: list[dict[str, Any]]) -> Rows:
    found = {(r["id"], r["grp"]): {k: v for k, v in r.items() if k != "_bucket"} for r in rows}
    assert len(found) == len(rows), "a key is there twice"
    return found


def _delta_rs(root: str, version: int) -> list[dict[str, Any]]:
    engine = QueryBuilder().register("t", DeltaTable(root, version=version))
    return pa.table(engine.execute("SELECT * FROM t").read_all()).to_pylist()


def _duckdb(root: str, version: int) -> list[dict[str, Any]]:
    package = pytest.importorskip("duckdb_extension_delta", reason="DuckDB's Delta reader is not installed")
    extension = resources.files(package) / "extensions" / f"v{duckdb.__version__}" / "delta.duckdb_extension"
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        found = connection.execute(f"SELECT * FROM delta_scan(?, version={version})", [root])
        return found.to_arrow_table().to_pylist()


def _plain_spark(root: str, looked_at: list[int]) -> list[tuple[int, list[dict[str, Any]]]]:
    """Reads in a process that knows nothing of lakekit."""
    paths = ",".join(map(str, jars.not_in_spark(jars.resolve(versions.delta_coordinates()))))
    command = [sys.executable, "-c", _PLAIN_SPARK, paths, root, json.dumps(looked_at)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line[5:] for line in done.stdout.splitlines() if line.startswith("ROWS ")]
    assert len(lines) == len(looked_at)
    return [tuple(json.loads(line)) for line in lines]
