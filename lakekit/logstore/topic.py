"""Asks a Kafka about a topic, and creates it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from lakekit.errors import LogStoreError
from lakekit.logstore.connection import Connection

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE_S = 10
"""Seconds within which each of these questions is answered, or fails."""
# A server of several that is silent leaves time for the others.
_REQUEST_MS = 4_000
_POLL_S = 0.05
_LIMIT = "max.message.bytes"


def _patient(
    question: Callable[Concatenate[Connection, str, P], Awaitable[T]],
) -> Callable[Concatenate[Connection, str, P], Coroutine[Any, Any, T]]:
    """Gives a question its time, and makes its failures ours."""

    @functools.wraps(question)
    async def asked(connection: Connection, topic: str, /, *args: P.args, **options: P.kwargs) -> T:
        with connection.failures(topic):
            return await asyncio.wait_for(question(connection, topic, *args, **options), PATIENCE_S)

    return asked


@_patient
async def ensure_topic(
    connection: Connection, topic: str, partitions: int, retention_ms: int | None = None
) -> int:
    """Creates a topic if it does not exist, with as many replicas as the Kafka gives by default.

    Args:
        connection: the Kafka.
        topic: the name.
        partitions: their number in a new topic.
        retention_ms: how long a new topic keeps records; -1 for ever, None as the Kafka does by default.

    Returns:
        The number of partitions; a topic that exists is left as it is.

    Raises:
        LogStoreError: if the Kafka does not answer, or refuses.
    """
    from aiokafka.admin import NewTopic
    from aiokafka.errors import TopicAlreadyExistsError

    async with _admin(connection) as admin:
        if known := await _partitions(admin, topic):
            return len(known)
        # An empty assignment is how NewTopic lets the broker choose the number of replicas.
        configs = {} if retention_ms is None else {"retention.ms": str(retention_ms)}
        new = NewTopic(topic, partitions, -1, replica_assignments={}, topic_configs=configs)
        with contextlib.suppress(TopicAlreadyExistsError):  # somebody else was faster
            for _, code, *message in (await admin.create_topics([new])).topic_errors:
                _check(code, *message)
        return await _visible(admin, topic)


@_patient
async def message_limit(connection: Connection, topic: str) -> int:
    """Returns how many bytes a batch of records may have.

    Raises:
        LogStoreError: if the Kafka does not answer or refuses, or there is no such topic.
    """
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
    from aiokafka.errors import UnknownTopicOrPartitionError

    async with _admin(connection) as admin:
        wanted = ConfigResource(ConfigResourceType.TOPIC, topic, {_LIMIT: None})
        (response,) = await admin.describe_configs([wanted])
    ((code, message, _, _, entries),) = response.resources
    try:
        _check(code, message)
    except UnknownTopicOrPartitionError:
        raise _missing(topic) from None
    return next(int(value) for name, value, *_ in entries if name == _LIMIT)


@_patient
async def start_offsets(connection: Connection, topic: str) -> dict[int, int]:
    """Returns for each partition the offset of the first record that is still there.

    Raises:
        LogStoreError: if the Kafka does not answer or refuses, or there is no such topic.
    """
    async with _consumer(connection, topic) as (consumer, places):
        return _by_partition(await consumer.beginning_offsets(places))


@_patient
async def end_offsets(connection: Connection, topic: str) -> dict[int, int]:
    """Returns for each partition the offset after the last record.

    Raises:
        LogStoreError: if the Kafka does not answer or refuses, or there is no such topic.
    """
    async with _consumer(connection, topic) as (consumer, places):
        return _by_partition(await consumer.end_offsets(places))


@_patient
async def offsets_at(connection: Connection, topic: str, timestamp_ms: int) -> dict[int, int]:
    """Returns for each partition the offset of the first record of a time or later, or else the end.

    Args:
        connection: the Kafka.
        topic: the name.
        timestamp_ms: ms since 1970 UTC.

    Raises:
        LogStoreError: if the Kafka does not answer or refuses, or there is no such topic.
    """
    async with _consumer(connection, topic) as (consumer, places):
        # The ends come first: a record that arrives between the two requests is not passed over.
        ends = await consumer.end_offsets(places)
        found = await consumer.offsets_for_times(dict.fromkeys(places, max(timestamp_ms, 0)))
        return _by_partition({p: ends[p] if found[p] is None else found[p].offset for p in places})


class TopicEnd:
    """Asks again and again where a topic ends, over connections that stay open: making them takes far longer.

    Attributes:
        connection: the Kafka.
        topic: the name.
    """

    def __init__(self, connection: Connection, topic: str) -> None:
        """Connects to nothing yet."""
        self.connection = connection
        self.topic = topic
        self._stack = contextlib.AsyncExitStack()
        self._clients: tuple[Any, Any] | None = None

    async def offsets(self) -> dict[int, int]:
        """Returns for each partition, also for one that is new, the offset after the last record.

        Raises:
            LogStoreError: as `end_offsets`; the next call connects anew.
        """
        try:
            with self.connection.failures(self.topic):
                return await asyncio.wait_for(self._ask(), PATIENCE_S)
        except BaseException:
            await self.close()
            raise

    async def _ask(self) -> dict[int, int]:
        if self._clients is None:
            admin = await self._stack.enter_async_context(_admin(self.connection))
            self._clients = admin, await self._stack.enter_async_context(_started_consumer(self.connection))
        admin, consumer = self._clients
        return _by_partition(await consumer.end_offsets(await _places(admin, self.topic)))

    async def close(self) -> None:
        """Ends the connections."""
        self._clients = None
        stack, self._stack = self._stack, contextlib.AsyncExitStack()
        with contextlib.suppress(Exception):  # of a Kafka that is gone
            await stack.aclose()


@contextlib.asynccontextmanager
async def _admin(connection: Connection) -> AsyncIterator[Any]:
    from aiokafka.admin import AIOKafkaAdminClient

    admin = AIOKafkaAdminClient(**connection.for_aiokafka(), request_timeout_ms=_REQUEST_MS)
    try:
        await admin.start()
        yield admin
    finally:
        await admin.close()


@contextlib.asynccontextmanager
async def _consumer(connection: Connection, topic: str) -> AsyncIterator[tuple[Any, list[Any]]]:
    """A consumer and the topic's partitions."""
    async with _admin(connection) as admin:
        places = await _places(admin, topic)
    async with _started_consumer(connection) as consumer:
        yield consumer, places


@contextlib.asynccontextmanager
async def _started_consumer(connection: Connection) -> AsyncIterator[Any]:
    from aiokafka import AIOKafkaConsumer

    consumer = AIOKafkaConsumer(
        **connection.for_aiokafka(), request_timeout_ms=_REQUEST_MS, enable_auto_commit=False
    )
    try:
        await consumer.start()
        yield consumer
    finally:
        await consumer.stop()


async def _places(admin: Any, topic: str) -> list[Any]:
    """The topic's partitions, as consumers name them."""
    from aiokafka import TopicPartition

    known = await _partitions(admin, topic)
    if not known:
        raise _missing(topic)
    return [TopicPartition(topic, number) for number in known]


async def _partitions(admin: Any, topic: str) -> list[int]:
    """The numbers of a topic's partitions; none if the user sees no such topic.

    It asks for all topics: a Kafka may create a topic that is asked for by name.
    """
    for found in await admin.describe_topics():
        if found["topic"] == topic:
            return sorted(partition["partition"] for partition in found["partitions"])
    return []


async def _visible(admin: Any, topic: str) -> int:
    """Waits until the brokers know a topic that was created; returns the number of partitions."""
    from aiokafka.errors import LeaderNotAvailableError, UnknownTopicOrPartitionError

    while True:
        with contextlib.suppress(UnknownTopicOrPartitionError, LeaderNotAvailableError):
            (found,) = await admin.describe_topics([topic])
            _check(found["error_code"])
            return len(found["partitions"])
        await asyncio.sleep(_POLL_S)


def _check(code: int, message: str | None = None) -> None:
    """Raises the error that a code of Kafka's protocol stands for, if any."""
    from aiokafka.errors import for_code

    if code:
        raise for_code(code)(*filter(None, [message]))


def _by_partition(offsets: Mapping[Any, int]) -> dict[int, int]:
    return {place.partition: offset for place, offset in sorted(offsets.items())}


def _missing(topic: str) -> LogStoreError:
    return LogStoreError(
        f"Topic '{topic}' does not exist.", "Somebody may have deleted it; a write to the table creates it."
    )
