"""What a stream says in the log after others wrote its keys: the difference between the log and the files.

If somebody else commits changes of keys that a stream has sent and not committed yet, the two are in another order in
the log than in the files. So the stream takes its own changes back with a flip, and sends what its commits really did.
That says nothing of rows which these did not change, such as a row that both of them deleted, and that the flip put
back. So each key whose last change is the stream's own is brought to what the files have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakekit.logstore.positions import resumption
from lakekit.logstore.reading import OFFSETS, LogReader, Semantics, Startup, rows_of
from lakekit.logstore.records import TABLE, Flip, RowKind
from lakekit.logstore.topic import end_offsets, start_offsets
from lakekit.logstore.values import from_json, keys_to_json

if TYPE_CHECKING:
    import pyarrow as pa

    from lakekit.logstore.emission import Target
    from lakekit.logstore.retract import LogChange


@dataclass
class LastChanges:
    """The last change of each key in the log, as readers with the guarantee have it.

    Attributes:
        own: of the keys whose last change is the stream's own.
        pending: the last one by other streams that the files do not have yet.
        numbers: for each topic partition the number that comes next in an epoch of the stream.
    """

    own: dict[bytes, LogChange] = field(default_factory=dict)
    pending: dict[bytes, LogChange] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)

    def add(
        self,
        own: tuple[str, int],
        keys: Iterable[bytes],
        changes: Iterable[LogChange],
        stored: Mapping[str, int],
    ) -> None:
        """Takes in what comes next in the log.

        Args:
            own: the stream, and the epoch whose numbers are wanted.
            keys: of the changes.
            changes: what comes next.
            stored: for each writer the last epoch that the files have.
        """
        writer, epoch = own
        for key, found in zip(keys, changes, strict=True):
            change, record = found
            if change.writer == writer:
                self.own[key] = found
                if change.epoch == epoch and not isinstance(record.entry, Flip):
                    self.numbers[record.partition] = change.seq + 1
                continue
            self.own.pop(key, None)
            if change.writer == TABLE or change.epoch <= stored.get(change.writer, -1):
                self.pending.pop(key, None)
            else:
                self.pending[key] = found


async def last_changes(
    target: Target, own: tuple[str, int], since: int, stored: Mapping[str, int]
) -> LastChanges:
    """Reads what the log has after a version of the table.

    Args:
        target: the table's log.
        own: the stream, and the epoch whose numbers are wanted.
        since: the version; what retention has removed since then, no reader will get.
        stored: for each writer the last epoch that the files have.

    Raises:
        LogStoreError: if the Kafka cannot be reached.
    """
    begin = resumption(target.root, target.topic, since)
    earliest = await start_offsets(target.connection, target.topic)
    try:
        starts = begin.starts(earliest)
    except ValueError:
        starts = earliest
    ends = await end_offsets(target.connection, target.topic)
    found = LastChanges()
    async with LogReader(
        target, Startup(OFFSETS, 0, starts, begin.done), Semantics(skip_foreign=True)
    ) as reader:
        while any(reader.positions.get(p, end) < end for p, end in ends.items()):
            changes = await reader.poll()
            keys = keys_to_json(rows_of(target, changes), target.key) if changes else []
            found.add(own, keys, changes, stored)
    return found


def own_rows(target: Target, last: LastChanges) -> pa.Table:
    """Returns a row for each key whose last change is the stream's own, in the order of `last.own`."""
    return from_json([found.change.value for found in last.own.values()], target.schema)


def corrections(
    last: LastChanges, stored: Mapping[bytes, bytes | None]
) -> Iterator[tuple[int, RowKind, bytes, bytes]]:
    """Yields topic partition, kind, key and value of each change that is missing: pure logic.

    Args:
        last: what the log says.
        stored: the rows that the files have of the keys in `last.own`, as JSON.
    """
    for key, (change, record) in last.own.items():
        there = change.value if change.kind.adds else None
        wanted = stored.get(key)
        if key in last.pending:
            other = last.pending[key].change
            wanted = None if other.kind is RowKind.DELETE else other.value
        if there == wanted:
            continue
        if there is not None:
            kind = RowKind.DELETE if wanted is None else RowKind.UPDATE_BEFORE
            yield record.partition, kind, key, there
        if wanted is not None:
            kind = RowKind.INSERT if there is None else RowKind.UPDATE_AFTER
            yield record.partition, kind, key, wanted
