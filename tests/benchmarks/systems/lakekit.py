"""lakekit itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tests.benchmarks.systems.base import Setting, System, TableState
from tests.benchmarks.systems.delta import log_state
from tests.benchmarks.workload import day_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Lakekit(System):
    name = "lakekit"
    title = "lakekit"
    maintenance = (
        Setting("between batches", "lake.compaction.auto", "on by default: merges runs in the background"),
        Setting("compaction", "Table.compact()", "merges the sorted runs; its output is in key order"),
    )

    def start(self) -> None:
        import lakekit

        config = self.shared | {s.name: s.value for s in self.session}
        self.lake = lakekit.connect(warehouse=str(self.place / "warehouse"), config=config)
        self.spark = self.lake.spark

    def stop(self) -> None:
        self.lake.stop()

    def create(self) -> None:
        self._table = self.lake.create_table(
            self.table,
            self.dataset.schema_sql,
            primary_key=self.dataset.key_columns,
            partition_by=["day"] if self.dataset.days else [],
            properties={"sequence.field": "ts"} if self.dataset.late else {},
        )

    def load(self, rows: DataFrame) -> None:
        self._table.upsert(rows)

    def upsert(self, rows: DataFrame) -> None:
        self._table.upsert(rows)

    def settle(self) -> None:
        self.lake.background_compaction.wait()

    def compact(self) -> None:
        self._table.compact()

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.lake.sql(sql).collect()]

    def get(self, key: int | str) -> dict[str, Any] | None:
        day = day_of(self.dataset, key)
        row: dict[str, Any] | None = self._table.get(k=key, **({"day": day} if day else {}))
        return row

    def get_many(self, keys: Sequence[int | str]) -> list[dict[str, Any]]:
        days = [day_of(self.dataset, key) for key in keys]
        wanted = [{"k": key, **({"day": day} if day else {})} for key, day in zip(keys, days, strict=True)]
        rows: list[dict[str, Any]] = self._table.get_many(wanted).to_pylist()
        return rows

    def state(self) -> TableState:
        return log_state(self.root)
