"""Which place in the log belongs to a version of the table: kept in the commits themselves, as `commitInfo.lakeLog`.

Each commit of a table with a log notes offsets from which on the log has all that the version does not have yet. For
changes that are derived from commits these are the end of the log before the commit; for a stream, which sends first
and commits later, the end of what the commit has of it. So every note carries one entry for derived changes, under the
name of `TABLE`, and one for each stream that is open, and passes on those of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakekit.logstore.records import TABLE
from lakekit.storage.log import DeltaLog, open_log

if TYPE_CHECKING:
    from lakekit.storage.actions import Action

FIELD = "lakeLog"


@dataclass(frozen=True)
class LogNote:
    """What a commit says about the log.

    Attributes:
        offsets: for each topic partition the offset from which on the log has what the commit does not have.
        partitions: how many of the topic's partitions are used; more may be added to it later.
        emits: whether the commit's changes belong in the log.
        stream: the writer of the commit, if it is a stream that sent its changes before.
        closes: whether this stream has ended.
    """

    offsets: Mapping[int, int]
    partitions: int
    emits: bool = True
    stream: str | None = None
    closes: bool = False

    def fields(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the note as JSON, given that of the newest commit before that has one."""
        own = {str(partition): offset for partition, offset in self.offsets.items()}
        offsets = {**before.get("offsets", {}), TABLE: own}
        if self.stream is not None:
            offsets[self.stream] = own
            if self.closes:
                del offsets[self.stream]
        note: dict[str, Any] = {"offsets": offsets, "emits": self.emits, "partitions": self.partitions}
        return note if self.stream is None else {**note, "stream": self.stream}


@dataclass(frozen=True)
class Resumption:
    """How the log goes on after a version of the table.

    Attributes:
        version: the version.
        starts: for each topic partition the offset to read from.
        done: for each writer the last epoch that the version has.
    """

    version: int
    starts: Mapping[int, int]
    done: Mapping[str, int]


def note_of(actions: list[Action]) -> Mapping[str, Any] | None:
    """Returns the note of a commit, if it has one."""
    from lakekit.storage.actions import CommitInfo

    info = next((a.fields for a in actions if isinstance(a, CommitInfo)), {})
    found: Mapping[str, Any] | None = info.get(FIELD)
    return found


def newest_note(log: DeltaLog, version: int) -> Mapping[str, Any]:
    """Returns the note of the newest commit up to a version that has one, or an empty one."""
    for number in range(version, log.earliest_version() - 1, -1):
        found = note_of(log.commit_actions(number))
        if found is not None:
            return found
    return {}


def used_partitions(root: str) -> int | None:
    """Returns how many of the topic's partitions the table uses; None as long as no commit tells."""
    log = open_log(root)
    found: int | None = newest_note(log, log.latest_version()).get("partitions")
    return found


def resumption(root: str, version: int | None) -> Resumption:
    """Returns how the log goes on after a version of the table, the newest by default.

    Where no commit tells, `starts` is empty: the log has been there from its own beginning.
    """
    log = open_log(root)
    snapshot = log.snapshot(version)
    starts: dict[int, int] = {}
    for offsets in newest_note(log, snapshot.version).get("offsets", {}).values():
        for partition, offset in offsets.items():
            starts[int(partition)] = min(starts.get(int(partition), offset), offset)
    return Resumption(snapshot.version, starts, {**snapshot.txns, TABLE: snapshot.version})
