"""Delta Lake: MERGE that copies files, MERGE with deletion vectors, and a plain table as limit for reads."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tests.benchmarks.systems.base import Setting, System, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class _Delta(System):
    packages: ClassVar[tuple[str, ...]] = (f"io.delta:delta-spark_2.13:{version('delta-spark')}",)
    session: ClassVar[tuple[Setting, ...]] = (
        Setting("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension", "how Delta is set up"),
        Setting("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog", "same"),
        Setting(
            "spark.databricks.delta.snapshotPartitions",
            "2",
            "50 tasks (the default) to replay a small log cost seconds on two cores; lakekit has it too",
        ),
        Setting(
            "spark.databricks.delta.optimize.maxFileSize",
            str(128 * 1024 * 1024),
            "files of lakekit's target size, so that OPTIMIZE and scans use both cores (default 1 GB)",
        ),
    )

    @property
    def table(self) -> str:
        return "default.race"

    def create(self) -> None:
        columns = self.dataset.schema_sql
        self.spark.sql(
            f"CREATE TABLE {self.table} ({columns}) USING delta {self.partitioned_sql()} "
            f"TBLPROPERTIES ({self.properties_sql()})"
        )

    def load(self, rows: DataFrame) -> None:
        rows.write.format("delta").mode("append").saveAsTable(self.table)

    def upsert(self, rows: DataFrame) -> None:
        self.merge(rows)

    def compact(self) -> None:
        self.spark.sql(f"OPTIMIZE {self.table}")

    def state(self) -> TableState:
        return log_state(self.root)


def log_state(root: Path) -> TableState:
    """The live files by the log of a Delta table, all of whose commits are still there."""
    files: dict[str, int] = {}
    vectors: dict[str, str] = {}
    for commit in sorted((root / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        # A commit may replace a file's vector: it removes and adds the same path, in any order.
        for path in (action["remove"]["path"] for action in actions if "remove" in action):
            files.pop(path, None)
            vectors.pop(path, None)
        for add in (action["add"] for action in actions if "add" in action):
            files[add["path"]] = add["size"]
            if vector := add.get("deletionVector"):
                vectors[add["path"]] = vector["pathOrInlineDv"]
    return TableState(len(files), len(set(vectors.values())), sum(files.values()))


class DeltaMerge(_Delta):
    name = "delta-merge"
    title = "Delta MERGE"
    properties = (Setting("delta.enableDeletionVectors", "false", "MERGE copies the files that it touches"),)
    maintenance = (
        Setting("compaction", "OPTIMIZE", "bin-packing, the cheapest"),
        Setting("by key", "OPTIMIZE … ZORDER BY (k)", "so that look-ups and ranges skip files"),
    )

    def cluster(self) -> None:
        self.spark.sql(f"OPTIMIZE {self.table} ZORDER BY (k)")


class DeltaMergeVectors(DeltaMerge):
    name = "delta-merge-dv"
    title = "Delta MERGE, deletion vectors"
    properties = (
        Setting("delta.enableDeletionVectors", "true", "MERGE marks old rows instead of copying files"),
    )


class PlainDelta(_Delta):
    """The final rows as an ordinary Delta table, written once in key order: the limit for reads."""

    name = "delta-plain"
    title = "plain Delta"
    starts_from_final = True
    properties = (Setting("delta.enableDeletionVectors", "false", "nothing is ever deleted"),)
