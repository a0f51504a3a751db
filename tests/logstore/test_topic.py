"""Asking a real Kafka about topics."""

import asyncio
import socket
import subprocess
import sys
import uuid

import pytest

from lakekit.errors import LogStoreError
from lakekit.logstore.connection import Connection
from lakekit.logstore.topic import end_offsets, ensure_topic, message_limit, offsets_at, start_offsets


@pytest.fixture
def kafka(broker):
    return Connection.of(broker, {})


@pytest.fixture
def topic():
    return f"t-{uuid.uuid4().hex}"


def ask(question):
    return asyncio.run(question)


async def send(kafka, topic, *records):
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(**kafka.for_aiokafka()) as producer:
        for partition, timestamp_ms in records:
            await producer.send_and_wait(topic, b"x", partition=partition, timestamp_ms=timestamp_ms)


async def with_admin(kafka, act):
    from aiokafka.admin import AIOKafkaAdminClient

    admin = AIOKafkaAdminClient(**kafka.for_aiokafka())
    await admin.start()
    try:
        return await act(admin)
    finally:
        await admin.close()


async def retention(kafka, topic):
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

    wanted = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": None})
    (response,) = await with_admin(kafka, lambda admin: admin.describe_configs([wanted]))
    return response.resources[0][4][0][1]


def test_a_new_topic(kafka, topic):
    assert ask(ensure_topic(kafka, topic, 3, retention_ms=86_400_000)) == 3
    assert ask(retention(kafka, topic)) == "86400000"
    assert ask(end_offsets(kafka, topic)) == {0: 0, 1: 0, 2: 0}


def test_a_topic_that_exists_is_left_as_it_is(kafka, topic):
    ask(ensure_topic(kafka, topic, 2))
    before = ask(retention(kafka, topic))
    assert ask(ensure_topic(kafka, topic, 5, retention_ms=1)) == 2
    assert ask(retention(kafka, topic)) == before


def test_many_may_create_it_at_once(kafka, topic):
    async def race():
        return await asyncio.gather(*(ensure_topic(kafka, topic, 2) for _ in range(5)))

    assert ask(race()) == [2] * 5


@pytest.mark.parametrize("name", ["with space", "ü", ".."])
def test_a_name_that_no_topic_can_have(kafka, name):
    with pytest.raises(LogStoreError) as raised:
        ask(ensure_topic(kafka, name, 1))
    assert f"refused a request about topic '{name}'" in raised.value.message
    assert "opic name" in raised.value.message
    assert "Error" not in raised.value.message


def test_a_number_of_partitions_that_no_topic_can_have(kafka, topic):
    with pytest.raises(LogStoreError, match="partitions"):
        ask(ensure_topic(kafka, topic, 0))


def test_offsets(kafka, topic):
    ask(ensure_topic(kafka, topic, 2))
    ask(send(kafka, topic, (0, 1_000), (0, 2_000), (0, 3_000), (1, 2_500)))
    assert ask(start_offsets(kafka, topic)) == {0: 0, 1: 0}
    assert ask(end_offsets(kafka, topic)) == {0: 3, 1: 1}
    assert ask(offsets_at(kafka, topic, -5)) == {0: 0, 1: 0}
    assert ask(offsets_at(kafka, topic, 2_000)) == {0: 1, 1: 0}
    assert ask(offsets_at(kafka, topic, 2_501)) == {0: 2, 1: 1}
    assert ask(offsets_at(kafka, topic, 9_000)) == {0: 3, 1: 1}


def test_the_start_moves_when_old_records_go(kafka, topic):
    from aiokafka import TopicPartition
    from aiokafka.admin import RecordsToDelete

    ask(ensure_topic(kafka, topic, 2))
    ask(send(kafka, topic, (0, None), (0, None), (1, None)))
    gone = {TopicPartition(topic, 0): RecordsToDelete(before_offset=1)}
    ask(with_admin(kafka, lambda admin: admin.delete_records(gone)))
    assert ask(start_offsets(kafka, topic)) == {0: 1, 1: 0}
    assert ask(end_offsets(kafka, topic)) == {0: 2, 1: 1}


def test_the_limit_of_a_message(kafka, topic):
    from aiokafka.admin import NewTopic

    ask(ensure_topic(kafka, topic, 1))
    assert ask(message_limit(kafka, topic)) == 1_048_588  # Kafka's default
    wide = NewTopic(f"{topic}-wide", 1, 1, topic_configs={"max.message.bytes": "5000000"})
    ask(with_admin(kafka, lambda admin: admin.create_topics([wide])))
    ask(ensure_topic(kafka, wide.name, 1))
    assert ask(message_limit(kafka, wide.name)) == 5_000_000


@pytest.mark.parametrize("question", [message_limit, start_offsets, end_offsets, offsets_at])
def test_a_topic_that_does_not_exist_is_not_created_by_asking(kafka, topic, question):
    more = (0,) if question is offsets_at else ()
    with pytest.raises(LogStoreError, match=f"Topic '{topic}' does not exist"):
        ask(question(kafka, topic, *more))
    assert topic not in ask(with_admin(kafka, lambda admin: admin.list_topics()))


@pytest.mark.parametrize("listens", [True, False])
def test_a_wrong_address_fails_soon_and_prints_nothing(listens):
    code = """
import asyncio, sys
from lakekit.errors import LogStoreError
from lakekit.logstore.connection import Connection
from lakekit.logstore.topic import ensure_topic
try:
    asyncio.run(ensure_topic(Connection.of(sys.argv[1], {}), "t", 1))
except LogStoreError as error:
    print(error.message)
"""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:
            silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, "-c", code, address], capture_output=True, text=True, timeout=40, check=True
        )
    assert done.stdout.startswith(f"Kafka at {address} cannot be reached (Unable")
    assert done.stderr == ""


def test_one_of_several_servers_is_enough(broker, topic):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        servers = f"127.0.0.1:{nobody.getsockname()[1]},{broker}"
        assert ask(ensure_topic(Connection.of(servers, {}), topic, 1)) == 1
