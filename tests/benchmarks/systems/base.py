"""What the race asks of a system. An adapter is one small class; it runs alone, in its own process."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from tests.benchmarks.workload import Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Setting:
    """One choice made for a system, and the reason; the report lists them."""

    name: str
    value: str
    why: str


@dataclass(frozen=True)
class TableState:
    """The files that a read of the newest version opens, without what earlier versions left behind."""

    data_files: int
    delete_files: int
    bytes: int


SPARK_3 = ("pyspark==3.5.6",)
"""The environment of systems that have no release for Spark 4."""


class System(ABC):
    """One way to keep a keyed table.

    Attributes:
        name: short name, as given to ``--systems``.
        title: name in the report.
        requirements: what pip installs into an environment of its own, if it needs another Spark.
        packages: Maven coordinates of its jars; the parent resolves them.
        session: settings of the Spark session besides those that all systems share.
        properties: properties of the table.
        maintenance: how it compacts.
        starts_from_final: a baseline that is loaded with the final rows and gets no upserts.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    requirements: ClassVar[tuple[str, ...]] = ()
    packages: ClassVar[tuple[str, ...]] = ()
    session: ClassVar[tuple[Setting, ...]] = ()
    properties: ClassVar[tuple[Setting, ...]] = ()
    maintenance: ClassVar[tuple[Setting, ...]] = ()
    starts_from_final: ClassVar[bool] = False

    spark: SparkSession

    def __init__(self, dataset: Dataset, place: Path, shared: dict[str, str]) -> None:
        self.dataset = dataset
        self.place = place
        self.shared = shared

    @property
    def table(self) -> str:
        """The table's name in SQL."""
        return "race"

    @property
    def root(self) -> Path:
        """The folder of the table's files, metadata included."""
        return self.place / "warehouse" / "race"

    @abstractmethod
    def create(self) -> None:
        """Creates the empty table."""

    @abstractmethod
    def load(self, rows: DataFrame) -> None:
        """Adds rows to the empty table."""

    @abstractmethod
    def upsert(self, rows: DataFrame) -> None:
        """Replaces the rows that have these keys, adds those that are new, and commits."""

    @abstractmethod
    def compact(self) -> None:
        """Makes few large files of many and applies pending deletes, as cheaply as the system can."""

    @abstractmethod
    def state(self) -> TableState: ...

    def start(self) -> None:
        """Starts Spark with the shared settings and those of the system."""
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.appName(f"race-{self.name}")
        for key, value in self.spark_config().items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")

    def spark_config(self) -> dict[str, str]:
        own = {s.name: s.value for s in self.session}
        return {**self.shared, "spark.sql.warehouse.dir": str(self.place / "warehouse"), **own}

    def stop(self) -> None:
        self.spark.stop()

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(sql).collect()]

    def merge(self, rows: DataFrame) -> None:
        """Upserts with MERGE; where rows come late, only newer ones win."""
        rows.createOrReplaceTempView("batch")
        on = " AND ".join(f"t.{c} = s.{c}" for c in self.dataset.key_columns)
        newer = " AND s.ts > t.ts" if self.dataset.late else ""
        self.spark.sql(
            f"MERGE INTO {self.table} t USING batch s ON {on} "
            f"WHEN MATCHED{newer} THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def partitioned_sql(self) -> str:
        return "PARTITIONED BY (day)" if self.dataset.days else ""

    def properties_sql(self) -> str:
        return ", ".join(f"'{s.name}' = '{s.value}'" for s in self.properties)

    def versions(self) -> dict[str, str]:
        """The versions that the measurement depends on."""
        # Which Spark belongs to a system of its own environment; the report keeps them apart.
        own = f" ({self.title})" if self.requirements else ""
        found = {f"pyspark{own}": version("pyspark"), "python": sys.version.split()[0]}
        if not own:
            found["pyarrow"] = version("pyarrow")
        return found | {package.split(":")[1]: package.split(":")[2] for package in self.packages}


@runtime_checkable
class Clusters(Protocol):
    """A system whose compaction does not sort by key, but which has another that does."""

    def cluster(self) -> None:
        """Rewrites the table in key order, so that look-ups and ranges skip files and row groups."""


@runtime_checkable
class Settles(Protocol):
    """A system that works in the background after upserts."""

    def settle(self) -> None:
        """Waits until that is done."""


@runtime_checkable
class Gets(Protocol):
    """A system that reads a row by key without SQL."""

    def get(self, key: int | str) -> dict[str, Any] | None: ...

    def get_many(self, keys: Sequence[int | str]) -> list[dict[str, Any]]: ...


@runtime_checkable
class WritesAlone(Protocol):
    """A limit for writers: what sorting and writing the rows costs without a table around it."""

    def write_alone(self, batch: Path) -> None:
        """Reads the Parquet files of a batch, sorts the rows by key, and writes them."""
