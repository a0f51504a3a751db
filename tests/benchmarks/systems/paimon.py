"""Apache Paimon: a primary-key table with fixed buckets, an LSM tree whose writers compact as they write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.systems.base import SPARK_3, Setting, System, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Paimon(System):
    name = "paimon"
    title = "Paimon"
    requirements = SPARK_3
    packages = ("org.apache.paimon:paimon-spark-3.5:0.9.0",)
    session = (
        Setting(
            "spark.sql.extensions",
            "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
            "how Paimon is set up",
        ),
        Setting("spark.sql.catalog.paimon", "org.apache.paimon.spark.SparkCatalog", "same"),
    )
    properties = (
        Setting("bucket", "2", "one writer a core, as lakekit's default; in a fixed number of buckets"),
        Setting("file.format", "parquet", "as all others (ORC is its default)"),
        Setting("file.compression", "zstd", "as lakekit (same level 1)"),
        Setting("file.compression.zstd-level", "1", "its default"),
    )
    maintenance = (
        Setting("between batches", "in the writers", "by default at 5 sorted runs"),
        Setting("compaction", "CALL sys.compact", "full compaction of all buckets, into key order"),
    )

    @property
    def table(self) -> str:
        return "paimon.default.race"

    @property
    def root(self) -> Path:
        return self.place / "warehouse" / "default.db" / "race"

    def spark_config(self) -> dict[str, str]:
        return super().spark_config() | {
            "spark.sql.catalog.paimon.warehouse": (self.place / "warehouse").as_uri()
        }

    def create(self) -> None:
        self.spark.sql("CREATE DATABASE IF NOT EXISTS paimon.default")
        key = f"'primary-key' = '{','.join(self.dataset.key_columns)}'"
        late = ", 'sequence.field' = 'ts'" if self.dataset.late else ""
        self.spark.sql(
            f"CREATE TABLE {self.table} ({self.dataset.schema_sql}) {self.partitioned_sql()} "
            f"TBLPROPERTIES ({key}{late}, {self.properties_sql()})"
        )

    def load(self, rows: DataFrame) -> None:
        self.upsert(rows)

    def upsert(self, rows: DataFrame) -> None:
        rows.createOrReplaceTempView("batch")
        self.spark.sql(f"INSERT INTO {self.table} SELECT * FROM batch")

    def compact(self) -> None:
        self.spark.sql("CALL paimon.sys.compact(table => 'default.race')")

    def state(self) -> TableState:
        files, size = self.spark.sql(
            "SELECT count(*), sum(file_size_in_bytes) FROM paimon.default.`race$files`"
        ).collect()[0]
        return TableState(files, 0, size)


class PaimonVectors(Paimon):
    name = "paimon-dv"
    title = "Paimon, deletion vectors"
    properties = (
        *Paimon.properties,
        Setting("deletion-vectors.enabled", "true", "readers need not merge; writers look keys up"),
    )
