"""How far the changes of commits have been put into the log: a small file beside the table's Delta log.

It is a hint. If it is lost or too low, commits are emitted once more, which readers do not notice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakekit.filestore.keys import key_columns
from lakekit.filestore.matching import match
from lakekit.logstore.changes import FileChange, file_changes, row_changes
from lakekit.logstore.emission import Target
from lakekit.logstore.positions import note_of
from lakekit.storage.log import open_log
from lakekit.storage.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

_PATH = "_lake_log/emitted.json"
"""Delta's VACUUM leaves folders alone whose name begins with an underscore."""


@dataclass(frozen=True)
class Pending:
    """A commit whose changes the log may lack."""

    version: int
    changes: Sequence[FileChange]


def pending(root: str, since: int, until: int) -> list[Pending]:
    """Returns the commits after one version and up to another whose changes are to be emitted, oldest first."""
    log = open_log(root)
    snapshot = log.snapshot()
    found = []
    for version in range(max(since + 1, log.earliest_version()), until + 1):
        actions = log.commit_actions(version)
        note = note_of(actions)
        # A stream has sent the changes of its commits itself.
        if note is None or note["emits"]:
            changes = file_changes(actions, snapshot)
            if changes:
                found.append(Pending(version, changes))
    return found


def changes_of(root: str, version: int) -> list[FileChange]:
    """Returns what a version did to files."""
    log = open_log(root)
    return file_changes(log.commit_actions(version), log.snapshot())


def touch_keys(target: Target, versions: Iterable[int], rows: pa.Table | None) -> bool:
    """Tells whether any of the versions changed a row that has a key among `rows`, or, without these, any row."""
    store = Store(target.root)
    own = None if rows is None else key_columns(rows, target.key)
    for version in versions:
        changes = changes_of(target.root, version)
        if own is None:
            if changes:
                return True
            continue
        for part in row_changes(store, changes, target.schema, target.key):
            if len(match(own, key_columns(_distinct(part.rows, target.key), target.key))[0]):
                return True
    return False


def _distinct(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    return rows.select(list(key)).group_by(list(key)).aggregate([])


def emitted(root: str, topic: str) -> int:
    """Returns the version up to which everything was emitted to the topic, or -1."""
    try:
        found = json.loads(Store(root).read(_PATH))
    except (FileNotFoundError, ValueError):
        return -1
    return int(found["version"]) if found.get("topic") == topic else -1


def set_emitted(root: str, topic: str, version: int) -> None:
    """Notes that everything up to a version was emitted to the topic."""
    Store(root).put(_PATH, json.dumps({"topic": topic, "version": version}).encode())
