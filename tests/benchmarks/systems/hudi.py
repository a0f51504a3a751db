"""Apache Hudi: merge-on-read and copy-on-write, with a bucket index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tests.benchmarks.systems.base import SPARK_3, Setting, System, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class _Hudi(System):
    kind: ClassVar[str]
    requirements = SPARK_3
    packages = ("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.1.1",)
    session = (
        Setting("spark.serializer", "org.apache.spark.serializer.KryoSerializer", "how Hudi is set up"),
        Setting("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar", "same"),
        Setting("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension", "same"),
        Setting("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog", "same"),
    )
    properties: ClassVar[tuple[Setting, ...]] = (
        Setting("hoodie.datasource.write.recordkey.field", "k", "the key"),
        Setting("hoodie.datasource.write.precombine.field", "ts", "the newest row of a key wins"),
        Setting(
            "hoodie.datasource.write.keygenerator.class",
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "the table has no partitions",
        ),
        Setting(
            "hoodie.index.type", "BUCKET", "finds a key's file group by hash; fastest for random updates"
        ),
        Setting("hoodie.bucket.index.num.buckets", "4", "two file groups a core"),
        Setting(
            "hoodie.metadata.enable", "false", "its table costs every commit; few files need no listing index"
        ),
        Setting("hoodie.upsert.shuffle.parallelism", "4", "as many as file groups"),
        Setting("hoodie.bulkinsert.shuffle.parallelism", "4", "same"),
        Setting("hoodie.parquet.compression.codec", "zstd", "as lakekit (gzip is its default)"),
    )

    def create(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)

    def load(self, rows: DataFrame) -> None:
        self._write(rows, "bulk_insert", "overwrite")

    def upsert(self, rows: DataFrame) -> None:
        self._write(rows, "upsert", "append")

    def state(self) -> TableState:
        """Base files and log files of the newest file slices."""
        newest: dict[str, tuple[str, Path]] = {}
        for path in self.root.rglob("*.parquet"):
            group, _, instant = path.stem.split("_")
            newest[group] = max(newest.get(group, ("", path)), (instant, path))
        logs = []
        for path in self.root.rglob(".[!.]*.log.*"):  # two dots: a checksum
            group, instant = path.name[1:].split(".")[0].split("_")
            if instant >= newest.get(group, ("", path))[0]:
                logs.append(path)
        size = sum(path.stat().st_size for _, path in newest.values()) + sum(p.stat().st_size for p in logs)
        return TableState(len(newest), len(logs), size)

    def _write(self, rows: DataFrame, operation: str, mode: str) -> None:
        partition = {
            "hoodie.datasource.write.partitionpath.field": "day",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        }
        options = (
            {s.name: s.value for s in self.properties}
            | (partition if self.dataset.days else {})
            | {
                "hoodie.table.name": "race",
                "hoodie.datasource.write.table.type": self.kind,
                "hoodie.datasource.write.operation": operation,
            }
        )
        rows.write.format("hudi").options(**options).mode(mode).save(str(self.root))
        self._open_view()

    def _open_view(self) -> None:
        """Lets queries see the newest files: a view keeps those that were there when it was made."""
        self.spark.read.format("hudi").load(str(self.root)).createOrReplaceTempView(self.table)


class HudiMor(_Hudi):
    name = "hudi-mor"
    title = "Hudi, merge-on-read"
    kind = "MERGE_ON_READ"
    properties = (
        *_Hudi.properties,
        Setting("hoodie.compact.inline", "true", "the writer compacts, after 5 commits by default"),
    )
    maintenance = (
        Setting("between batches", "hoodie.compact.inline", "by the writer, after 5 commits"),
        Setting("compaction", "CALL run_compaction", "scheduled and executed at once"),
    )

    def compact(self) -> None:
        options = "hoodie.compact.inline.max.delta.commits=1"
        self.spark.sql(
            f"CALL run_compaction(op => 'scheduleAndExecute', path => '{self.root}', options => '{options}')"
        )
        self._open_view()


class HudiCow(_Hudi):
    name = "hudi-cow"
    title = "Hudi, copy-on-write"
    kind = "COPY_ON_WRITE"
    maintenance = (Setting("compaction", "none", "every upsert rewrites the files that it touches"),)

    def compact(self) -> None:
        """Nothing waits for compaction."""
