"""The log of a table: what a write does to it, and how it is found."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakekit.errors import InvalidOptionError, LogStoreError
from lakekit.filestore.tasks import NumberedTask
from lakekit.logstore import emitted, loop
from lakekit.logstore.emission import Target, announce, emissions, emit, emit_all
from lakekit.logstore.positions import LogNote, used_partitions
from lakekit.logstore.reading import marked_until
from lakekit.logstore.records import TABLE, Mark, RowKind
from lakekit.logstore.sizes import largest_record
from lakekit.logstore.topic import end_offsets
from lakekit.storage.actions import AddFile
from lakekit.table.batch import collected
from lakekit.table.commit import Commit
from lakekit.table.constraints import check_nulls
from lakekit.table.lookup_many import visible_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.logstore.connection import Connection
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
            table=snapshot.metadata.id,
            partitions=self._partitions(connection, topic, snapshot, options),
            schema=visible_schema(snapshot.metadata.schema_string),
            key=tuple(snapshot.primary_key),
        )

    def _partitions(
        self, connection: Connection, topic: str, snapshot: Snapshot, options: TableOptions
    ) -> int:
        """Returns how many of the topic's partitions the table uses: always as many as at first."""
        wanted = options.log_store_partitions or snapshot.buckets or 1
        clients = self._table.lake.log_clients
        there = clients.partitions(connection, topic, wanted, options.log_store_retention_ms)
        used = self._table.lake.runner.run(used_partitions, self._table.root, topic) or there
        if used > there:
            raise LogStoreError(
                f"The log of table {self._table.name} is in {used} partitions, and topic '{topic}' has {there}: it is"
                " not the same topic any more.",
                "Give the table another topic with SET TBLPROPERTIES ('log-store.topic' = ...).",
            )
        return used

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
            done = run(emitted.emitted, table.root, topic)
            if done < 0:  # a new log, or the hint is lost
                done = loop.run(marked_until(self.target))
                run(emitted.set_emitted, table.root, topic, done)
            for commit in run(emitted.pending, table.root, done, version) if done < version else ():
                self._send(commit)
                announce(self.target, Mark(commit.version, TABLE, commit.version))
                done = commit.version
                run(emitted.set_emitted, table.root, topic, done)
            if done < version:
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
        self._table = table
        self._log: TableLog | None = None
        self._silent: LogNote | None = None
        if not options.log_store_enabled:
            return
        if (table.emit_mode or options.emit_mode) == "file":
            self._silent = LogNote.silent(str(options.log_store_topic))
        else:
            self._log = TableLog(table, snapshot, options)
            self._log.emit_until(snapshot.version)

    def check(self, files: Sequence[AddFile]) -> None:
        """Looks at new data files for rows that no record can hold.

        Raises:
            LogStoreError: if there is one.
        """
        if self._log is None:
            return
        limit = self._table.lake.log_clients.message_limit(self._log.target)
        run = self._table.lake.runner.run
        largest = run(largest_record, self._log.target, [file.file_path for file in files], limit)
        if largest > limit:
            raise LogStoreError.too_large(self._log.target.topic, largest, limit)

    def note(self) -> LogNote | None:
        """Returns what the commit is to say."""
        if self._log is None:
            return self._silent
        target = self._log.target
        return LogNote(target.topic, self._log.end_offsets(), target.partitions)

    def committed(self, version: int) -> None:
        """Puts the changes of the commit into the log.

        Raises:
            LogStoreError: if Kafka does not take them; the commit stands.
        """
        if self._log is None:
            return
        try:
            self._log.emit_until(version)
        except LogStoreError as error:
            raise LogStoreError(
                f"The rows are in the table as version {version}, but not all of them in its log yet:"
                f" {error.message}",
                "Nothing is lost, and nothing is to be written again: the next write completes the log.",
            ) from error


def only_to_log(table: Table, snapshot: Snapshot) -> bool:
    """Tells whether the emit mode of a write names the log alone."""
    options = table.options_of(snapshot)
    return options.log_store_enabled and (table.emit_mode or options.emit_mode) == "log"


def write_to_log(table: Table, snapshot: Snapshot, rows: DataFrame | pa.Table, operation: str) -> Commit:
    """Sends rows to the log and not to the files.

    Raises:
        LakeError: for rows that the table could not hold, before anything was sent.
        LogStoreError: if Kafka does not take them; then what it took is taken back.
    """
    from lakekit.ingest.epochs import StreamLog

    log = TableLog.of(table, snapshot)
    log.emit_until(snapshot.version)
    found = rows if isinstance(rows, pa.Table) else collected(table, rows)
    check_nulls(str(table.name), snapshot, found)
    stream = StreamLog(table, log, f"write-{uuid.uuid4().hex}", patience=0)
    try:
        kinds = stream.send(1, found)
        stream.mark(snapshot.version, 1)
    except LogStoreError:
        with contextlib.suppress(LogStoreError):
            stream.flip(0)
        raise
    finally:
        stream.close()
    return Commit(
        version=snapshot.version,
        operation=operation,
        rows_inserted=kinds[RowKind.INSERT],
        rows_updated=kinds[RowKind.UPDATE_AFTER],
        rows_deleted=kinds[RowKind.DELETE],
    )
