"""The log of a table: what a write does to it, and how it is found."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from lakekit.errors import InvalidOptionError, LogStoreError
from lakekit.filestore.tasks import NumberedTask
from lakekit.logstore import emitted, loop
from lakekit.logstore.emission import Target, announce, emissions, emit, emit_all
from lakekit.logstore.positions import LogNote
from lakekit.logstore.records import TABLE, Mark
from lakekit.logstore.topic import end_offsets
from lakekit.table.lookup_many import visible_schema

if TYPE_CHECKING:
    from lakekit.properties import TableOptions
    from lakekit.storage.snapshot import Snapshot
    from lakekit.table.table import Table

FEW_ROWS = 20_000
"""Changed rows up to which this process sends them itself; for more, Spark tasks do."""

_emitting = threading.Lock()


class TableLog:
    """The log of a table that has one."""

    def __init__(self, table: Table, snapshot: Snapshot, options: TableOptions) -> None:
        """Finds the Kafka and the topic, which is made if it does not exist.

        Raises:
            LogStoreError: if the Kafka cannot be reached, or refuses.
        """
        self._table = table
        address, topic = str(options.log_store_address), str(options.log_store_topic)
        clients = table.lake.log_clients
        connection = clients.connection(address)
        self.target = Target(
            root=table.root,
            connection=connection,
            topic=topic,
            partitions=clients.partitions(connection, topic, snapshot.buckets or 1),
            schema=visible_schema(snapshot.metadata.schema_string),
            key=tuple(snapshot.primary_key),
        )

    @classmethod
    def of(cls, table: Table, snapshot: Snapshot | None = None) -> TableLog:
        """Returns the log of a table.

        Raises:
            InvalidOptionError: if the table has none.
            LogStoreError: if it cannot be reached.
        """
        snapshot = snapshot or table.snapshot()
        options = table.options_of(snapshot)
        if not options.log_store_enabled:
            raise InvalidOptionError(
                f"Table {table.name} has no log.",
                "Turn it on: set 'log-store.enabled', 'log-store.topic' and 'log-store.address'.",
            )
        return cls(table, snapshot, options)

    def end_offsets(self) -> dict[int, int]:
        """Returns the end of each partition of the topic."""
        return loop.run(end_offsets(self.target.connection, self.target.topic))

    def emit_until(self, version: int) -> None:
        """Puts into the log what it lacks of the versions up to this one.

        Raises:
            LogStoreError: if Kafka does not take it; what it lacks is completed by the next write.
        """
        table, topic = self._table, self.target.topic
        run = table.lake.runner.run
        with _emitting:
            for commit in run(emitted.pending, table.root, topic, version):
                self._send(commit)
                announce(self.target, Mark(commit.version, TABLE, commit.version))
                run(emitted.set_emitted, table.root, topic, commit.version)
            if run(emitted.emitted, table.root, topic) < version:
                run(emitted.set_emitted, table.root, topic, version)

    def _send(self, commit: emitted.Pending) -> None:
        work = emissions(self.target, commit.changes, TABLE, commit.version)
        rows = sum(change.rows for change in commit.changes)
        if rows <= FEW_ROWS:
            self._table.lake.runner.run(emit_all, self.target, work)
        else:
            from lakekit.table.write import run_numbered

            run_numbered(self._table, NumberedTask.of(self.target, emit, work))


class WriteLog:
    """What one write does about the log of its table, if that has one and the write is for it."""

    def __init__(self, table: Table, snapshot: Snapshot) -> None:
        """Reaches the log, and completes it up to the snapshot, so that a write that cannot go on fails at once.

        Raises:
            LogStoreError: if the log cannot be reached.
        """
        options = table.options_of(snapshot)
        mode = (table.emit_mode or options.emit_mode).split(",")
        self._log: TableLog | None = None
        self._emits = mode != ["file"]
        if options.log_store_enabled:
            self._log = TableLog(table, snapshot, options)
            self._log.emit_until(snapshot.version)

    def note(self) -> LogNote | None:
        """Returns what the commit is to say."""
        return None if self._log is None else LogNote(self._log.end_offsets(), emits=self._emits)

    def committed(self, version: int) -> None:
        """Puts the changes of the commit into the log.

        Raises:
            LogStoreError: if Kafka does not take them; the commit stands.
        """
        if self._log is None or not self._emits:
            return
        try:
            self._log.emit_until(version)
        except LogStoreError as error:
            raise LogStoreError(
                f"The rows are in the table as version {version}, but not all of them in its log yet:"
                f" {error.message}",
                "Nothing is lost, and nothing is to be written again: the next write completes the log.",
            ) from error
