"""Tables on disk without Spark: written by the bucket writer, read through the functions under test."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakekit.filestore.layout import OPERATION, BucketLayout
from lakekit.filestore.writer import BucketWriter
from lakekit.names import BUCKET_COLUMN, TableName
from lakekit.session.runner import LocalRunner
from lakekit.skipping.values import arrow_type
from lakekit.storage.actions import Action, CommitInfo, Metadata, Protocol
from lakekit.storage.log import open_log
from lakekit.storage.murmur3 import bucket_of
from lakekit.storage.snapshot import Snapshot
from lakekit.table.inspect import Inspect

FEATURES = ("deletionVectors",)


class FakeConf:
    """Session settings."""

    def get(self, name: str) -> str:
        return {"spark.sql.session.timeZone": "Europe/Berlin"}[name]


class FakeSpark:
    """A session that has settings and can do nothing."""

    conf = FakeConf()


class FakeLake:
    """A lake with neither Spark nor a catalog."""

    runner = LocalRunner()
    spark = FakeSpark()


class DiskTable:
    """A keyed table whose rows come and go without Spark; has what look-ups and inspection need of a table."""

    def __init__(
        self,
        root: Path,
        kinds: Mapping[str, Any],
        key: Sequence[str],
        partition: Sequence[str] = (),
        buckets: int = 2,
    ) -> None:
        self.root = str(root)
        self.name = TableName("shop", root.name)
        self.lake = FakeLake()
        self.kinds = dict(kinds)
        self.primary_key = tuple(key)
        self._partition = list(partition)
        self._buckets = buckets
        self.log = open_log(self.root)
        self.inspect = Inspect(self)  # type: ignore[arg-type]
        self.commit([Protocol(3, 7, FEATURES, FEATURES), self.metadata()], "CREATE TABLE", version=0)

    def metadata(self, **kinds: Any) -> Metadata:
        """Returns the table's metadata, with more columns if given."""
        self.kinds |= kinds
        schema = {**self.kinds, **({BUCKET_COLUMN: "integer"} if self.primary_key else {})}
        fields = [{"name": n, "type": k, "nullable": True, "metadata": {}} for n, k in schema.items()]
        partition = (*self._partition, *([BUCKET_COLUMN] if self.primary_key else []))
        configuration = {"lake.format-version": "1"}
        if self.primary_key:
            configuration |= {
                "lake.primary-key": json.dumps(self.primary_key),
                "lake.bucket": str(self._buckets),
            }
        text = json.dumps({"type": "struct", "fields": fields})
        return Metadata("id", None, None, text, partition, configuration, 0)

    def snapshot(self) -> Snapshot:
        return self.log.snapshot()

    def version_at(self, timestamp: Any) -> int:
        return self.log.version_at(int(timestamp.timestamp() * 1000))

    @property
    def schema(self) -> Any:
        from pyspark.sql.types import StructType

        fields = self.snapshot().schema_json["fields"]
        return StructType.fromJson(
            {"type": "struct", "fields": [f for f in fields if f["name"] != BUCKET_COLUMN]}
        )

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema(
            [(n, arrow_type(k) if isinstance(k, str) else self._nested(n)) for n, k in self.kinds.items()]
        )

    def _nested(self, name: str) -> pa.DataType:
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(self.schema).field(name).type

    def commit(
        self,
        actions: Sequence[Action],
        operation: str,
        version: int | None = None,
        metrics: Mapping[str, str] | None = None,
    ) -> int:
        number = self.log.snapshot().version + 1 if version is None else version
        info = CommitInfo(
            {
                "operation": operation,
                "operationParameters": {"mode": "Append", "count": 1},
                "operationMetrics": dict(metrics or {}),
                "engineInfo": "lakekit/test",
            }
        )
        assert self.log.write(number, [info, *actions], uuid.uuid4().hex)
        return number

    def write(
        self, upserts: Sequence[Mapping[str, Any]] = (), deletes: Sequence[Mapping[str, Any]] = ()
    ) -> int:
        """Upserts rows and deletes keys in one commit; returns its version."""
        changes = [{**row, OPERATION: "U"} for row in upserts] + [{**row, OPERATION: "D"} for row in deletes]
        rows = pa.Table.from_pylist(changes, self.arrow_schema.append(pa.field(OPERATION, pa.string())))
        stored = pa.schema([f for f in self.arrow_schema if f.name not in self._partition])
        parts = pa.schema([self.arrow_schema.field(n) for n in self._partition])
        layout = BucketLayout(self.root, stored, parts, self.primary_key, self._buckets)
        buckets = bucket_of([rows[name] for name in self.primary_key], self._buckets)
        actions: list[Action] = []
        counts = {"numInsertedRows": 0, "numUpdatedRows": 0, "numDeletedRows": 0}
        for bucket in sorted(set(buckets.tolist())):
            part = rows.filter(pa.array(buckets == bucket))
            order = [*self._partition, *layout.sort_columns]
            # Arrow does not sort booleans; the last column keeps the order of arrival.
            ranks = [part[c].cast(pa.int8()) if part[c].type == pa.bool_() else part[c] for c in order]
            ranked = pa.Table.from_arrays(
                [*ranks, pa.array(range(part.num_rows))], [str(i) for i in range(len(ranks) + 1)]
            )
            part = part.take(pc.sort_indices(ranked, [(c, "ascending") for c in ranked.column_names]))
            live = [f for f in self.snapshot().files.values() if f.bucket == bucket]
            result = BucketWriter(layout, bucket, live, uuid.uuid4().hex).run(iter(part.to_batches()))
            assert not result.refused, result
            actions += [*result.removed, *result.added]
            counts["numInsertedRows"] += result.rows_inserted
            counts["numUpdatedRows"] += result.rows_updated
            counts["numDeletedRows"] += result.rows_deleted
        return self.commit(
            actions, "UPSERT", metrics={k: str(v) for k, v in counts.items()} | {"durationMs": "12"}
        )
