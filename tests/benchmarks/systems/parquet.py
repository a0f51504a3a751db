"""Plain Parquet files without any table around them: the limit for reads, and PyArrow alone that for writes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from tests.benchmarks.systems.base import Setting, System, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PlainParquet(System):
    name = "parquet"
    title = "plain Parquet"
    starts_from_final = True
    maintenance = (
        Setting("upserts", "PyArrow alone", "reads a batch, sorts it by key and writes it, on all cores"),
    )

    def create(self) -> None:
        """There is no table before it has rows."""

    def load(self, rows: DataFrame) -> None:
        rows.write.option("compression", "zstd").parquet(str(self.root))
        self.spark.read.parquet(str(self.root)).createOrReplaceTempView(self.table)

    def upsert(self, rows: DataFrame) -> None:
        raise NotImplementedError

    def compact(self) -> None:
        raise NotImplementedError

    def state(self) -> TableState:
        sizes = [path.stat().st_size for path in self.root.glob("*.parquet")]
        return TableState(len(sizes), 0, sum(sizes))

    def write_alone(self, batch: Path) -> None:
        """One thread for each of the files of a batch, of which there are at least as many as cores."""
        folder = self.place / "alone"
        folder.mkdir(exist_ok=True)
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda file: _sort(file, folder / f"{batch.name}-{file.name}"), batch.iterdir()))


def _sort(source: Path, target: Path) -> None:
    rows: pa.Table = pq.ParquetFile(source).read(use_threads=False)
    pq.write_table(rows.sort_by("k"), target, compression="zstd", row_group_size=128 * 1024)
