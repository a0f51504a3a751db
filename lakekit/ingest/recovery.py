"""What a stream finds when it starts again: epochs in the log that the FileStore does not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lakekit.filestore.layout import OPERATION
from lakekit.logstore.consumer import LogConsumer
from lakekit.logstore.positions import Since, newest_note, note_of
from lakekit.logstore.records import Change, Flip, LogRecord, Mark, RowKind
from lakekit.logstore.topic import end_offsets
from lakekit.logstore.values import from_json
from lakekit.storage.actions import Txn
from lakekit.storage.log import open_log
from lakekit.storage.store import Store

if TYPE_CHECKING:
    from lakekit.logstore.emission import Target


@dataclass(frozen=True)
class Left:
    """What an earlier run left in the log.

    Attributes:
        rows: of complete epochs, as an upsert takes them; empty if the FileStore has them all.
        broken: whether there is something of epochs that are not complete.
        settled: versions of which the log says that the FileStore has them.
    """

    rows: pa.Table
    broken: bool
    settled: frozenset[int]


@dataclass(frozen=True)
class LastCommit:
    """A stream's last commit, and the one before that was settled; None if it brought no rows."""

    version: int
    since: Since | None


def own_commits(root: str, writer: str, since: int, until: int) -> dict[int, int]:
    """Returns the stream's commits of rows after a version, up to another, with the last epoch in each."""
    log = open_log(root)
    found = {}
    for version in range(since + 1, until + 1):
        actions = log.commit_actions(version)
        if (note_of(actions) or {}).get("stream") == writer:
            found[version] = next(a.version for a in actions if isinstance(a, Txn) and a.app_id == writer)
    return found


def last_commit(root: str, topic: str, writer: str) -> LastCommit:
    """Returns the last commit of a stream that is open."""
    log = open_log(root)
    found = newest_note(log, log.latest_version(), topic, writer)
    return LastCommit(found["version"], Since(**found["since"]) if "since" in found else None)


def open_offsets(root: str, topic: str, writer: str) -> dict[int, int] | None:
    """Returns where the log has what the FileStore lacks of a stream; None if the stream is not open."""
    log = open_log(root)
    found = newest_note(log, log.latest_version(), topic).get("offsets", {}).get(writer)
    return None if found is None else {int(partition): offset for partition, offset in found.items()}


def finished_batches(checkpoint: str) -> int:
    """Returns how many micro-batches of a stream Spark counts as done: it never repeats those."""
    names = (file.path.rpartition("/")[2] for file in Store(checkpoint).list("commits"))
    return max((int(name) + 1 for name in names if name.isdigit()), default=0)


async def left_behind(
    target: Target, writer: str, starts: dict[int, int], stored: int, complete: int
) -> Left:
    """Reads what an earlier run of a stream sent.

    Args:
        target: the table's log.
        writer: the stream.
        starts: see `open_offsets`.
        stored: the last epoch that the FileStore has.
        complete: the last epoch that is whole in the log.

    Raises:
        LogStoreError: if the log does not have it any more.
    """
    ends = await end_offsets(target.connection, target.topic)
    consumer = LogConsumer(target.connection, target.topic, target.table, starts, skip_foreign=True)
    async with consumer:
        records = [record async for record in consumer.until(ends)]
    by_partition: dict[int, list[Change]] = {}
    for record in records:
        _take(by_partition.setdefault(record.partition, []), record, writer)
    changes = [c for own in by_partition.values() for c in own if c.epoch > stored]
    whole = [c for c in changes if c.epoch <= complete and c.kind is not RowKind.UPDATE_BEFORE]
    marks = (r.entry for r in records if isinstance(r.entry, Mark) and r.entry.writer == writer)
    return Left(
        rows=_as_rows(target, whole),
        broken=any(change.epoch > complete for change in changes),
        settled=frozenset(mark.version for mark in marks),
    )


def _take(changes: list[Change], record: LogRecord, writer: str) -> None:
    """Adds what a record says to the changes of a stream in one partition."""
    entry = record.entry
    if entry is None or entry.writer != writer:
        return
    if isinstance(entry, Change):
        # A request of a connection that was given up may arrive after its repetition.
        if not changes or (entry.epoch, entry.seq) > (changes[-1].epoch, changes[-1].seq):
            changes.append(entry)
    elif isinstance(entry, Flip):
        changes[:] = [change for change in changes if change.epoch <= entry.last_good]


def _as_rows(target: Target, changes: Sequence[Change]) -> pa.Table:
    rows = from_json([change.value for change in changes], target.schema)
    operations = ["D" if change.kind is RowKind.DELETE else "U" for change in changes]
    return rows.append_column(OPERATION, pa.array(operations, pa.string()))
