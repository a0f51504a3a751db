"""A bucket on disk driven without Spark: writes go through BucketWriter, reads through plain pyarrow."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakekit.filestore.compaction import Unit
from lakekit.filestore.layout import OPERATION, BucketLayout
from lakekit.filestore.merge import merge_unit
from lakekit.filestore.result import BucketResult
from lakekit.filestore.writer import BucketWriter
from lakekit.storage.actions import AddFile
from lakekit.storage.stats import column_types
from lakekit.storage.vectors import read_vector

_SPARK_TYPES = {
    "int64": "long",
    "string": "string",
    "double": "double",
    "date32[day]": "date",
    "binary": "binary",
}


class Bucket:
    """Bucket 0 of a table; `files` are the live files."""

    def __init__(
        self,
        root: Path,
        schema: pa.Schema,
        key: Sequence[str],
        partition: Sequence[str] = (),
        sequence: str | None = None,
        required: Sequence[str] = (),
    ) -> None:
        stored = pa.schema([f for f in schema if f.name not in partition])
        parts = pa.schema([schema.field(p) for p in partition])
        self.schema = schema
        self.layout = BucketLayout(str(root), stored, parts, tuple(key), 1, sequence, tuple(required))
        self.files: list[AddFile] = []
        fields = [{"name": f.name, "type": _SPARK_TYPES[str(f.type)]} for f in schema]
        self._types = column_types({"type": "struct", "fields": fields})

    def write(self, rows: list[dict[str, Any]], deletes: Sequence[dict[str, Any]] = ()) -> BucketResult:
        """Upserts rows and deletes keys, in one go."""
        result = self.attempt(rows, deletes)
        if not result.refused:
            self.apply(result)
        return result

    def attempt(self, rows: list[dict[str, Any]], deletes: Sequence[dict[str, Any]] = ()) -> BucketResult:
        """Writes files but applies nothing yet; rows are sorted here as Spark would."""
        changes = [{**row, OPERATION: "U"} for row in rows] + [{**row, OPERATION: "D"} for row in deletes]
        numbered = pa.Table.from_pylist(
            changes, schema=self.schema.append(pa.field(OPERATION, pa.string()))
        ).append_column("n", pa.array(range(len(changes))))
        order = [*self.layout.partition_schema.names, *self.layout.sort_columns]
        order += [self.layout.sequence_field] if self.layout.sequence_field else []
        ranked = numbered.take(
            pa.compute.sort_indices(
                numbered, sort_keys=[(c, "ascending") for c in [*order, "n"]], null_placement="at_start"
            )
        )
        batches = iter(ranked.to_batches(max_chunksize=7))
        return BucketWriter(self.layout, 0, self.files, uuid.uuid4().hex).run(batches)

    def merge(self, level: int = 1, only: Sequence[AddFile] | None = None) -> BucketResult:
        """Merges all files of the bucket, or some, into one run."""
        partition = self.files[0].partition_values
        identity = tuple(sorted((k, v) for k, v in partition.items() if k != "_bucket"))
        result = merge_unit(
            self.layout, Unit((identity, 0), tuple(self.files if only is None else only), level)
        )
        self.apply(result)
        return result

    def apply(self, result: BucketResult) -> None:
        """Replays the actions as the Delta log would."""
        gone = {(f.path, f.deletion_vector) for f in result.removed}
        kept = [f for f in self.files if (f.path, f.deletion_vector) not in gone]
        self.files = kept + [f.with_types(self._types) for f in result.added]

    def rows(self) -> list[dict[str, Any]]:
        """Reads all live rows, in no order."""
        found = []
        for file in self.files:
            rows = pq.ParquetFile(Path(self.layout.root) / file.file_path).read().to_pylist()
            dead = (
                set(read_vector(self.layout.store(), file.deletion_vector)) if file.deletion_vector else set()
            )
            partition = {k: v for k, v in file.partition_values.items() if k != "_bucket"}
            found += [{**partition, **row} for i, row in enumerate(rows) if i not in dead]
            assert json.loads(file.stats or "{}")["numRecords"] == len(rows)
        return found
