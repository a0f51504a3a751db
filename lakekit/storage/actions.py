"""The actions of the Delta log, one dataclass each, and their JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from lakekit.storage.file_actions import AddCdcFile, AddFile, DeletionVector, RemoveFile, compact, split_known

__all__ = [
    "Action",
    "AddCdcFile",
    "AddFile",
    "CommitInfo",
    "DeletionVector",
    "DomainMetadata",
    "Metadata",
    "Other",
    "Protocol",
    "RemoveFile",
    "Txn",
    "parse_action",
    "parse_line",
    "to_line",
]

_METADATA_FIELDS = frozenset(
    {
        "id",
        "name",
        "description",
        "format",
        "schemaString",
        "partitionColumns",
        "configuration",
        "createdTime",
    }
)


@dataclass(frozen=True, slots=True)
class Metadata:
    """Schema, partition columns and properties of the table; `created_time` in ms since 1970."""

    id: str
    name: str | None
    description: str | None
    schema_string: str
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    created_time: int | None
    format: Mapping[str, Any] = field(default_factory=lambda: {"provider": "parquet", "options": {}})
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Metadata:
        """Reads a ``metaData`` object."""
        return cls(
            fields["id"],
            fields.get("name"),
            fields.get("description"),
            fields["schemaString"],
            tuple(fields.get("partitionColumns") or ()),
            fields.get("configuration") or {},
            fields.get("createdTime"),
            fields.get("format") or {"provider": "parquet", "options": {}},
            split_known(fields, _METADATA_FIELDS),
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the ``metaData`` object."""
        fields = {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "format": dict(self.format),
            "schemaString": self.schema_string,
            "partitionColumns": list(self.partition_columns),
            "configuration": dict(self.configuration),
            "createdTime": self.created_time,
        }
        return compact(fields, self.extra)


@dataclass(frozen=True, slots=True)
class Protocol:
    """What a reader and a writer must know to use the table."""

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Protocol:
        """Reads a ``protocol`` object."""
        reader, writer = fields.get("readerFeatures"), fields.get("writerFeatures")
        return cls(
            fields["minReaderVersion"],
            fields["minWriterVersion"],
            None if reader is None else tuple(reader),
            None if writer is None else tuple(writer),
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the ``protocol`` object."""
        fields: dict[str, Any] = {
            "minReaderVersion": self.min_reader_version,
            "minWriterVersion": self.min_writer_version,
            "readerFeatures": None if self.reader_features is None else list(self.reader_features),
            "writerFeatures": None if self.writer_features is None else list(self.writer_features),
        }
        return compact(fields)


@dataclass(frozen=True, slots=True)
class Txn:
    """The newest batch of an application that the table holds; `last_updated` in ms since 1970."""

    app_id: str
    version: int
    last_updated: int | None = None

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Txn:
        """Reads a ``txn`` object."""
        return cls(fields["appId"], fields["version"], fields.get("lastUpdated"))

    def to_json(self) -> dict[str, Any]:
        """Returns the ``txn`` object."""
        return compact({"appId": self.app_id, "version": self.version, "lastUpdated": self.last_updated})


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What the writer said about a commit: operation, metrics, time; free in form."""

    fields: Mapping[str, Any]

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> CommitInfo:
        """Reads a ``commitInfo`` object."""
        return cls(fields)

    def to_json(self) -> dict[str, Any]:
        """Returns the ``commitInfo`` object."""
        return dict(self.fields)


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """A named setting that a table feature keeps in the log."""

    domain: str
    configuration: str
    removed: bool

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> DomainMetadata:
        """Reads a ``domainMetadata`` object."""
        return cls(fields["domain"], fields.get("configuration") or "", fields.get("removed", False))

    def to_json(self) -> dict[str, Any]:
        """Returns the ``domainMetadata`` object."""
        return {"domain": self.domain, "configuration": self.configuration, "removed": self.removed}


@dataclass(frozen=True, slots=True)
class Other:
    """An action that has no class here, such as ``checkpointMetadata`` or ``sidecar``."""

    name: str
    fields: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Returns the action's object."""
        return dict(self.fields)


Action = Union[  # noqa: UP007 - also a value at run time on Python 3.10
    AddFile, RemoveFile, Metadata, Protocol, Txn, CommitInfo, AddCdcFile, DomainMetadata, Other
]

_CLASSES: dict[str, Any] = {
    "add": AddFile,
    "remove": RemoveFile,
    "metaData": Metadata,
    "protocol": Protocol,
    "txn": Txn,
    "commitInfo": CommitInfo,
    "cdc": AddCdcFile,
    "domainMetadata": DomainMetadata,
}
_NAMES: dict[type, str] = {kind: name for name, kind in _CLASSES.items()}


def parse_action(name: str, fields: Mapping[str, Any]) -> Action:
    """Makes the action of this name from its object.

    Raises:
        KeyError: if a field is missing that the protocol requires.
    """
    kind = _CLASSES.get(name)
    return Other(name, fields) if kind is None else kind.from_json(fields)


def parse_line(line: str) -> Action:
    """Parses one line of a commit file.

    Raises:
        ValueError: if it is no JSON.
        TypeError: if it is no object of one action.
        KeyError: if a field is missing that the protocol requires.
    """
    found = json.loads(line)
    if not isinstance(found, dict):
        raise TypeError("not an object")
    name, fields = next(iter(found.items()), ("", None))
    if not isinstance(fields, dict):
        raise TypeError("not an object with one action")
    return parse_action(name, fields)


def to_line(action: Action) -> str:
    """Writes an action as one line of a commit file, without the line end."""
    name = action.name if isinstance(action, Other) else _NAMES[type(action)]
    return json.dumps({name: action.to_json()}, separators=(",", ":"), ensure_ascii=False)
