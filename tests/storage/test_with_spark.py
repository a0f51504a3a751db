"""The storage layer against Spark's own Delta and delta-rs: what one writes the others read."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyroaring import BitMap64

import lakekit
from lakekit.storage.actions import AddFile, CommitInfo, Txn
from lakekit.storage.log import DeltaLog, commit_path, open_log
from lakekit.storage.murmur3 import spark_hash
from lakekit.storage.stats import collect_stats
from lakekit.storage.vectors import VectorFileWriter, read_vector

NOON = datetime(2020, 1, 1, 12, tzinfo=timezone.utc)
VECTORS = "'delta.enableDeletionVectors'='true'"


@pytest.fixture
def spark(lake: lakekit.Lake):
    return lake.spark


@pytest.fixture
def table(spark, tmp_path) -> Iterator[str]:
    """A name for a table at `tmp_path`/t."""
    name = f"t_{uuid.uuid4().hex}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def random_keys(count: int) -> pa.Table:
    chance = random.Random(7)

    def column(make, kind):
        return pa.array([None if chance.random() < 0.1 else make() for _ in range(count)], kind)

    def text():
        letters = ["a", "Z", "é", "日", "😀", "\0", "\x7f", " "]
        return "".join(chance.choice(letters) for _ in range(chance.choice([0, 1, 2, 3, 4, 5, 8, 33, 50])))

    def real():
        return chance.choice([0.0, -0.0, float("nan"), float("inf"), 1.5, 5e-324, chance.gauss(0, 1e6)])

    def decimal(digits, scale):
        edge = chance.choice([0, 1, -1, 127, 128, -128, -129, 255, 256, -256, 32768])
        unscaled = chance.choice([edge, chance.randint(1 - 10**digits, 10**digits - 1)])
        return Decimal(unscaled).scaleb(-scale, None if digits < 28 else WIDE)

    micros = chance.randint
    return pa.table(
        {
            "b": column(lambda: chance.random() < 0.5, pa.bool_()),
            "i8": column(lambda: chance.randint(-128, 127), pa.int8()),
            "i16": column(lambda: chance.randint(-(2**15), 2**15 - 1), pa.int16()),
            "i32": column(lambda: chance.randint(-(2**31), 2**31 - 1), pa.int32()),
            "i64": column(lambda: chance.randint(-(2**63), 2**63 - 1), pa.int64()),
            "f32": column(lambda: np.float32(real()), pa.float32()),
            "f64": column(real, pa.float64()),
            "s": column(text, pa.string()),
            "bin": column(lambda: text().encode()[: chance.randint(0, 9)], pa.binary()),
            "d": column(lambda: date(1, 1, 1) + timedelta(days=chance.randint(0, 3_000_000)), pa.date32()),
            "ts": column(lambda: micros(-(10**15), 10**15), pa.int64()).cast(pa.timestamp("us", "UTC")),
            "ntz": column(lambda: micros(-(10**15), 10**15), pa.int64()).cast(pa.timestamp("us")),
            "d9": column(lambda: decimal(9, 2), pa.decimal128(9, 2)),
            "d18": column(lambda: decimal(18, 4), pa.decimal128(18, 4)),
            "d19": column(lambda: decimal(19, 4), pa.decimal128(19, 4)),
            "d38": column(lambda: decimal(38, 10), pa.decimal128(38, 10)),
        }
    )


WIDE = Context(prec=50)


def test_hashes_are_those_of_spark(spark, tmp_path):
    keys = random_keys(2000)
    pq.write_table(keys.append_column("row", pa.array(range(2000))), tmp_path / "keys.parquet")
    names = keys.column_names
    wanted = {name: [name] for name in names} | {
        "all": names,
        "two": ["s", "bin"],
        "three": ["i64", "d38", "d"],
    }
    hashes = [f"hash({', '.join(columns)}) AS `{name}`" for name, columns in wanted.items()]
    found = spark.read.parquet(f"{tmp_path}/keys.parquet").selectExpr("row", *hashes).toArrow().sort_by("row")
    for name, columns in wanted.items():
        assert spark_hash([keys[column] for column in columns]).tolist() == found[name].to_pylist(), name


def rows(first: int, end: int) -> pa.Table:
    ids = range(first, end)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "s": [f"key-{n:06d}-and-some-more-text-than-fits" for n in ids],
            "d": [date(2020, 1, 1) + timedelta(days=n) for n in ids],
            "ts": pa.array(
                [NOON + timedelta(seconds=n, microseconds=7) for n in ids], pa.timestamp("us", "UTC")
            ),
            "ntz": pa.array([datetime(2020, 1, 1) + timedelta(hours=n) for n in ids], pa.timestamp("us")),  # noqa: DTZ001
            "dec": pa.array([Decimal(n) / 4 for n in ids], pa.decimal128(20, 2)),
            "f": pa.array([n / 7 for n in ids], pa.float32()),
            "st": pa.array([{"a": n} for n in ids], pa.struct([("a", pa.int32())])),
            "v": pa.array([None] * len(ids), pa.struct([("value", pa.binary()), ("metadata", pa.binary())])),
        }
    )


COLUMNS = "id BIGINT, s STRING, d DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, dec DECIMAL(20,2), f FLOAT, st STRUCT<a: INT>"


@pytest.fixture
def ours(spark, table, tmp_path) -> DeltaLog:
    """A Delta table of four files of 100 rows each that this layer wrote."""
    spark.sql(
        f"CREATE TABLE {table} ({COLUMNS}, v VARIANT, p INT) USING delta PARTITIONED BY (p)"
        f" LOCATION '{tmp_path}/t' TBLPROPERTIES({VECTORS}, 'delta.enableChangeDataFeed'='true')"
    )
    log = open_log(f"{tmp_path}/t")
    files = []
    for first in range(0, 400, 100):
        data, path = rows(first, first + 100), f"p=1/part-{uuid.uuid4()}.parquet"
        with log.store.open_output(path) as out:
            pq.write_table(data, out, compression="zstd")
        size = log.store.info(path).size
        tags = {"lake.level": "0", "lake.sort": '["id"]'}
        files.append(AddFile(path, {"p": "1"}, size, 1, True, collect_stats(data, ["s"]), tags))
    assert log.write(1, [*files, Txn("writer", 1)], "load")
    return log


def rs_sum(root: str) -> tuple[int, int]:
    query = (
        QueryBuilder().register("t", DeltaTable(root)).execute("SELECT count(*) AS n, sum(id) AS s FROM t")
    )
    found = pa.table(query.read_all()).to_pylist()[0]
    return found["n"], found["s"]


def spark_sum(spark, table: str) -> tuple[int, int]:
    return tuple(spark.newSession().sql(f"SELECT count(*), sum(id) FROM {table}").collect()[0])


SKIPPED = [
    ("true", 4, 400),
    ("id = 5", 1, 1),
    ("id BETWEEN 150 AND 249", 2, 100),
    ("s = 'key-000105-and-some-more-text-than-fits'", 1, 1),
    ("d = DATE'2020-02-01'", 1, 1),
    ("ts = TIMESTAMP'2020-01-01 12:03:19.000007Z'", 1, 1),
    ("ntz < TIMESTAMP_NTZ'2020-01-02 00:00:00'", 1, 24),
    ("dec > 90", 1, 39),
    ("f > 52", 1, 35),
    ("st.a = 399", 1, 1),
    ("id IS NULL", 0, 0),
    ("id > 399", 0, 0),
]


def test_spark_skips_files_by_our_statistics(spark, table, ours):
    for condition, files, found in SKIPPED:
        query = spark.sql(f"SELECT id FROM {table} WHERE {condition}")
        assert (len(query.inputFiles()), query.count()) == (files, found), condition


def test_vectors_statistics_and_checkpoints_go_both_ways(spark, table, ours):
    files = sorted(ours.snapshot().files.values(), key=lambda file: file.column_stats.range("id"))
    with VectorFileWriter(ours.store) as writer:
        vectors = [writer.add(BitMap64([0, 1, 2])), writer.add(BitMap64(range(0, 100, 2)))]
    changes = []
    for file, vector in zip(files, vectors, strict=False):
        changes += [file.with_vector(vector), file.remove(2, data_change=True)]
    assert ours.write(2, [*changes, CommitInfo({"operation": "DELETE"})], "delete")
    want = (347, sum(range(400)) - 3 - sum(range(100, 200, 2)))
    assert spark_sum(spark, table) == rs_sum(ours.store.root) == want
    kinds = (
        spark.sql(f"SELECT _change_type AS k FROM table_changes('{table}', 2, 2)").toArrow()["k"].to_pylist()
    )
    assert kinds == ["delete"] * 53
    # Spark adds to our vectors, and we read what it wrote.
    spark.sql(f"DELETE FROM {table} WHERE id IN (3, 399)")
    snapshot = ours.snapshot()
    assert snapshot.version == 3
    assert sum(file.live_records for file in snapshot.files.values()) == 345
    removed = [
        read_vector(ours.store, f.deletion_vector) for f in snapshot.files.values() if f.deletion_vector
    ]
    assert sorted(map(len, removed)) == [1, 4, 50]
    # All that is older than our checkpoint goes: it must hold everything.
    before = spark_sum(spark, table)
    ours.checkpoint(3)
    ours.store.delete(commit_path(version) for version in range(3))
    assert spark_sum(spark, table) == rs_sum(ours.store.root) == before
    again = DeltaLog(ours.store).snapshot()
    assert [file.tags for file in again.files.values()] == [file.tags for file in snapshot.files.values()]
    assert again.txns == {"writer": 1}
    spark.sql(f"INSERT INTO {table} (id, p) VALUES (1000, 1)")
    assert spark_sum(spark, table) == (346, before[1] + 1000)
    assert DeltaLog(ours.store).snapshot().version == 4


@pytest.mark.parametrize(
    ("properties", "conf"),
    [
        ("", {}),
        ("", {"spark.databricks.delta.checkpoint.partSize": "2"}),
        (", 'delta.checkpointPolicy'='v2'", {}),
        (
            ", 'delta.checkpointPolicy'='v2'",
            {"spark.databricks.delta.checkpointV2.topLevelFileFormat": "parquet"},
        ),
    ],
    ids=["classic", "multi-part", "v2 json", "v2 parquet"],
)
def test_checkpoints_of_spark_are_read(spark, table, tmp_path, properties, conf):
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        spark.sql(
            f"CREATE TABLE {table} (id BIGINT) USING delta LOCATION '{tmp_path}/t'"
            f" TBLPROPERTIES({VECTORS}, 'delta.checkpointInterval'='3'{properties})"
        )
        for first in (0, 10, 20):
            spark.range(first, first + 10).coalesce(1).write.insertInto(table)
        spark.sql(f"DELETE FROM {table} WHERE id IN (3, 17)")
    finally:
        for key in conf:
            spark.conf.unset(key)
    log = open_log(f"{tmp_path}/t")
    assert len(list(Path(tmp_path).glob("t/_delta_log/*3.checkpoint*"))) >= 1
    log.store.delete(commit_path(version) for version in range(3))
    snapshot = DeltaLog(log.store).snapshot()
    assert (snapshot.version, len(snapshot.files)) == (4, 3)
    assert sorted(file.live_records for file in snapshot.files.values()) == [9, 9, 10]
    assert sorted(file.column_stats.range("id") for file in snapshot.files.values()) == [
        (0, 9),
        (10, 19),
        (20, 29),
    ]
    # Our checkpoint in the place of Spark's is read by Spark.
    log.checkpoint(3)
    assert spark_sum(spark, table) == (28, sum(range(30)) - 20)


def test_a_shallow_clone_names_files_of_its_source(spark, table, tmp_path):
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT) USING delta LOCATION '{tmp_path}/t' TBLPROPERTIES({VECTORS})"
    )
    spark.range(10).coalesce(1).write.insertInto(table)
    spark.sql(f"DELETE FROM {table} WHERE id = 4")
    spark.sql(f"CREATE TABLE {table}_c SHALLOW CLONE {table} LOCATION '{tmp_path}/c d'")
    try:
        log = open_log(f"{tmp_path}/c d")
        (file,) = log.snapshot().files.values()
        assert file.deletion_vector.storage_type == "p"
        assert list(read_vector(log.store, file.deletion_vector)) == [4]
        assert pq.read_table(log.store.open_input(file.file_path)).num_rows == 10
    finally:
        spark.sql(f"DROP TABLE {table}_c")
