"""Puts the changes of a commit into the log.

What is sent is a function of the commit alone, numbered within each topic partition. So it does not matter who sends
it, or how often: the writer after its commit, or whoever finds later that this writer did not get that far. Readers
pass every change on once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakekit.logstore import loop
from lakekit.logstore.changes import FileChange, RowChanges, row_changes
from lakekit.logstore.connection import Connection
from lakekit.logstore.producer import LogProducer
from lakekit.logstore.records import Flip, Mark, Record, RowKind, change_records, headers_of
from lakekit.logstore.values import keys_to_json, to_json
from lakekit.storage.store import Store

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Target:
    """A table's log: where it is, and what its rows look like.

    Attributes:
        root: path or URI of the table.
        connection: the Kafka.
        topic: its topic.
        table: the table's id.
        partitions: how many of the topic's are used.
        schema: the table's columns.
        key: its primary key.
    """

    root: str
    connection: Connection
    topic: str
    table: str
    partitions: int
    schema: pa.Schema
    key: tuple[str, ...]


@dataclass(frozen=True)
class Emission:
    """Changes for one topic partition.

    Attributes:
        partition: of the topic.
        writer: of the changes.
        epoch: of the changes.
        changes: the files that the rows come from.
    """

    partition: int
    writer: str
    epoch: int
    changes: tuple[FileChange, ...]


def emissions(target: Target, changes: Sequence[FileChange], writer: str, epoch: int) -> list[Emission]:
    """Distributes changes over the topic's partitions."""
    by_partition: dict[int, list[FileChange]] = {}
    for change in changes:
        by_partition.setdefault(change.topic_partition(target.partitions), []).append(change)
    return [Emission(p, writer, epoch, tuple(own)) for p, own in sorted(by_partition.items())]


def emit(target: Target, emission: Emission) -> int:
    """Sends the changes of one topic partition; returns how many."""
    return loop.run(_emit(target, [emission]))


def emit_all(target: Target, work: Sequence[Emission]) -> int:
    """Sends the changes of several topic partitions over one connection; returns how many."""
    return loop.run(_emit(target, work))


def announce(target: Target, entry: Flip | Mark) -> None:
    """Sends a flip or a mark to every partition."""
    loop.run(_announce(target, entry))


async def announce_with(producer: LogProducer, target: Target, entry: Flip | Mark) -> None:
    """Sends a flip or a mark to every partition."""
    records = [Record(headers_of(entry, target.table))]
    await asyncio.gather(*(producer.send(p, records) for p in range(target.partitions)))


async def _announce(target: Target, entry: Flip | Mark) -> None:
    async with LogProducer(target.connection, target.topic) as producer:
        await announce_with(producer, target, entry)


async def _emit(target: Target, work: Sequence[Emission]) -> int:
    sent = 0
    async with LogProducer(target.connection, target.topic) as producer:
        for emission in work:
            seq = 0
            for part in row_changes(Store(target.root), emission.changes, target.schema, target.key):
                changes = _encoded(part, target.key)
                records = change_records(target.table, emission.writer, emission.epoch, changes, seq)
                await producer.send(emission.partition, records)
                seq += len(part.kinds)
            sent += seq
    return sent


def _encoded(part: RowChanges, key: Sequence[str]) -> Iterator[tuple[RowKind, bytes | None, bytes]]:
    """Returns kind, key and value of each change."""
    keys: list[bytes] | list[None] = keys_to_json(part.rows, key) if key else [None] * part.rows.num_rows
    return zip(part.kinds, keys, to_json(part.rows), strict=True)
