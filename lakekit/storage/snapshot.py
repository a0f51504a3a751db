"""The state of a table at one version."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lakekit.names import BUCKET_COLUMN
from lakekit.storage.actions import Action, AddFile, DomainMetadata, Metadata, Protocol, RemoveFile, Txn
from lakekit.storage.stats import ColumnTypes, column_types, read_value

PRIMARY_KEY = "lake.primary-key"
BUCKETS = "lake.bucket"
SEQUENCE_FIELD = "lake.sequence.field"


@dataclass(frozen=True)
class Snapshot:
    """The state of a table at one version; immutable, made by replaying the log.

    `files` is keyed by the path as in the log (URL-encoded); `timestamp` is in ms since 1970; `txns` maps an
    application id to its newest batch.
    """

    version: int
    timestamp: int
    protocol: Protocol
    metadata: Metadata
    files: Mapping[str, AddFile] = field(repr=False)
    txns: Mapping[str, int]
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)

    @property
    def configuration(self) -> dict[str, str]:
        """The table properties."""
        return dict(self.metadata.configuration)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns in order, the bucket column included."""
        return self.metadata.partition_columns

    @cached_property
    def primary_key(self) -> tuple[str, ...]:
        """The primary key; empty for an append table."""
        return tuple(json.loads(self.metadata.configuration.get(PRIMARY_KEY, "[]")))

    @cached_property
    def buckets(self) -> int | None:
        """The number of buckets; None for an append table."""
        value = self.metadata.configuration.get(BUCKETS)
        return int(value) if value and self.primary_key else None

    @property
    def sequence_field(self) -> str | None:
        """The column whose highest value decides between rows of one key, if there is one."""
        return self.metadata.configuration.get(SEQUENCE_FIELD)

    @cached_property
    def schema_json(self) -> dict[str, Any]:
        """The schema as Delta keeps it: a struct type in Spark's JSON form, `_bucket` included."""
        schema: dict[str, Any] = json.loads(self.metadata.schema_string)
        return schema

    @cached_property
    def column_types(self) -> ColumnTypes:
        """Type of each top-level column as in the schema JSON."""
        return column_types(self.schema_json)

    @property
    def user_columns(self) -> list[str]:
        """The column names that people see, in order."""
        return [name for name in self.column_types if name != BUCKET_COLUMN]

    @cached_property
    def total_bytes(self) -> int:
        """Size of all data files in bytes."""
        return sum(file.size for file in self.files.values())

    def partition_value(self, values: Mapping[str, str | None], column: str) -> Any:
        """Returns one of a file's partition values as a Python value of the column's type, or None.

        Raises:
            ValueError: if the log holds something that is no value of that type.
        """
        text = values.get(column)
        if text is None or text == "":
            return None
        return read_value(text, self.column_types[column])

    def apply(self, version: int, timestamp: int, actions: Iterable[Action]) -> Snapshot:
        """Returns the state after one more commit, by the replay rules of the Delta protocol."""
        replay = Replay(self)
        replay.commit(actions)
        return replay.snapshot(version, timestamp)


class Replay:
    """Replays actions over a state.

    Removes of a commit come before its adds, whatever their order in the file. A commit that changes a file's
    deletion vector removes (path, old vector) and adds (path, new vector): a remove takes only the file that
    has its vector.
    """

    def __init__(self, base: Snapshot | None = None, keep_tombstones: bool = False) -> None:
        self._files: dict[str, AddFile] = dict(base.files) if base else {}
        self._txns: dict[str, int] = dict(base.txns) if base else {}
        self._domains: dict[str, DomainMetadata] = dict(base.domains) if base else {}
        self.protocol: Protocol | None = base.protocol if base else None
        self.metadata: Metadata | None = base.metadata if base else None
        self._keep_tombstones = keep_tombstones
        self.tombstones: dict[tuple[str, str | None], RemoveFile] = {}
        self.txn_actions: dict[str, Txn] = {}
        self._types: ColumnTypes = base.column_types if base else {}

    def commit(self, actions: Iterable[Action]) -> None:
        """Applies the actions of one commit (or of a whole checkpoint)."""
        adds: list[AddFile] = []
        for action in actions:
            if isinstance(action, AddFile):
                adds.append(action)
            elif isinstance(action, RemoveFile):
                self._remove(action)
            elif isinstance(action, Txn):
                self._txns[action.app_id] = action.version
                self.txn_actions[action.app_id] = action
            elif isinstance(action, Metadata):
                self._set_metadata(action)
            elif isinstance(action, Protocol):
                self.protocol = action
            elif isinstance(action, DomainMetadata):
                self._set_domain(action)
        for add in adds:
            self._files[add.path] = add.with_types(self._types)
            if self._keep_tombstones:
                self.tombstones.pop(_key(add), None)

    def _remove(self, remove: RemoveFile) -> None:
        present = self._files.get(remove.path)
        if present is not None and _key(present) == _key(remove):
            del self._files[remove.path]
        if self._keep_tombstones:
            self.tombstones[_key(remove)] = remove

    def _set_metadata(self, metadata: Metadata) -> None:
        if self.metadata is None or self.metadata.schema_string != metadata.schema_string:
            self._types = column_types(json.loads(metadata.schema_string))
            self._files = {path: file.with_types(self._types) for path, file in self._files.items()}
        self.metadata = metadata

    def _set_domain(self, action: DomainMetadata) -> None:
        if action.removed:
            self._domains.pop(action.domain, None)
        else:
            self._domains[action.domain] = action

    def snapshot(self, version: int, timestamp: int) -> Snapshot:
        """Returns the state reached.

        Raises:
            ValueError: if the log so far has no protocol or no metadata.
        """
        if self.protocol is None or self.metadata is None:
            raise ValueError("the log has no protocol or metadata action")
        made = Snapshot(
            version, timestamp, self.protocol, self.metadata, self._files, self._txns, self._domains
        )
        made.__dict__["column_types"] = self._types
        return made


def _key(file: AddFile | RemoveFile) -> tuple[str, str | None]:
    return file.path, file.deletion_vector.unique_id if file.deletion_vector else None
