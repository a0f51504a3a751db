"""Reads a piece of a log as a reader that began earlier would: for Spark, whose tasks remember nothing.

What such a reader passes on for a record depends on records before it in two cases only: a flip takes back what came
before, and a change that was derived from a commit may be there for the second time. Then the task reads backwards
until it knows enough, or has come to where the reader began. Amoro's reader does the same for flips.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakekit.logstore.consumer import LogConsumer
from lakekit.logstore.emission import Target
from lakekit.logstore.reading import Semantics, refuse_others
from lakekit.logstore.records import TABLE, Change, Flip, LogRecord, Mark
from lakekit.logstore.retract import LogChange, PartitionReader

_WINDOW = 1_000
"""Records read backwards at first; doubled until it is enough."""


@dataclass(frozen=True)
class Piece:
    """A piece of one topic partition.

    Attributes:
        partition: of the topic.
        start: first offset.
        end: offset after the last.
        origin: where the reader began.
        done: for each writer the last epoch that the reader has from elsewhere.
    """

    partition: int
    start: int
    end: int
    origin: int
    done: Mapping[str, int] = field(default_factory=dict)


class PieceReader:
    """Reads pieces over one connection that stays open: a stream's next pieces begin where the last ones ended."""

    def __init__(self, target: Target, semantics: Semantics) -> None:
        """Connects to nothing yet."""
        self._target = target
        self._semantics = semantics
        self._consumer: LogConsumer | None = None
        self._next: dict[int, int] = {}
        self._held: dict[int, deque[LogRecord]] = {}

    async def read(self, pieces: Sequence[Piece], most_bytes: float = math.inf) -> list[LogChange] | None:
        """Returns the changes that a reader passes on for pieces of different topic partitions, or None.

        Args:
            pieces: what is read.
            most_bytes: None is returned if the values have more bytes.

        Raises:
            LogStoreError: if the Kafka cannot be reached, the log does not have a piece any more, or what came before
                and is needed, or has a record that is not of the log.
        """
        try:
            if not await self._fetch(pieces, most_bytes):
                await self.close()
                return None
        except BaseException:
            await self.close()
            raise
        passed: list[LogChange] = []
        for piece in pieces:
            held, records = self._held[piece.partition], list[LogRecord]()
            while held and held[0].offset < piece.end:
                records.append(held.popleft())
            passed += await _passed_on(self._target, piece, records, self._semantics)
        return passed

    async def close(self) -> None:
        """Ends the connection."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.__aexit__(None, None, None)

    async def _fetch(self, pieces: Sequence[Piece], most_bytes: float) -> bool:
        """Gets the records of the pieces, and perhaps some more, into `_held`; False if they are too large."""
        known = {p: held[0].offset if held else self._next[p] for p, held in self._held.items()}
        starts = {**known, **{piece.partition: piece.start for piece in pieces}}
        if self._consumer is None or starts != known:
            await self.close()
            self._next, self._held = dict(starts), {p: deque() for p in starts}
            consumer = _consumer(self._target, starts, self._semantics)
            self._consumer = await consumer.__aenter__()
        size = 0
        while any(self._next[piece.partition] < piece.end for piece in pieces):
            for partition, records in (await self._consumer.poll()).items():
                self._held[partition].extend(records)
                self._next[partition] = records[-1].offset + 1
                size += sum(len(r.entry.value) for r in records if isinstance(r.entry, Change))
            if size > most_bytes:
                return False
        return True


async def read_piece(target: Target, piece: Piece, semantics: Semantics) -> list[LogChange]:
    """Returns the changes that a reader passes on for a piece.

    Raises:
        LogStoreError: see `PieceReader.read`.
    """
    records = await _records(target, piece.partition, piece.start, piece.end, semantics)
    return await _passed_on(target, piece, records, semantics)


async def _passed_on(
    target: Target, piece: Piece, records: Sequence[LogRecord], semantics: Semantics
) -> list[LogChange]:
    reader = PartitionReader(semantics.guarantee, piece.done)
    reader.feed(await _before(target, piece, records, semantics))
    passed = reader.feed(records)
    if semantics.append_only:
        refuse_others(target, passed)
    return passed


def _consumer(target: Target, starts: Mapping[int, int], semantics: Semantics) -> LogConsumer:
    foreign = semantics.skip_foreign
    return LogConsumer(target.connection, target.topic, target.table, starts, skip_foreign=foreign)


async def _records(
    target: Target, partition: int, start: int, end: int, semantics: Semantics
) -> list[LogRecord]:
    if start >= end:
        return []
    async with _consumer(target, {partition: start}, semantics) as consumer:
        return [record async for record in consumer.until({partition: end})]


async def _before(
    target: Target, piece: Piece, records: Sequence[LogRecord], semantics: Semantics
) -> list[LogRecord]:
    """Returns the records before a piece that decide what is passed on for it."""
    wanted: dict[str, int] = {}  # a writer, and an epoch back to which its records must be known
    for record in records:
        entry = record.entry
        if isinstance(entry, Flip) and semantics.guarantee:
            wanted[entry.writer] = min(wanted.get(entry.writer, entry.last_good), entry.last_good)
        elif isinstance(entry, Change) and entry.writer == TABLE:
            # The commit's changes may have been sent before those that are here.
            wanted.setdefault(TABLE, entry.epoch - 1)
    window, found, first = _WINDOW, list[LogRecord](), piece.start
    while wanted and first > piece.origin and not _known(found, wanted):
        if list(wanted) == [TABLE]:
            first = await _emission_start(target, piece, [*found, *records], semantics) or first
        start = max(piece.origin, first - window)
        found = [*await _records(target, piece.partition, start, first, semantics), *found]
        first, window = start, window * 2
    return found


async def _emission_start(
    target: Target, piece: Piece, records: Sequence[LogRecord], semantics: Semantics
) -> int | None:
    """Returns where the emission began that records are in the middle of, if nothing else was sent meanwhile.

    An emission of a commit numbers its changes from 0 and without gaps. So what is between its first one and those that
    are known says nothing new, and a large commit need not be read again for each piece of it.
    """
    pairs = ((record.offset, record.entry) for record in records)
    offset, first = next((o, e) for o, e in pairs if isinstance(e, Change) and e.writer == TABLE)
    begin = offset - first.seq
    if not piece.origin <= begin < offset:
        return None
    found = await _records(target, piece.partition, begin, begin + 1, semantics)
    entries = [record.entry for record in found]
    is_it = any(isinstance(e, Change) and e[:3] == (TABLE, first.epoch, 0) for e in entries)
    return begin if is_it else None


def _known(records: Sequence[LogRecord], wanted: Mapping[str, int]) -> bool:
    """Tells whether records go back far enough: each writer's oldest is not after the epoch wanted.

    A stream's mark tells nothing of that: it comes when the files have an epoch, and later ones may be before it.
    """
    oldest: dict[str, int] = {}
    for record in records:
        entry = record.entry
        if isinstance(entry, Change) or (isinstance(entry, Mark) and entry.writer == TABLE):
            oldest.setdefault(entry.writer, entry.epoch)
    return all(writer in oldest and oldest[writer] <= epoch for writer, epoch in wanted.items())
