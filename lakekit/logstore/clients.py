"""The Kafkas that a session speaks to."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from lakekit.errors import LogStoreError
from lakekit.logstore import loop
from lakekit.logstore.broker import EmbeddedBroker
from lakekit.logstore.connection import Connection
from lakekit.logstore.emission import Target
from lakekit.logstore.topic import ensure_topic, message_limit

EMBEDDED = "embedded"
"""The address of the broker that belongs to the warehouse."""


class LogClients:
    """Finds the Kafka of an address, and starts the embedded one when it is first needed; safe for threads."""

    def __init__(self, warehouse: str | None, settings: Mapping[str, str]) -> None:
        """Connects to nothing yet."""
        self._warehouse = warehouse
        self._settings = settings
        self._broker: EmbeddedBroker | None = None
        self._topics: dict[tuple[str, str], int] = {}
        self._limits: dict[tuple[str, str], int] = {}
        self._lock = threading.RLock()

    def connection(self, address: str) -> Connection:
        """Returns how to reach a Kafka.

        Raises:
            LogStoreError: if the embedded broker cannot be started.
        """
        if address != EMBEDDED:
            return Connection.of(address, self._settings)
        with self._lock:
            if self._broker is None:
                if self._warehouse is None:
                    raise LogStoreError(
                        "The embedded broker needs a warehouse on this machine, and this session has none.",
                        "Give the table the address of a Kafka with 'log-store.address' = 'host:port'.",
                    )
                self._broker = EmbeddedBroker(self._warehouse)
            return Connection.of(self._broker.address(), {})

    def partitions(
        self, connection: Connection, topic: str, wanted: int, retention_ms: int | None = None
    ) -> int:
        """Returns the number of partitions of a topic, which is created with `wanted` if it does not exist.

        Raises:
            LogStoreError: if the Kafka cannot be reached, or refuses.
        """
        place = connection.servers, topic
        if place not in self._topics:
            self._topics[place] = loop.run(ensure_topic(connection, topic, wanted, retention_ms))
        return self._topics[place]

    def message_limit(self, target: Target) -> int:
        """Returns how many bytes the topic takes in one batch of records.

        Raises:
            LogStoreError: if the Kafka cannot be reached, or refuses.
        """
        place = target.connection.servers, target.topic
        if place not in self._limits:
            self._limits[place] = loop.run(message_limit(target.connection, target.topic))
        return self._limits[place]

    def close(self) -> None:
        """Gives up the share in the embedded broker, which stops with the last one."""
        with self._lock:
            if self._broker is not None:
                self._broker.leave()
                self._broker = None
