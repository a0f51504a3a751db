"""`Table.write_stream()`: one stream of rows into both stores of a table, and the handle that shows and steers it."""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakekit.errors import InvalidOptionError, LakeError, SessionError
from lakekit.ingest.sink import Sink, prepared_rows
from lakekit.session.failures import spark_failure
from lakekit.storage.store import Store
from lakekit.table.changes import KIND
from lakekit.table.commit import Commit
from lakekit.table.write import Write, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from lakekit.table.table import Table

_KEPT_COMMITS, _KEPT_LATENCIES = 20, 100


@dataclass(frozen=True)
class Status:
    """What an ingestion is doing.

    Attributes:
        state: "running", "paused", "stopped" or "failed".
        rows_in: rows taken from the source by this handle.
        changes_out: changes sent to the log.
        pending_rows: rows that the log has and the files do not have yet.
        log_latency_ms: from a micro-batch's arrival to Kafka's acknowledgement, of the last ones.
        file_lag_s: age of the oldest row that the files do not have yet, in seconds; 0 if they have all.
        commits: the last commits to the files, oldest first.
        error: why it failed.
    """

    state: str
    rows_in: int = 0
    changes_out: int = 0
    pending_rows: int = 0
    log_latency_ms: tuple[float, ...] = ()
    file_lag_s: float = 0.0
    commits: tuple[Commit, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Plan:
    """How a stream is written.

    Attributes:
        interval: seconds between commits to the files.
        patience: seconds for which a Kafka that is away is tried again.
        trigger: arguments of Spark's ``trigger(…)``.
    """

    interval: float
    patience: float
    trigger: Mapping[str, Any]


class Ingestion:
    """A stream that is being written into a table; made by `Table.write_stream()`."""

    def __init__(self, table: Table, rows: DataFrame, checkpoint: str, plan: Plan) -> None:
        """Starts nothing yet."""
        self.table = table
        self.checkpoint = checkpoint
        self.writer_id = _writer_id(checkpoint)
        self._rows = rows
        self._plan = plan
        self._sink = Sink(table, self.writer_id, checkpoint, plan.patience) if _log_first(table) else None
        self._query: StreamingQuery | None = None
        self._committer: threading.Thread | None = None
        self._ending = threading.Event()
        self._state = "stopped"
        self._error: LakeError | None = None
        self._rows_in = 0
        self._latencies: deque[float] = deque(maxlen=_KEPT_LATENCIES)
        self._commits: deque[Commit] = deque(maxlen=_KEPT_COMMITS)
        self._behind_since: float | None = None

    def __repr__(self) -> str:
        return f"Ingestion({str(self.table.name)!r}, {self.status.state})"

    @property
    def status(self) -> Status:
        """What it is doing now."""
        pending = self._sink.pending_rows if self._sink else 0
        behind = self._behind_since
        self._look_at_query()
        return Status(
            state=self._state,
            rows_in=self._rows_in,
            changes_out=self._sink.changes_sent if self._sink else 0,
            pending_rows=pending,
            log_latency_ms=tuple(self._latencies),
            file_lag_s=time.monotonic() - behind if pending and behind is not None else 0.0,
            commits=tuple(self._commits),
            error=None if self._error is None else str(self._error),
        )

    # Steering

    def start(self) -> Ingestion:
        """Starts, or goes on after `pause()` or `stop()`, where the checkpoint says.

        Raises:
            LogStoreError: if the log cannot be reached.
        """
        if self._state == "running":
            return self
        if self._committer is not None:  # that of a run that failed goes on
            self._end("stopped")
        self._error = None
        if self._sink is not None:
            self._add(self._sink.open())
            self._ending.clear()
            self._committer = threading.Thread(
                target=self._commit_each_interval, name="lakekit-ingest", daemon=True
            )
            self._committer.start()
        writer = self._rows.writeStream.foreachBatch(self._take).option("checkpointLocation", self.checkpoint)
        self._query = writer.trigger(**self._plan.trigger).start()
        self._state = "running"
        self.table.lake.before_stop(self.stop)
        return self

    def resume(self) -> None:
        """Goes on after `pause()`."""
        self.start()

    def pause(self) -> None:
        """Stops taking rows, and commits to the files what the log has."""
        self._end("paused")

    def stop(self) -> None:
        """Stops taking rows, and commits to the files what the log has."""
        self._end("stopped")

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the source has no more rows (with ``available_now``), and both stores have all of them.

        Args:
            timeout: seconds, or None to wait for ever.

        Returns:
            Whether it came to its end.

        Raises:
            LakeError: what made it fail.
        """
        query = self._query
        if query is None:
            return True
        try:
            ended = bool(
                query.awaitTermination(None if timeout is None else math.ceil(timeout)) or timeout is None
            )
        except Exception as error:
            self._fail(error)
            ended = True
        if ended and self._state == "running":
            self.stop()
        if self._error is not None:
            raise self._error
        return ended

    def flush(self) -> Commit | None:
        """Commits to the files now what the log is ahead; None if that is nothing."""
        done = self._sink.commit() if self._sink else None
        self._add(done)
        return done

    # Its threads

    def _take(self, rows: DataFrame, batch_id: int) -> None:
        """Writes one micro-batch; Spark's stream calls it, and calls it again with the same rows after a crash."""
        started = time.monotonic()
        try:
            if self._sink is None:
                done = _into_files(self.table, rows, (self.writer_id, batch_id))
                self._add(done)
                self._rows_in += done.rows_inserted + done.rows_updated + done.rows_deleted
                return
            taken = self._sink.take(rows, batch_id)
        except LakeError as error:
            self._error = error
            raise
        if taken:
            self._rows_in += taken
            self._latencies.append((time.monotonic() - started) * 1000)
            self._behind_since = self._behind_since or started

    def _commit_each_interval(self) -> None:
        while not self._ending.wait(self._plan.interval):
            self._behind_since = None
            try:
                self.flush()
            except Exception as error:
                self._fail(error)
                if self._query is not None:
                    with suppress(Exception):
                        self._query.stop()
                return

    def _end(self, state: str) -> None:
        query, self._query = self._query, None
        if self._sink is not None:
            self._sink.interrupt()  # a Kafka that is away is not waited for
        if query is not None:
            query.stop()
        self._ending.set()
        if self._committer is not None and self._sink is not None:
            self._committer.join()
            self._committer = None
            try:
                self._add(self._sink.close())
            except LakeError as error:
                self._error = self._error or error
        self._state = state if self._error is None else "failed"

    def _add(self, commit: Commit | None) -> None:
        if commit is not None and not commit.skipped:
            self._commits.append(commit)

    def _fail(self, error: Exception) -> None:
        self._error = self._error or spark_failure(error, f"The stream into table {self.table.name}")
        self._state = "failed"

    def _look_at_query(self) -> None:
        query = self._query
        if query is not None and self._state == "running" and not query.isActive:
            error = query.exception()
            if error is not None:
                self._fail(error)


def write_stream(
    table: Table,
    rows: DataFrame,
    name: str,
    *,
    checkpoint: str | None,
    interval: float,
    patience: float,
    available_now: bool,
) -> Ingestion:
    """Starts to write a stream into a table; see `Table.write_stream`."""
    if not table.lake.runner.is_local:
        raise SessionError(
            "write_stream() needs a local session: its rows go through this process.",
            "Open the warehouse with lakekit.connect(warehouse=...), without remote=.",
        )
    if not getattr(rows, "isStreaming", False):
        raise InvalidOptionError(
            "write_stream() takes a streaming DataFrame, and this one is not.",
            "Use upsert() for rows that are there.",
        )
    if table.emit_mode not in (None, "auto", "file,log"):
        raise InvalidOptionError.bad_value(
            "emit.mode", table.emit_mode, "auto for a stream: it goes to both stores"
        )
    if not interval > 0:
        raise InvalidOptionError.bad_value("interval", interval, "seconds, above 0")
    trigger: dict[str, Any] = {"availableNow": True} if available_now else {"processingTime": "0 seconds"}
    if not available_now and not _log_first(table):
        trigger = {"processingTime": f"{interval} seconds"}
    place = checkpoint or f"{table.root}/_streams/{name}"
    ingestion = Ingestion(table, rows, place, Plan(interval, patience, trigger)).start()
    others = [each for each in table.lake.ingestions if each.checkpoint != place]
    table.lake.ingestions = [*others, ingestion]
    return ingestion


def _log_first(table: Table) -> bool:
    """Tells whether rows go to a log before the files; for an append table the log follows its commits."""
    return table.options.log_store_enabled and bool(table.primary_key)


def _into_files(table: Table, rows: DataFrame, txn: tuple[str, int]) -> Commit:
    """Writes a micro-batch into a table whose log, if it has one, follows its commits."""
    if KIND not in rows.columns or not table.primary_key:
        return table.upsert(rows, writer_id=txn[0], epoch=txn[1])
    return table._written(write(table, Write("STREAM", lambda _: prepared_rows(table, rows), txn=txn)))


def _writer_id(checkpoint: str) -> str:
    """Returns the id of the writer that a checkpoint belongs to: epochs mean something only beside their checkpoint."""
    store = Store(checkpoint)
    store.put_if_absent("writer", uuid.uuid4().hex.encode())
    return f"stream-{store.read('writer').decode()}"
