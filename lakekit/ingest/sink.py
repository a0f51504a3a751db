"""Takes a stream's micro-batches: into the log at once, into the files in one commit each interval.

The log comes first, so between two commits it is ahead of the files. Each commit holds, as Delta's `txn`, the stream's
last epoch in it, and a note with the log's offsets. After a crash the next run finds by these which epochs the files
lack: it completes the files from the whole ones, and takes back what is left of the last.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakekit.errors import ConcurrentWriteError
from lakekit.filestore.commit import Proposal
from lakekit.filestore.conflicts import Footprint, Isolation
from lakekit.filestore.layout import OPERATION
from lakekit.ingest.epochs import Epoch, StreamLog
from lakekit.ingest.recovery import finished_batches, last_commit, left_behind, open_offsets, own_commits
from lakekit.logstore import emitted, loop
from lakekit.logstore.emission import emissions, emit_all
from lakekit.logstore.positions import LogNote, Since
from lakekit.table import batch
from lakekit.table.changes import KIND
from lakekit.table.commit import Commit
from lakekit.table.constraints import check_nulls
from lakekit.table.log import TableLog
from lakekit.table.write import Write, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.table.table import Table

FEW_ROWS = 50_000
"""Rows of one partition of a micro-batch up to which they go through this process."""
PENDING_ROWS = 500_000
"""Rows that the log may be ahead; then the stream waits for a commit."""


class Sink:
    """Writes one stream into both stores of a table; safe for the stream's thread and the one that commits."""

    def __init__(self, table: Table, writer: str, checkpoint: str, patience: float) -> None:
        """Writes nothing yet."""
        self._table = table
        self._writer = writer
        self._checkpoint = checkpoint
        self._log = StreamLog(table, TableLog.of(table), writer, patience)
        self._sending = threading.RLock()
        self._committing = threading.Lock()
        self._since = Since(-1, 0)
        self._is_settled = True
        self._last = 0

    @property
    def changes_sent(self) -> int:
        """How many changes went to the log."""
        return self._log.sent

    @property
    def pending(self) -> Sequence[Epoch]:
        """What the log has and the files do not have yet."""
        return tuple(self._log.epochs)

    @property
    def pending_rows(self) -> int:
        """How many rows the log has and the files do not have yet."""
        return sum(epoch.rows.num_rows for epoch in self.pending)

    def interrupt(self) -> None:
        """Makes a write that waits for Kafka give up."""
        self._log.stopping.set()

    # Start and end

    def open(self) -> Commit | None:
        """Completes what an earlier run left, and notes in the table that the stream is open."""
        self._log.reset()
        self._log.log.emit_until(self._table.version)
        snapshot = self._table.snapshot()
        stored = snapshot.txns.get(self._writer, 0)
        self._since, self._last = Since(snapshot.version, stored), stored
        root, target = self._table.root, self._log.log.target
        starts = open_offsets(root, target.topic, self._writer)
        if starts is None:
            self._note("STREAM OPEN", self._log.note(self._log.ends))
            return None
        complete = max(finished_batches(self._checkpoint), stored)
        left = loop.run(left_behind(target, self._writer, starts, stored, complete))
        self._last = complete
        if left.broken:
            self._log.flip(complete)
        last = last_commit(root, target.topic, self._writer)
        is_settled = last.since is None or last.version in left.settled
        self._since = Since(last.version, stored) if is_settled or last.since is None else last.since
        self._is_settled = is_settled
        # First the files have all that the log has: settling may take it back, and a crash may follow.
        done = self._write(left.rows, complete, self._log.ends) if left.rows.num_rows else None
        if done is not None:
            self._settle(done.version, complete, ())
        elif not is_settled:
            self._settle(last.version, stored, ())
        return done

    def close(self) -> Commit | None:
        """Commits what is pending, and notes in the table that the stream has ended."""
        done = self.commit()
        if self._log.torn is not None:
            self._log.flip(self._log.torn - 1)
        if self._is_settled:  # else the next start must find the stream open
            self._note("STREAM CLOSE", self._log.note(self._log.ends, closes=True))
        self._log.close()
        return done

    # Micro-batches

    def take(self, rows: DataFrame, batch_id: int) -> int:
        """Sends a micro-batch to the log; returns its number of rows.

        Raises:
            LakeError: for rows that the table cannot take, before anything was sent.
            LogStoreError: if Kafka was away for too long.
        """
        number = batch_id + 1
        if number <= self._last:
            return 0
        prepared = prepared_rows(self._table, rows)
        found = batch.at_most(prepared, FEW_ROWS)
        if found is None:
            taken = self._take_many(prepared, number)
        else:
            check_nulls(str(self._table.name), self._table.snapshot(), found)
            taken = found.num_rows
            if taken:
                with self._sending:
                    self._log.send(number, found)
        self._last = number
        if self.pending_rows > PENDING_ROWS:
            self.commit()
        return taken

    def _take_many(self, rows: DataFrame, number: int) -> int:
        """Writes a large micro-batch as one commit, whose changes go to the log afterwards."""
        self.commit()
        request = Write("STREAM", lambda _: rows, txn=(self._writer, number))
        done = self._table._written(write(self._table, request))
        self._since = Since(done.version, number)
        return done.rows_inserted + done.rows_updated + done.rows_deleted

    # Commits

    def commit(self) -> Commit | None:
        """Commits to the files what the log is ahead; None if that is nothing."""
        with self._committing:
            epochs = self.pending
            if not epochs:
                return None
            done = self._write_epochs(epochs)
            with self._sending:
                self._settle(done.version, epochs[-1].number, epochs)
            return done

    def _write_epochs(self, epochs: Sequence[Epoch]) -> Commit:
        return self._write(_concat([e.rows for e in epochs]), epochs[-1].number, epochs[-1].ends)

    def _write(self, rows: pa.Table, epoch: int, ends: Mapping[int, int]) -> Commit:
        spark, table = self._table.lake.spark, self._table
        request = Write(
            operation="STREAM",
            build=lambda snapshot: (
                batch.aligned(table, spark.createDataFrame(rows), snapshot)
                if OPERATION in rows.schema.names
                else batch.few(table, rows, snapshot)
            ),
            txn=(self._writer, epoch),
            log_note=self._log.note(ends, self._since),
        )
        done = table._written(write(table, request))
        if done.skipped:
            raise ConcurrentWriteError(
                f"Another process writes the same stream into table {table.name}: its epoch {epoch} is there already.",
                "Run each checkpoint in one process at a time.",
            )
        self._is_settled = False
        return done

    def _settle(self, version: int, epoch: int, epochs: Sequence[Epoch]) -> None:
        """Tells readers that the files have the epochs, and corrects what others made wrong by commits in between.

        Args:
            version: of the stream's last commit.
            epoch: the last one in it.
            epochs: what was committed since the log was settled; empty if that is not known, after a crash.
        """
        self._log.settle(epoch)
        if self._others_wrote(version, epochs):
            if later := self.pending:
                # What is taken back must be in the files: a crash may come before it is sent again.
                version, epoch = self._write_epochs(later).version, later[-1].number
                self._log.settle(epoch)
            self._correct(version, epoch)
        self._log.mark(version, epoch)
        self._since, self._is_settled = Since(version, epoch), True

    def _correct(self, version: int, epoch: int) -> None:
        """Takes back what the stream sent since the log was settled, and sends what its commits really did.

        Then the log still lacks something for keys that others wrote, too: see `corrections`. They go on meanwhile, so
        it is looked at until nothing is missing.
        """
        self._log.log.emit_until(version)
        self._log.flip(self._since.epoch)
        target, root, run = self._log.log.target, self._table.root, self._table.lake.runner.run
        for commit, number in run(own_commits, root, self._writer, self._since.version, version).items():
            changes = run(emitted.changes_of, root, commit)
            emit_all(target, emissions(target, changes, self._writer, number))
        while missing := self._log.corrections(self._since.version, epoch):
            self._log.correct(epoch, missing)
            self._log.log.emit_until(self._table.version)

    def _others_wrote(self, version: int, epochs: Sequence[Epoch]) -> bool:
        """Tells whether commits of others since the log was settled changed rows of the stream's keys.

        Where the epochs are not known any more, after a crash, any row counts.
        """
        run, target, since = self._table.lake.runner.run, self._log.log.target, self._since.version
        own = run(own_commits, self._table.root, self._writer, since, version)
        others = [number for number in range(since + 1, version) if number not in own]
        rows = _concat([epoch.rows for epoch in epochs]) if epochs else None
        return bool(others) and run(emitted.touch_keys, target, others, rows)

    def _note(self, operation: str, note: LogNote) -> None:
        snapshot = self._table.snapshot()
        txn = self._writer, snapshot.txns.get(self._writer, 0)
        footprint = Footprint(Isolation.KEYS, frozenset(), frozenset(), txn)
        self._table.commit(Proposal(snapshot.version, [], footprint, operation, {}, {}, note))


def prepared_rows(table: Table, rows: DataFrame) -> DataFrame:
    """Returns rows as the table has them; those of a changelog with OPERATION, as the new rows tell all."""
    from pyspark.sql import functions as F

    if KIND in rows.columns:
        deletes = F.when(F.col(KIND) == "-D", "D").otherwise("U")
        rows = rows.where(F.col(KIND) != "-U").withColumn(OPERATION, deletes)
        known = {f.name.lower() for f in table.schema}
        rows = rows.drop(
            *[c for c in rows.columns if c.startswith("_") and c.lower() not in known | {OPERATION}]
        )
    return batch.aligned(table, rows, table.snapshot())


def _concat(tables: Sequence[pa.Table]) -> pa.Table:
    """Joins rows of epochs, some of which may have OPERATION."""
    if any(OPERATION in t.schema.names for t in tables):
        upserts = pa.scalar("U", pa.string())
        tables = [
            t if OPERATION in t.schema.names else t.append_column(OPERATION, pa.repeat(upserts, t.num_rows))
            for t in tables
        ]
    return pa.concat_tables(tables)
