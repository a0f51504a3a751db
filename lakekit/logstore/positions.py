"""Which place in the log belongs to a version of the table: kept in the commits themselves, as `commitInfo.lakeLog`.

Each commit of a table with a log notes offsets from which on the log has all that the version does not have yet. For
changes that are derived from commits these are the end of the log before the commit; for a stream, which sends first
and commits later, the end of what the commit has of it. So every note carries one entry for derived changes, under the
name of `TABLE`, and one for each stream that is open, and passes on those of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lakekit.logstore.records import TABLE
from lakekit.storage.log import DeltaLog, open_log

if TYPE_CHECKING:
    from lakekit.storage.actions import Action

FIELD = "lakeLog"


@dataclass(frozen=True)
class Since:
    """A commit of a stream whose changes the log has as the files have them: version, and the stream's last epoch."""

    version: int
    epoch: int


@dataclass(frozen=True)
class LogNote:
    """What a commit says about the log.

    Attributes:
        topic: the log's; notes about another one do not count.
        offsets: for each topic partition the offset from which on the log has what the commit does not have.
        partitions: how many of the topic's partitions are used; more may be added to it later.
        emits: whether the commit's changes belong in the log.
        stream: the writer of the commit, if it is a stream that sent its changes before.
        since: the stream's last commit before of which the log says that the files have it.
        closes: whether this stream has ended.
    """

    topic: str
    offsets: Mapping[int, int]
    partitions: int | None
    emits: bool = True
    stream: str | None = None
    since: Since | None = None
    closes: bool = False

    @classmethod
    def silent(cls, topic: str) -> LogNote:
        """Returns the note of a commit that is kept out of the log, for which no Kafka is asked."""
        return cls(topic, {}, None, emits=False)

    def fields(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the note as JSON, given that of the newest commit before that has one."""
        own = {str(partition): offset for partition, offset in self.offsets.items()}
        offsets = {**before.get("offsets", {})}
        if own:
            offsets[TABLE] = own
        note: dict[str, Any] = {"topic": self.topic, "emits": self.emits, "offsets": offsets}
        note["partitions"] = self.partitions or before.get("partitions")
        if self.stream is not None:
            offsets[self.stream] = own
            if self.closes:
                del offsets[self.stream]
            note["stream"] = self.stream
        if self.since is not None:
            note["since"] = asdict(self.since)
        return note


@dataclass(frozen=True)
class Resumption:
    """How the log goes on after a version of the table.

    Attributes:
        version: the version.
        offsets: by writer, `TABLE` or an open stream, for each topic partition the offset after what the version has.
        done: for each writer the last epoch that the version has.
    """

    version: int
    offsets: Mapping[str, Mapping[int, int]]
    done: Mapping[str, int]

    def starts(self, earliest: Mapping[int, int]) -> dict[int, int]:
        """Returns for each topic partition the offset to read from.

        Args:
            earliest: the first offsets that the log still has. Derived changes before these are in the version.

        Raises:
            ValueError: with the offsets that a stream needs and the log does not have any more.
        """
        found = dict(earliest)
        for partition, offset in self.offsets.get(TABLE, {}).items():
            found[partition] = max(offset, earliest.get(partition, offset))
        for offsets in (o for writer, o in self.offsets.items() if writer != TABLE):
            gone = {p: offset for p, offset in offsets.items() if offset < earliest.get(p, offset)}
            if gone:
                raise ValueError(gone)
            for partition, offset in offsets.items():
                found[partition] = min(found.get(partition, offset), offset)
        return found


def note_of(actions: list[Action]) -> Mapping[str, Any] | None:
    """Returns the note of a commit, if it has one."""
    from lakekit.storage.actions import CommitInfo

    info = next((a.fields for a in actions if isinstance(a, CommitInfo)), {})
    found: Mapping[str, Any] | None = info.get(FIELD)
    return found


def newest_note(log: DeltaLog, version: int, topic: str, stream: str | None = None) -> Mapping[str, Any]:
    """Returns the note of the newest commit up to a version that has one about a topic, or an empty one.

    Args:
        log: the table's log.
        version: where to begin.
        topic: the topic.
        stream: only commits of this stream.
    """
    for number in range(version, log.earliest_version() - 1, -1):
        found = note_of(log.commit_actions(number))
        if found is None or found["topic"] != topic:
            continue
        if stream is None or found.get("stream") == stream:
            return {**found, "version": number}
    return {}


def used_partitions(root: str, topic: str) -> int | None:
    """Returns how many of the topic's partitions the table uses; None as long as no commit tells."""
    log = open_log(root)
    found: int | None = newest_note(log, log.latest_version(), topic).get("partitions")
    return found


def resumption(root: str, topic: str, version: int | None = None) -> Resumption:
    """Returns how the log goes on after a version of the table, the newest by default.

    Where no commit tells offsets, the log has been there from its own beginning.
    """
    log = open_log(root)
    snapshot = log.snapshot(version)
    noted = newest_note(log, snapshot.version, topic).get("offsets", {})
    offsets = {writer: {int(p): offset for p, offset in own.items()} for writer, own in noted.items()}
    return Resumption(snapshot.version, offsets, {**snapshot.txns, TABLE: snapshot.version})
