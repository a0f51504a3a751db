"""Sends changes, flips and marks to a topic."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Any

from lakekit.logstore.connection import Connection
from lakekit.logstore.records import Record

if TYPE_CHECKING:
    from typing_extensions import Self

CONNECT_S = 8
"""Seconds within which a Kafka must answer at all."""
DELIVERY_MS = 30_000
"""Milliseconds after which records that are not acknowledged count as failed."""
_BATCH_BYTES = 256 << 10


class LogProducer:
    """A producer for one topic; an async context manager.

    Every record is acknowledged by all in-sync replicas. Kafka's producer sequence numbers keep a request that had to
    be repeated from doubling or reordering records; no transaction holds them back from readers.
    """

    def __init__(self, connection: Connection, topic: str) -> None:
        """Connects to nothing yet."""
        from aiokafka import AIOKafkaProducer

        self._topic = topic
        self._connection = connection
        self._producer: Any = AIOKafkaProducer(
            **connection.for_aiokafka(),
            acks="all",
            enable_idempotence=True,
            request_timeout_ms=DELIVERY_MS,
            max_batch_size=_BATCH_BYTES,
            max_request_size=1 << 30,  # the broker's own limit is the one that counts
        )

    async def __aenter__(self) -> Self:
        try:
            with self._connection.failures(self._topic):
                await asyncio.wait_for(self._producer.start(), CONNECT_S)
        except BaseException:
            await self.abandon()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await (self.close() if error is None else self.abandon())

    async def close(self) -> None:
        """Ends the connections, after what is on its way has been sent."""
        await self._producer.stop()

    async def abandon(self) -> None:
        """Ends the connections of a producer that has failed; what it has left is not sent any more."""
        sender = self._producer._sender
        for end in (sender.close, self._producer.client.close, self._producer.stop):
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await asyncio.wait_for(end(), 1)
        # Else aiokafka would wait for them for ever, in a task of its own.
        batches = self._producer._message_accumulator
        for batch in [*chain.from_iterable(batches._batches.values()), *batches._pending_batches]:
            batch.future.cancel()

    async def send(self, partition: int, records: Iterable[Record]) -> int | None:
        """Sends records to a partition, in order, and waits for all acknowledgements.

        Returns:
            The offset after the last record, or None if there was none.

        Raises:
            LogStoreError: if one could not be sent; others may have been.
        """
        sent: list[asyncio.Future[Any]] = []
        with self._connection.failures(self._topic):
            try:
                builder = self._producer.create_batch()
                for record in records:
                    if not _added(builder, record):
                        sent.append(await self._submit(builder, partition))
                        builder = self._producer.create_batch()
                        _added(builder, record)
                if builder.record_count():
                    sent.append(await self._submit(builder, partition))
                # With sequence numbers, aiokafka itself would never give up.
                ends = [await asyncio.wait_for(asyncio.shield(each), DELIVERY_MS / 1000) for each in sent]
            finally:
                # A failure of one batch must not leave the others' failures unseen.
                for each in sent:
                    each.add_done_callback(_seen)
        return ends[-1].offset + builder.record_count() if ends else None

    async def _submit(self, builder: Any, partition: int) -> asyncio.Future[Any]:
        sent: asyncio.Future[Any] = await self._producer.send_batch(builder, self._topic, partition=partition)
        return sent


def _added(builder: Any, record: Record) -> bool:
    """Adds a record to a batch; False if the batch is full."""
    headers, key, value = record
    return builder.append(timestamp=None, key=key, value=value, headers=headers) is not None


def _seen(sent: asyncio.Future[Any]) -> None:
    if not sent.cancelled():
        sent.exception()
