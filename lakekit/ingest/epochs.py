"""The log's side of a stream: sends epochs, remembers those that the FileStore does not have, and takes back."""

from __future__ import annotations

import asyncio
import operator
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakekit.errors import LogStoreError
from lakekit.filestore.layout import OPERATION
from lakekit.ingest.corrections import corrections, last_changes, own_rows
from lakekit.ingest.overlay import Arrival, Held, Overlay
from lakekit.logstore import loop
from lakekit.logstore.emission import announce_with
from lakekit.logstore.positions import LogNote, Since
from lakekit.logstore.producer import CONNECT_S, LogProducer
from lakekit.logstore.records import Flip, Mark, RowKind, change_records
from lakekit.logstore.sizes import OVERHEAD_BYTES, check_texts
from lakekit.logstore.values import keys_to_json, to_json
from lakekit.storage.murmur3 import bucket_of

if TYPE_CHECKING:
    from lakekit.table.log import TableLog
    from lakekit.table.table import Table

T = TypeVar("T")
Work: TypeAlias = Callable[[], Coroutine[Any, Any, T]]

_STOP_S = 5
"""Seconds for which a stream that is to stop waits for an acknowledgement."""
_POLL_S = 0.2


@dataclass(frozen=True)
class Epoch:
    """A unit of the stream that is in the log.

    Attributes:
        number: its number.
        rows: its rows, with OPERATION where it deletes.
        ends: for each topic partition where the log ended after it.
    """

    number: int
    rows: pa.Table
    ends: Mapping[int, int]


@dataclass
class Outgoing:
    """Changes of an epoch for one topic partition, as columns; `first` is the number of the first one."""

    first: int = 0
    kinds: list[RowKind] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)

    def add(self, kind: RowKind, key: bytes, value: bytes) -> None:
        """Takes another change."""
        self.kinds.append(kind)
        self.keys.append(key)
        self.values.append(value)

    @property
    def largest(self) -> int:
        """Bytes of the largest record."""
        return OVERHEAD_BYTES + max(map(operator.add, map(len, self.keys), map(len, self.values)))


@dataclass
class StreamLog:
    """Sends the epochs of one writer."""

    table: Table
    log: TableLog
    writer: str
    patience: float
    epochs: list[Epoch] = field(default_factory=list)
    sent: int = 0
    torn: int | None = None
    stopping: threading.Event = field(default_factory=threading.Event)
    _ends: dict[int, int] = field(default_factory=dict)
    _overlay: Overlay = field(default_factory=Overlay)
    _producer: LogProducer | None = None

    @property
    def ends(self) -> Mapping[int, int]:
        """For each topic partition where the log ended after what the stream sent last."""
        if not self._ends:
            self._ends = self.log.end_offsets()
        return dict(self._ends)

    def send(self, number: int, rows: pa.Table) -> Counter[RowKind]:
        """Sends an epoch, for as long as Kafka cannot be reached again and again.

        Args:
            number: of the epoch, higher than any before.
            rows: the table's columns, and perhaps OPERATION.

        Returns:
            How many changes of each kind were sent.

        Raises:
            LogStoreError: if a record is too large, before anything was sent; or if Kafka was away for too long.
        """
        outgoing = self._changes(number, rows)
        self._check_sizes(outgoing)
        self.torn = number
        self._ends = {**self.ends, **self._deliver(number, outgoing)}
        self.torn = None
        self.epochs.append(Epoch(number, rows, dict(self._ends)))
        counts = {kind: sum(own.kinds.count(kind) for own in outgoing.values()) for kind in RowKind}
        self.sent += sum(counts.values())
        return Counter(counts)

    def reset(self) -> None:
        """Forgets what was sent: the log itself tells what the FileStore lacks."""
        self.stopping.clear()
        self.epochs, self._overlay, self._ends, self.torn = [], Overlay(), {}, None

    def settle(self, number: int) -> None:
        """Forgets the epochs up to a number, which the FileStore has now."""
        self.epochs = [epoch for epoch in self.epochs if epoch.number > number]
        self._overlay.forget(number)

    def announce(self, entry: Flip | Mark) -> None:
        """Sends a flip or a mark to every partition.

        Raises:
            LogStoreError: if Kafka was away for too long.
        """
        self._patiently(lambda: self._announced(entry), before=None)

    def flip(self, last_good: int) -> None:
        """Takes back what was sent after an epoch."""
        self.announce(Flip(self.writer, last_good))

    def mark(self, version: int, epoch: int) -> None:
        """Says that the FileStore has the epochs up to one."""
        self.announce(Mark(version, self.writer, epoch))

    def corrections(self, since: int, epoch: int) -> dict[int, Outgoing]:
        """Returns the changes that bring the log to what the files have, for keys whose last change is the stream's.

        Args:
            since: the version of the table at which the log was as the files last.
            epoch: the one that they are to be a part of.
        """
        target, stored = self.log.target, self.table.snapshot().txns
        last = loop.run(last_changes(target, (self.writer, epoch), since, stored))
        rows = own_rows(target, last)
        held = self._stored(rows, range(rows.num_rows))
        outgoing: dict[int, Outgoing] = {}
        for partition, kind, key, value in corrections(last, {k: row.value for k, row in held.items()}):
            own = outgoing.setdefault(partition, Outgoing(first=last.numbers.get(partition, 0)))
            own.add(kind, key, value)
        return outgoing

    def correct(self, epoch: int, changes: Mapping[int, Outgoing]) -> None:
        """Sends corrections as a part of an epoch.

        Raises:
            LogStoreError: if Kafka was away for too long.
        """
        # Readers know records that come twice by their numbers.
        self._ends = {**self.ends, **self._patiently(lambda: self._sent(epoch, changes), before=None)}
        self.sent += sum(len(own.kinds) for own in changes.values())

    def note(self, ends: Mapping[int, int], since: Since | None = None, closes: bool = False) -> LogNote:
        """Returns what a commit of the stream says about the log."""
        target = self.log.target
        return LogNote(target.topic, ends, target.partitions, False, self.writer, since, closes)

    def close(self) -> None:
        """Ends the connection."""
        producer, self._producer = self._producer, None
        if producer is not None:
            loop.run(producer.close())

    # What is sent

    def _changes(self, number: int, rows: pa.Table) -> dict[int, Outgoing]:
        target = self.log.target
        plain = rows.select(target.schema.names)
        check_texts(plain)
        keys, values = keys_to_json(plain, target.key), to_json(plain)
        partitions = self._partitions(plain)
        arrival = Arrival(keys, values, _deletes(rows), self._sequences(plain))
        stored = self._stored(plain, self._overlay.unknown(keys))
        outgoing = defaultdict[int, Outgoing](Outgoing)
        for position, kind, value in self._overlay.apply(arrival, stored, number):
            outgoing[partitions[position]].add(kind, keys[position], value)
        return outgoing

    def _partitions(self, rows: pa.Table) -> list[int]:
        target = self.log.target
        columns = [rows.column(c) for c in target.key]
        found: list[int] = (bucket_of(columns, self.table.buckets or 1) % target.partitions).tolist()
        return found

    def _sequences(self, rows: pa.Table) -> Sequence[Any]:
        name = self.table.snapshot().sequence_field
        return () if name is None else rows.column(name).to_pylist()

    def _stored(self, rows: pa.Table, wanted: Sequence[int]) -> dict[bytes, Held]:
        """Returns the rows that the FileStore has of some keys."""
        if not wanted:
            return {}
        key = list(self.log.target.key)
        found = self.table.get_many(rows.take(pa.array(wanted)).select(key))
        sequences = self._sequences(found) or [None] * found.num_rows
        held = zip(keys_to_json(found, key), to_json(found), sequences, strict=True)
        return {each: Held(value, sequence) for each, value, sequence in held}

    def _check_sizes(self, outgoing: Mapping[int, Outgoing]) -> None:
        largest = max((own.largest for own in outgoing.values()), default=0)
        limit = self.table.lake.log_clients.message_limit(self.log.target)
        if largest > limit:
            raise LogStoreError.too_large(self.log.target.topic, largest, limit)

    # How it is sent

    def _deliver(self, number: int, outgoing: Mapping[int, Outgoing]) -> dict[int, int]:
        return self._patiently(lambda: self._sent(number, outgoing), before=Flip(self.writer, number - 1))

    async def _sent(self, number: int, outgoing: Mapping[int, Outgoing]) -> dict[int, int]:
        """Sends changes, and returns where the log ends after them in each topic partition."""
        table, producer, sends = self.log.target.table, await self._connected(), []
        for partition, own in outgoing.items():
            changes = zip(own.kinds, own.keys, own.values, strict=True)
            records = change_records(table, self.writer, number, changes, own.first)
            sends.append(producer.send(partition, records))
        ends = await asyncio.gather(*sends)
        return {p: end for p, end in zip(outgoing, ends, strict=True) if end is not None}

    def _patiently(self, work: Work[T], before: Flip | Mark | None) -> T:
        """Does a piece of work, again and again if Kafka fails.

        Args:
            work: makes the coroutine.
            before: what to send before doing it again, as some of it may have arrived.

        Returns:
            What the coroutine returned at last.
        """
        deadline, pause, failed = time.monotonic() + self.patience, 0.1, False
        while True:
            try:
                if failed and before is not None:
                    loop.run(self._within(lambda: self._announced(before), deadline))
                done = loop.run(self._within(work, deadline))
            except LogStoreError:
                self._drop_connection()
                failed = True
                if time.monotonic() + pause > deadline or self.stopping.wait(pause):
                    raise
                pause = min(pause * 2, 5.0)
            else:
                return done

    async def _within(self, work: Work[T], deadline: float) -> T:
        """Does a piece of work, if it does not take too long; when the stream is to stop, that is soon."""
        deadline, is_last = max(deadline, time.monotonic() + CONNECT_S), False
        task = asyncio.ensure_future(work())
        while not task.done():
            await asyncio.wait([task], timeout=_POLL_S)
            if self.stopping.is_set() and not is_last:
                deadline, is_last = min(deadline, time.monotonic() + _STOP_S), True
            if time.monotonic() > deadline and not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=1)
                raise LogStoreError.unreachable(self.log.target.connection.servers, "no answer in time")
        return task.result()

    async def _announced(self, entry: Flip | Mark) -> None:
        await announce_with(await self._connected(), self.log.target, entry)

    async def _connected(self) -> LogProducer:
        if self._producer is None:
            target = self.log.target
            producer = LogProducer(target.connection, target.topic)
            self._producer = await producer.__aenter__()
        return self._producer

    def _drop_connection(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            loop.run(producer.abandon())


def _deletes(rows: pa.Table) -> list[bool]:
    if OPERATION not in rows.schema.names:
        return [False] * rows.num_rows
    deletes: list[bool] = pc.equal(rows.column(OPERATION), "D").to_pylist()
    return deletes
