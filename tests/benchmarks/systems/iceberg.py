"""Apache Iceberg: MERGE, merge-on-read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.systems.base import Setting, System, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class IcebergMerge(System):
    name = "iceberg-mor"
    title = "Iceberg MERGE, merge-on-read"
    packages = ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",)
    session = (
        Setting(
            "spark.sql.extensions",
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "how Iceberg is set up",
        ),
        Setting("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog", "same"),
        Setting("spark.sql.catalog.ice.type", "hadoop", "a catalog in the file system, without a service"),
    )
    properties = (
        Setting("format-version", "3", "deletion vectors instead of position delete files"),
        Setting("write.merge.mode", "merge-on-read", "documented for frequent updates"),
        Setting(
            "write.target-file-size-bytes", str(128 * 1024 * 1024), "lakekit's target size (default 512 MB)"
        ),
        Setting(
            "write.spark.advisory-partition-size-bytes",
            str(64 * 1024 * 1024),
            "by default one task writes all rows of a batch; with this both cores do",
        ),
    )
    maintenance = (
        Setting(
            "compaction", "rewrite_data_files, binpack, rewrite-all", "all rows in and out, as the others"
        ),
        Setting("by key", "rewrite_data_files, sort by k", "so that look-ups and ranges skip files"),
    )

    @property
    def table(self) -> str:
        return "ice.db.race"

    @property
    def root(self) -> Path:
        return self.place / "warehouse" / "db" / "race"

    def spark_config(self) -> dict[str, str]:
        return super().spark_config() | {"spark.sql.catalog.ice.warehouse": str(self.place / "warehouse")}

    def create(self) -> None:
        columns = self.dataset.schema_sql
        self.spark.sql(
            f"CREATE TABLE {self.table} ({columns}) USING iceberg {self.partitioned_sql()} "
            f"TBLPROPERTIES ({self.properties_sql()})"
        )

    def load(self, rows: DataFrame) -> None:
        rows.writeTo(self.table).append()

    def upsert(self, rows: DataFrame) -> None:
        self.merge(rows)

    def compact(self) -> None:
        self._rewrite("strategy => 'binpack'")

    def cluster(self) -> None:
        self._rewrite("strategy => 'sort', sort_order => 'k ASC'")

    def state(self) -> TableState:
        kinds = self.spark.sql(
            "SELECT count_if(content = 0), count_if(content <> 0), sum(file_size_in_bytes) FROM "
            f"(SELECT DISTINCT content, file_path, file_size_in_bytes FROM {self.table}.files)"
        ).collect()[0]
        return TableState(*kinds)

    def _rewrite(self, strategy: str) -> None:
        self.spark.sql(
            f"CALL ice.system.rewrite_data_files(table => 'db.race', {strategy}, "
            "options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))"
        )
