"""Optimistic concurrency: which commits of others stand in the way of ours. Plain data in, a verdict out.

The rules are those of the Delta protocol's optimistic transactions, made finer by what lakekit knows: a blind upsert
read nothing but the keys in the buckets it wrote to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from lakekit.filestore.layout import partition_of
from lakekit.storage.actions import Action, AddFile, Metadata, Protocol, RemoveFile, Txn

BucketId = tuple[tuple[tuple[str, str | None], ...], int]
"""A partition's values and a bucket number."""


class Isolation(Enum):
    """What a commit depends on."""

    KEYS = "keys"
    """Only on the rows of its own keys, in the buckets it wrote to (upsert, delete by key)."""
    TABLE = "table"
    """On rows read from anywhere in the table (update, merge, delete by condition, overwrite)."""
    FILES = "files"
    """Only on the files it replaces, whose rows it keeps (compaction)."""


class Verdict(Enum):
    """What to do about a commit that came between."""

    GO_ON = "go on"
    MOVED = "moved"
    """Only compactions came between: the rows that ours supersedes are in other files now."""
    REPEAT = "repeat"
    """The work must be done, and checked, again on the new version."""
    DONE = "done"
    """The same (writer id, epoch) is in the table already."""


@dataclass(frozen=True)
class Footprint:
    """What a commit rests on.

    Attributes:
        isolation: see `Isolation`.
        buckets: the buckets it wrote to or probed.
        replaced: log paths of the files that it removes.
        txn: its (writer id, epoch), if it has one.
    """

    isolation: Isolation
    buckets: frozenset[BucketId]
    replaced: frozenset[str]
    txn: tuple[str, int] | None = None


def bucket_id(file: AddFile | RemoveFile) -> BucketId:
    """Returns the partition and bucket of a file."""
    values = file.partition_values or {}
    return tuple(sorted(partition_of(values).items())), int(values.get("_bucket") or 0)


def is_live(file: RemoveFile, files: Mapping[str, AddFile]) -> bool:
    """Returns whether a file that is to be removed is among the live files, with the very same deletion vector."""
    live = files.get(file.path)
    return live is not None and live.deletion_vector == file.deletion_vector


def judge(ours: Footprint, winner: Iterable[Action]) -> Verdict:
    """Says what the actions of a commit that came between mean for ours."""
    verdict = Verdict.GO_ON
    for action in winner:
        if isinstance(action, (Metadata, Protocol)):
            return Verdict.REPEAT
        if isinstance(action, Txn) and ours.txn is not None and action.app_id == ours.txn[0]:
            return Verdict.DONE if action.version >= ours.txn[1] else Verdict.REPEAT
        if isinstance(action, (AddFile, RemoveFile)) and _in_the_way(ours, action):
            if action.data_change or ours.isolation is Isolation.FILES:
                verdict = Verdict.REPEAT
            elif verdict is Verdict.GO_ON:
                verdict = Verdict.MOVED
    return verdict


def _in_the_way(ours: Footprint, action: AddFile | RemoveFile) -> bool:
    if isinstance(action, RemoveFile) and action.path in ours.replaced:
        return True
    if ours.isolation is Isolation.FILES:
        return False
    if ours.isolation is Isolation.TABLE:
        return action.data_change
    return action.data_change and bucket_id(action) in ours.buckets
