"""Reads a topic's records from offsets on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from lakekit.errors import LogStoreError
from lakekit.logstore.connection import Connection
from lakekit.logstore.producer import CONNECT_S
from lakekit.logstore.records import Entry, LogRecord, Parser

if TYPE_CHECKING:
    from typing_extensions import Self


class LogConsumer:
    """A consumer of some partitions of a topic, without a consumer group; an async context manager."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        table: str,
        starts: Mapping[int, int],
        *,
        skip_foreign: bool = False,
    ) -> None:
        """Connects to nothing yet.

        Args:
            connection: the Kafka.
            topic: its topic.
            table: id of the table; records about others are skipped.
            starts: for each partition the first offset to read.
            skip_foreign: skip records that are not of the log instead of raising.
        """
        from aiokafka import AIOKafkaConsumer

        self._topic = topic
        self._parser = Parser(table)
        self._connection = connection
        self._starts = dict(starts)
        self._skip = skip_foreign
        self._consumer: Any = AIOKafkaConsumer(
            **connection.for_aiokafka(),
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=100,
            max_partition_fetch_bytes=4 << 20,
            max_poll_records=250,  # of more objects at once, Python's collector would take a third of the time
        )

    async def __aenter__(self) -> Self:
        from aiokafka import TopicPartition

        try:
            with self._connection.failures(self._topic):
                await asyncio.wait_for(self._consumer.start(), CONNECT_S)
            places = {p: TopicPartition(self._topic, p) for p in self._starts}
            self._consumer.assign(list(places.values()))
            for partition, place in places.items():
                self._consumer.seek(place, self._starts[partition])
        except BaseException:
            await self._consumer.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._consumer.stop()

    async def poll(self, timeout_ms: int = 200) -> dict[int, list[LogRecord]]:
        """Returns the records that have come, by topic partition and in its order; perhaps none.

        Raises:
            LogStoreError: if the log no longer has the offset that comes next, or has a record that is not of the log.
        """
        from aiokafka.errors import OffsetOutOfRangeError

        try:
            with self._connection.failures(self._topic):
                fetched = await self._consumer.getmany(timeout_ms=timeout_ms)
        except LogStoreError as error:
            cause = error.__cause__
            if isinstance(cause, OffsetOutOfRangeError):
                lost = {place.partition: offset for place, offset in cause.args[0].items()}
                raise LogStoreError.truncated(self._topic, lost) from None
            raise
        return {place.partition: self._parsed(place.partition, found) for place, found in fetched.items()}

    async def until(self, ends: Mapping[int, int]) -> AsyncIterator[LogRecord]:
        """Yields the records before the end offsets; each partition's in order."""
        open_ends = {p: end for p, end in ends.items() if end > self._starts.get(p, end)}
        while open_ends:
            for partition, records in (await self.poll()).items():
                end = open_ends.get(partition, 0)
                for record in records:
                    if record.offset < end:
                        yield record
                if records and records[-1].offset + 1 >= end:
                    open_ends.pop(partition, None)

    def _parsed(self, partition: int, records: Iterable[Any]) -> list[LogRecord]:
        parsed = []
        for record in records:
            try:
                entry = self._parser.parse(record.headers, record.value)
            except ValueError as error:
                entry = self._foreign(partition, record.offset, error)
            parsed.append(LogRecord(partition, record.offset, record.timestamp, entry))
        return parsed

    def _foreign(self, partition: int, offset: int, error: ValueError) -> Entry | None:
        if self._skip:
            return None
        raise LogStoreError.foreign(self._topic, partition, offset, str(error)) from None
