"""The log of a table in a remote session: the cluster's tasks speak to Kafka, and the notebook does too."""

from __future__ import annotations

import asyncio

import pytest

from lakekit import InvalidOptionError, LogStoreError, SessionError

from .replay import logged, replay, stored


@pytest.fixture(scope="module")
def table(remote_lake, broker):
    properties = {"log-store.enabled": True, "log-store.address": broker, "log-store.topic": "remote"}
    remote_lake.create_database("far")
    made = remote_lake.create_table(
        "far.orders", "id BIGINT NOT NULL, v STRING", primary_key=["id"], buckets=2, properties=properties
    )
    yield made
    remote_lake.drop_database("far", cascade=True)


def test_both_stores(remote_lake, table):
    table.upsert([{"id": i, "v": "a"} for i in range(5)])
    remote_lake.sql("UPDATE far.orders SET v = 'b' WHERE id < 2")
    table.emitting("log").upsert([{"id": 9, "v": "only in the log"}])
    assert table.to_df().count() == 5
    assert table.freshest().count() == 6
    changes = [change for change in logged(table) if change[1]["id"] != 9]
    assert replay(changes) == stored(table)

    async def first():
        async with table.tail("earliest") as tail:
            return await asyncio.wait_for(anext(tail), 30)

    assert asyncio.run(first()).kind == "+I"


def test_what_needs_a_local_session(remote_lake, table):
    rows = remote_lake.spark.readStream.format("rate").load()
    with pytest.raises(SessionError, match="local session"):
        table.write_stream(rows.selectExpr("value id", "'x' v"))
    other = remote_lake.create_table(
        "far.embedded",
        "id BIGINT NOT NULL",
        primary_key=["id"],
        properties={"log-store.enabled": True, "log-store.address": "embedded", "log-store.topic": "t"},
    )
    with pytest.raises((LogStoreError, InvalidOptionError), match="embedded"):
        other.upsert([{"id": 1}])
