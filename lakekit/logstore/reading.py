"""Reads a log: from where, and what the records mean to a reader."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

import pyarrow as pa

from lakekit.errors import LogStoreError
from lakekit.logstore.consumer import LogConsumer
from lakekit.logstore.emission import Target
from lakekit.logstore.records import TABLE, Mark, RowKind
from lakekit.logstore.retract import LogChange, PartitionReader
from lakekit.logstore.topic import end_offsets, offsets_at, start_offsets
from lakekit.logstore.values import from_json

if TYPE_CHECKING:
    from typing_extensions import Self

KIND, PARTITION, OFFSET, TIME, WRITER, EPOCH = (
    "_change_kind", "_log_partition", "_log_offset", "_log_timestamp", "_log_writer", "_log_epoch",
)  # fmt: skip
LOG_FIELDS = (
    pa.field(KIND, pa.string()),
    pa.field(PARTITION, pa.int32()),
    pa.field(OFFSET, pa.int64()),
    pa.field(TIME, pa.timestamp("us", "UTC")),
    pa.field(WRITER, pa.string()),
    pa.field(EPOCH, pa.int64()),
)
"""Columns of changes besides the table's own."""

EARLIEST, LATEST, TIMESTAMP, OFFSETS = "earliest", "latest", "timestamp", "specific-offsets"


@dataclass(frozen=True)
class Startup:
    """Where a reader starts.

    Attributes:
        mode: `EARLIEST`, `LATEST`, `TIMESTAMP` or `OFFSETS`.
        millis: the time in ms since 1970, for `TIMESTAMP`.
        offsets: for each partition the first offset, for `OFFSETS`; others start at the earliest.
        done: for each writer the last epoch that the reader has from the FileStore.
    """

    mode: str = LATEST
    millis: int = 0
    offsets: Mapping[int, int] = field(default_factory=dict)
    done: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Semantics:
    """What a reader makes of records.

    Attributes:
        guarantee: take back what a failed writer sent in vain.
        append_only: pass on +I alone; refuse others.
        skip_foreign: skip records that are not of the log.
    """

    guarantee: bool = True
    append_only: bool = False
    skip_foreign: bool = False


async def starts(target: Target, startup: Startup) -> dict[int, int]:
    """Returns for each topic partition the offset at which a reader starts.

    Raises:
        LogStoreError: if the Kafka cannot be reached, or the log does not have the offsets any more.
    """
    place = target.connection, target.topic
    if startup.mode == LATEST:
        return await end_offsets(*place)
    if startup.mode == TIMESTAMP:
        return await offsets_at(*place, startup.millis)
    earliest = await start_offsets(*place)
    if startup.mode == EARLIEST:
        return earliest
    gone = {p: o for p, o in startup.offsets.items() if o < earliest.get(p, 0)}
    if gone:
        raise LogStoreError.truncated(target.topic, gone)
    return {**earliest, **startup.offsets}


class LogReader:
    """Reads changes from a log as they come; an async context manager."""

    def __init__(self, target: Target, startup: Startup, semantics: Semantics) -> None:
        """Connects to nothing yet."""
        self._target = target
        self._startup = startup
        self._semantics = semantics
        self._consumer: LogConsumer | None = None
        self.partitions: dict[int, PartitionReader] = {}
        self.positions: dict[int, int] = {}

    async def __aenter__(self) -> Self:
        self.positions = await starts(self._target, self._startup)
        for partition in self.positions:
            self.partitions[partition] = PartitionReader(self._semantics.guarantee, self._startup.done)
        consumer = LogConsumer(
            self._target.connection,
            self._target.topic,
            self._target.table,
            self.positions,
            skip_foreign=self._semantics.skip_foreign,
        )
        self._consumer = await consumer.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._consumer is not None:
            await self._consumer.__aexit__(kind, error, trace)
            self._consumer = None

    async def poll(self, timeout_ms: int = 200) -> list[LogChange]:
        """Returns changes that have come, perhaps none."""
        if self._consumer is None:
            raise LogStoreError("This reader of the log is closed.", "Open another one.")
        passed: list[LogChange] = []
        for partition, records in (await self._consumer.poll(timeout_ms)).items():
            self.positions[partition] = records[-1].offset + 1
            passed += self.partitions[partition].feed(records)
        if self._semantics.append_only:
            refuse_others(self._target, passed)
        return passed

    async def until(self, ends: Mapping[int, int]) -> AsyncIterator[LogChange]:
        """Yields the changes before the end offsets."""
        while any(self.positions.get(p, end) < end for p, end in ends.items()):
            for found in await self.poll():
                if found.record.offset < ends.get(found.record.partition, 0):
                    yield found


def refuse_others(target: Target, changes: Sequence[LogChange]) -> None:
    """Refuses changes other than +I.

    Raises:
        LogStoreError: naming the first one.
    """
    other = next((c.record for c in changes if c.change.kind is not RowKind.INSERT), None)
    if other is not None:
        raise LogStoreError(
            f"Record {other.offset} in partition {other.partition} of topic '{target.topic}' is no +I, and this reader"
            " takes nothing else.",
            "Read with 'log.consumer.changelog.modes' = 'all-kinds'.",
        )


async def read(
    target: Target, startup: Startup, semantics: Semantics, ends: Mapping[int, int] | None = None
) -> list[LogChange]:
    """Returns the changes from a start up to end offsets, those of now by default."""
    limits = await end_offsets(target.connection, target.topic) if ends is None else ends
    async with LogReader(target, startup, semantics) as reader:
        return [found async for found in reader.until(limits)]


async def marked_until(target: Target) -> int:
    """Returns the version up to which the log says itself that it is complete, or -1.

    Raises:
        LogStoreError: if the topic has records that are not of a log: it belongs to somebody else.
    """
    first, ends = (
        await start_offsets(target.connection, target.topic),
        await end_offsets(target.connection, target.topic),
    )
    found = dict.fromkeys(range(target.partitions), -1)
    consumer = LogConsumer(target.connection, target.topic, target.table, first)
    async with consumer:
        async for record in consumer.until(ends):
            if isinstance(record.entry, Mark) and record.entry.writer == TABLE:
                found[record.partition] = max(found[record.partition], record.entry.version)
    return min(found.values())


def rows_of(target: Target, changes: Sequence[LogChange]) -> pa.Table:
    """Returns the rows that changes are about.

    Raises:
        LogStoreError: if a value does not fit its column; it tells the offset.
    """
    try:
        return from_json([c.change.value for c in changes], target.schema)
    except ValueError as error:
        raise _unreadable(target, changes, error) from None


def to_table(target: Target, changes: Sequence[LogChange]) -> pa.Table:
    """Returns changes as rows of the table with `LOG_FIELDS`.

    Raises:
        LogStoreError: see `rows_of`.
    """
    rows = rows_of(target, changes)
    facts = (
        [c.change.kind.sign for c in changes],
        [c.record.partition for c in changes],
        [c.record.offset for c in changes],
        [c.record.timestamp * 1000 for c in changes],
        [c.change.writer for c in changes],
        [c.change.epoch for c in changes],
    )
    for column, values in zip(LOG_FIELDS, facts, strict=True):
        rows = rows.append_column(column, pa.array(values, column.type))
    return rows


def stored_rows(target: Target, rows: pa.Table) -> pa.Table:
    """Returns rows of the FileStore as +I with `LOG_FIELDS`, which but for the kind are null."""
    rows = rows.select(target.schema.names).append_column(
        LOG_FIELDS[0], pa.repeat(pa.scalar(RowKind.INSERT.value), rows.num_rows)
    )
    for column in LOG_FIELDS[1:]:
        rows = rows.append_column(column, pa.nulls(rows.num_rows, column.type))
    return rows


def _unreadable(target: Target, changes: Sequence[LogChange], error: ValueError) -> LogStoreError:
    for each in changes:
        try:
            from_json([each.change.value], target.schema)
        except ValueError as found:
            record = each.record
            return LogStoreError.foreign(target.topic, record.partition, record.offset, str(found))
    return LogStoreError(f"Records of topic '{target.topic}' cannot be read: {error}.")


def net_effect(target: Target, changes: Sequence[LogChange]) -> tuple[pa.Table, pa.Table]:
    """Returns what changes come to: the rows that are there afterwards, and the keys of those that are not.

    A -U whose +U has not come yet leaves its row in place.
    """
    rows = to_table(target, changes)
    kinds = rows.column(KIND).to_pylist()
    keys = list(zip(*(rows.column(c).to_pylist() for c in target.key), strict=True))
    last = {key: i for i, key in enumerate(keys)}
    there = sorted(i for i in last.values() if kinds[i] != RowKind.DELETE.value)
    gone = sorted(i for i in last.values() if kinds[i] == RowKind.DELETE.value)
    stored = rows.take(pa.array(there, pa.int64())).select(target.schema.names)
    return stored, rows.take(pa.array(gone, pa.int64())).select(list(target.key))
