"""The actions of the Delta log about files: data files, their deletion vectors, and files of row changes.

Fields that a reader of today does not know are kept in `extra` and written back.
"""

from __future__ import annotations

import dataclasses
import json
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakekit.names import BUCKET_COLUMN
from lakekit.storage.stats import ColumnStats, ColumnTypes

TAG_LEVEL = "lake.level"
TAG_RUN = "lake.run"
TAG_SORT = "lake.sort"

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def split_known(fields: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Returns the fields that are not among the known ones."""
    return {key: value for key, value in fields.items() if key not in known}


def compact(fields: dict[str, Any], extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns the fields that have a value, together with the extra ones."""
    fields.update(extra or {})
    return {key: value for key, value in fields.items() if value is not None}


def plain_path(path: str) -> str:
    """Returns a path of the log for `Store`: URL-decoded, unless it is an absolute URI."""
    return path if _ABSOLUTE.match(path) else urllib.parse.unquote(path)


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """Where the removed rows of a data file are listed.

    `storage_type` is ``u`` (file named by uuid), ``p`` (absolute path) or ``i`` (inline); `size` in bytes;
    `cardinality` is the number of removed rows.
    """

    storage_type: str
    path_or_inline: str
    offset: int | None
    size: int
    cardinality: int

    @property
    def unique_id(self) -> str:
        """The identity by which the log tells versions of a file apart."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline}{suffix}"

    @classmethod
    def from_json(cls, fields: Mapping[str, Any] | None) -> DeletionVector | None:
        """Reads a ``deletionVector`` object; None stays None."""
        if not fields:
            return None
        return cls(
            fields["storageType"],
            fields["pathOrInlineDv"],
            fields.get("offset"),
            fields["sizeInBytes"],
            fields["cardinality"],
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the ``deletionVector`` object."""
        fields = {
            "storageType": self.storage_type,
            "pathOrInlineDv": self.path_or_inline,
            "offset": self.offset,
            "sizeInBytes": self.size,
            "cardinality": self.cardinality,
        }
        return compact(fields)


_ADD_FIELDS = frozenset(
    {
        "path",
        "partitionValues",
        "size",
        "modificationTime",
        "dataChange",
        "stats",
        "tags",
        "deletionVector",
    }
)


@dataclass(frozen=True, slots=True)
class AddFile:
    """A data file of the table; `path` is URL-encoded, `size` in bytes, times are in ms since 1970."""

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    deletion_vector: DeletionVector | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    types: ColumnTypes = field(default_factory=dict, compare=False, repr=False)
    """Column types that `column_stats` reads the bounds with; a snapshot sets them."""
    _parsed: list[ColumnStats] = field(default_factory=list, init=False, compare=False, repr=False)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> AddFile:
        """Reads an ``add`` object."""
        return cls(
            fields["path"],
            fields.get("partitionValues") or {},
            fields["size"],
            fields["modificationTime"],
            fields["dataChange"],
            fields.get("stats"),
            fields.get("tags") or {},
            DeletionVector.from_json(fields.get("deletionVector")),
            split_known(fields, _ADD_FIELDS),
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the ``add`` object."""
        fields = {
            "path": self.path,
            "partitionValues": dict(self.partition_values),
            "size": self.size,
            "modificationTime": self.modification_time,
            "dataChange": self.data_change,
            "stats": self.stats,
            "tags": dict(self.tags) or None,
            "deletionVector": self.deletion_vector.to_json() if self.deletion_vector else None,
        }
        return compact(fields, self.extra)

    def __reduce__(self) -> tuple[Any, ...]:
        plain = tuple(getattr(self, item.name) for item in dataclasses.fields(self) if item.init)
        return type(self), plain

    @property
    def file_path(self) -> str:
        """The path for `Store`: relative to the table and not URL-encoded, or an absolute URI."""
        return plain_path(self.path)

    @property
    def column_stats(self) -> ColumnStats:
        """The statistics, parsed when first asked for."""
        if not self._parsed:
            self._parsed.append(ColumnStats.parse(self.stats, self.types))
        return self._parsed[0]

    @property
    def num_records(self) -> int | None:
        """Rows in the file, removed ones included; None if the log does not say."""
        return self.column_stats.num_records

    @property
    def live_records(self) -> int | None:
        """Rows in the file that no deletion vector removes; None if the log does not say."""
        removed = self.deletion_vector.cardinality if self.deletion_vector else 0
        return None if self.num_records is None else self.num_records - removed

    @property
    def bucket(self) -> int | None:
        """The bucket, from the partition value; None in tables without buckets."""
        value = self.partition_values.get(BUCKET_COLUMN)
        return None if value is None else int(value)

    @property
    def level(self) -> int | None:
        """The level of the sorted run; None for files that others wrote."""
        value = self.tags.get(TAG_LEVEL)
        return int(value) if value is not None and value.isdigit() else None

    @property
    def run_id(self) -> str | None:
        """The sorted run this file belongs to; None for files that others wrote."""
        return self.tags.get(TAG_RUN)

    @property
    def sort_columns(self) -> tuple[str, ...]:
        """The columns by which the file is sorted; empty for files that others wrote."""
        value = self.tags.get(TAG_SORT)
        return tuple(json.loads(value)) if value else ()

    def with_types(self, types: ColumnTypes) -> AddFile:
        """Returns the same file whose statistics are read with these column types."""
        return self if self.types is types else dataclasses.replace(self, types=types)

    def with_vector(self, vector: DeletionVector, num_records: int | None = None) -> AddFile:
        """Returns the same file with another deletion vector; its bounds are no longer tight.

        Args:
            vector: all removed rows, those of an earlier vector included.
            num_records: rows in the file, needed only if the log does not say it.

        Raises:
            ValueError: if the row count is known to neither the log nor the caller.
        """
        stats = json.loads(self.stats) if self.stats else {}
        stats.setdefault("numRecords", num_records)
        if stats["numRecords"] is None:
            raise ValueError(f"file {self.path} has no row count, which a deletion vector needs")
        text = (
            self.stats if self.stats and stats.get("tightBounds") is False else _loosened(self.stats, stats)
        )
        return dataclasses.replace(self, data_change=True, stats=text, deletion_vector=vector)

    def remove(self, timestamp_ms: int, data_change: bool) -> RemoveFile:
        """Returns the action that takes the file, with its present vector, out of the table."""
        return RemoveFile(
            self.path,
            timestamp_ms,
            data_change,
            self.partition_values,
            self.size,
            self.stats,
            self.tags,
            self.deletion_vector,
            {
                key: value
                for key, value in self.extra.items()
                if key in ("baseRowId", "defaultRowCommitVersion")
            },
        )


def _loosened(text: str | None, parsed: Mapping[str, Any]) -> str:
    # Edited as text where possible: a round trip through floats would change decimals.
    if text and '"tightBounds":true' in text:
        return text.replace('"tightBounds":true', '"tightBounds":false')
    if text and "tightBounds" not in parsed and '"numRecords"' in text:
        return text.rstrip().removesuffix("}") + ',"tightBounds":false}'
    return json.dumps({**parsed, "tightBounds": False}, separators=(",", ":"), ensure_ascii=False)


_REMOVE_FIELDS = frozenset(
    {
        "path",
        "deletionTimestamp",
        "dataChange",
        "extendedFileMetadata",
        "partitionValues",
        "size",
        "stats",
        "tags",
        "deletionVector",
    }
)


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """A data file that is no longer part of the table, kept in the log until vacuum may delete it."""

    path: str
    deletion_timestamp: int | None
    data_change: bool
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    stats: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    deletion_vector: DeletionVector | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> RemoveFile:
        """Reads a ``remove`` object."""
        return cls(
            fields["path"],
            fields.get("deletionTimestamp"),
            fields.get("dataChange", True),
            fields.get("partitionValues"),
            fields.get("size"),
            fields.get("stats"),
            fields.get("tags") or {},
            DeletionVector.from_json(fields.get("deletionVector")),
            split_known(fields, _REMOVE_FIELDS),
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the ``remove`` object."""
        has_metadata = self.partition_values is not None and self.size is not None
        fields = {
            "path": self.path,
            "deletionTimestamp": self.deletion_timestamp,
            "dataChange": self.data_change,
            "extendedFileMetadata": True if has_metadata else None,
            "partitionValues": dict(self.partition_values) if self.partition_values is not None else None,
            "size": self.size,
            "stats": self.stats,
            "tags": dict(self.tags) or None,
            "deletionVector": self.deletion_vector.to_json() if self.deletion_vector else None,
        }
        return compact(fields, self.extra)

    @property
    def file_path(self) -> str:
        """The path for `Store`: relative to the table and not URL-encoded, or an absolute URI."""
        return plain_path(self.path)


@dataclass(frozen=True, slots=True)
class AddCdcFile:
    """A file of row changes that Delta wrote beside the data."""

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    tags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> AddCdcFile:
        """Reads a ``cdc`` object."""
        return cls(
            fields["path"], fields.get("partitionValues") or {}, fields["size"], fields.get("tags") or {}
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the ``cdc`` object."""
        fields = {
            "path": self.path,
            "partitionValues": dict(self.partition_values),
            "size": self.size,
            "dataChange": False,
            "tags": dict(self.tags) or None,
        }
        return compact(fields)
