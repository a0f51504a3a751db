"""What a Spark task needs to know of a table to write into its buckets."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

from lakekit.errors import ConstraintError
from lakekit.names import BUCKET_COLUMN
from lakekit.storage.store import Store

if TYPE_CHECKING:
    from lakekit.storage.snapshot import Snapshot

OPERATION = "__lake_op"
"""Column of a change batch: 'U' upserts the row, 'D' deletes its key."""
ORDER = "__lake_order"
"""Column that holds the order of arrival: the last of two equal keys counts."""

PartitionValues = dict[str, str | None]


@dataclass(frozen=True)
class BucketLayout:
    """The shape of a keyed table; small, picklable, without Spark.

    Attributes:
        root: path or URI of the table.
        storage_options: options of the object store.
        schema: Arrow schema of the columns stored in data files (all but partition columns).
        partition_schema: Arrow schema of the user's partition columns, in order.
        primary_key: the key columns, in order.
        buckets: the number of buckets in each partition.
        sequence_field: column whose highest value wins among rows of one key, or None for the last in order.
        required: columns that must not hold nulls (keys apart).
        target_file_size: bytes after which a sorted run goes on in a new file.
    """

    root: str
    schema: pa.Schema
    partition_schema: pa.Schema
    primary_key: tuple[str, ...]
    buckets: int
    sequence_field: str | None = None
    required: tuple[str, ...] = ()
    target_file_size: int = 128 << 20

    @property
    def sort_columns(self) -> tuple[str, ...]:
        """The columns by which files are sorted: the key without the partition columns."""
        return tuple(c for c in self.primary_key if c not in self.partition_schema.names)

    def store(self) -> Store:
        """Opens the table's files."""
        return Store(self.root)

    @classmethod
    def of(cls, root: str, snapshot: Snapshot, target_file_size: int) -> BucketLayout:
        """Builds the layout from a snapshot of a keyed table."""
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        spark_schema = StructType.fromJson(snapshot.schema_json)
        arrow = {f.name: _plain(f) for f in to_arrow_schema(spark_schema)}
        partitions = [c for c in snapshot.partition_columns if c != BUCKET_COLUMN]
        stored = [f for f in spark_schema if f.name not in snapshot.partition_columns]
        return cls(
            root=root,
            schema=pa.schema([arrow[f.name] for f in stored]),
            partition_schema=pa.schema([arrow[c] for c in partitions]),
            primary_key=tuple(snapshot.primary_key),
            buckets=snapshot.buckets or 1,
            sequence_field=snapshot.sequence_field,
            required=tuple(f.name for f in stored if not f.nullable and f.name not in snapshot.primary_key),
            target_file_size=target_file_size,
        )


def _plain(column: pa.Field) -> pa.Field:
    """Data files declare every column and field nullable; only a variant's two parts must be there."""
    return pa.field(column.name, _open_type(column.type))


def _open_type(kind: pa.DataType) -> pa.DataType:
    if is_variant(kind):
        return pa.struct([pa.field("value", pa.binary(), nullable=False), VARIANT_METADATA])
    if pa.types.is_struct(kind):
        return pa.struct([_plain(field) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _open_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_open_type(kind.key_type), _open_type(kind.item_type))
    return kind


VARIANT_METADATA = pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"})
"""The second part of a variant, by which Arrow data from Spark tells one from a struct of two binaries."""


def is_variant(kind: pa.DataType) -> bool:
    """Returns whether a type is Spark's Arrow form of VARIANT."""
    return (
        pa.types.is_struct(kind)
        and kind.num_fields == 2
        and (kind.field(1).metadata or {}).get(b"variant") == b"true"
    )


def partition_text(value: Any, column: str) -> str:
    """Returns a partition value as the Delta log holds it (protocol section "Partition Value Serialization").

    Raises:
        ConstraintError: for an empty string, which Delta reads back as null.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        text = value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return text if value.tzinfo else text[:-1].replace("T", " ")
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape") if value else _refuse_empty(column)
    text = str(value)
    return text or _refuse_empty(column)


def _refuse_empty(column: str) -> str:
    raise ConstraintError(
        f"Partition column '{column}' holds an empty text, which a Delta table cannot tell from null.",
        "Write another value for it, or do not partition by this column.",
    )


def folder_of(partition: PartitionValues, bucket: int) -> str:
    """Returns the folder of one bucket, relative to the table."""
    parts = [f"{quote(k, safe='')}={quote(str(v), safe='')}" for k, v in partition.items()]
    return "/".join([*parts, f"{BUCKET_COLUMN}={bucket}"])


def partition_of(values: Mapping[str, str | None]) -> PartitionValues:
    """Returns the user's part of a file's partition values."""
    return {k: v for k, v in values.items() if k != BUCKET_COLUMN}
