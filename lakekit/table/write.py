"""The write path of a keyed table: rows → one Spark job over the buckets, or none for few rows → one commit.

Each attempt reads the newest snapshot, lets the tasks write runs and vectors against it, and commits. When a commit of
somebody else stands in the way, the attempt's files are deleted and the work is done again on the newer snapshot. A
compaction changes no row: what the attempt superseded is then found in the compaction's output, by key.
"""

from __future__ import annotations

import pickle
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakekit.errors import (
    ConcurrentWriteError,
    ConstraintError,
    InvalidOptionError,
    LakeError,
    LogStoreError,
    PrimaryKeyError,
)
from lakekit.filestore.commit import Outcome, Proposal
from lakekit.filestore.conflicts import Footprint, Isolation, Verdict
from lakekit.filestore.few import write_few
from lakekit.filestore.follow import follow, moved, new_files
from lakekit.filestore.layout import ORDER, BucketLayout
from lakekit.filestore.result import RESULT_SCHEMA, BucketResult
from lakekit.filestore.tasks import NumberedTask
from lakekit.filestore.writer import WriteTask, delete_new_files
from lakekit.logstore.positions import LogNote
from lakekit.names import quote
from lakekit.session.failures import spark_failure
from lakekit.storage.actions import Action, AddFile, Metadata
from lakekit.storage.protocol import check_writable
from lakekit.storage.store import Store
from lakekit.table import batch
from lakekit.table.commit import Commit, Tally
from lakekit.table.log import WriteLog, only_to_log, write_to_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.storage.snapshot import Snapshot
    from lakekit.table.table import Table

MAX_ATTEMPTS = 10
"""How often a write is repeated when other writers come first."""


@dataclass(frozen=True)
class Write:
    """One write, ready to be tried on a snapshot.

    Attributes:
        operation: its name in the table's history.
        build: returns the rows for a snapshot: the table's columns in its order and types, and perhaps OPERATION. An
            Arrow table holds few rows (see `filestore.few`).
        isolation: what the write depends on.
        txn: (writer id, epoch) for idempotence.
        parameters: shown in the table's history.
        evolve: returns metadata with new columns, or None if the snapshot's will do.
        replaces: returns the live files that the rows replace as a whole (overwrite); None for an upsert.
        log_note: of a stream, which has sent its changes already; None for a write that sends them afterwards.
    """

    operation: str
    build: Callable[[Snapshot], DataFrame | pa.Table]
    isolation: Isolation = Isolation.KEYS
    txn: tuple[str, int] | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    evolve: Callable[[Snapshot], Metadata | None] | None = None
    replaces: Callable[[Snapshot, Tally], Sequence[AddFile]] | None = None
    log_note: LogNote | None = None


def write(table: Table, request: Write) -> Commit:
    """Carries out a write on a keyed table.

    Raises:
        PrimaryKeyError: for rows with a null in the key.
        ConstraintError: for rows that break NOT NULL, CHECK or a length.
        ConcurrentWriteError: if other writers came first every time.
    """
    with table.lake.background_compaction.writing(str(table.name)):
        return _write(table, request)


def _write(table: Table, request: Write) -> Commit:
    started = time.monotonic()
    for _ in range(MAX_ATTEMPTS):
        snapshot = table.snapshot()
        if request.txn is not None and snapshot.txns.get(request.txn[0], -1) >= request.txn[1]:
            if request.log_note is None:
                WriteLog(table, snapshot)  # whoever repeats a write may be completing it
            return Commit(snapshot.version, request.operation, skipped=True)
        if request.log_note is None and only_to_log(table, snapshot):
            if request.replaces or request.evolve:
                raise InvalidOptionError.bad_value("emit.mode", "log", "auto or file for this kind of write")
            return write_to_log(table, snapshot, request.build(snapshot), request.operation)
        attempt = _Attempt(table, request, snapshot)
        log = None if request.log_note else WriteLog(table, snapshot)
        tally = attempt.run(log)
        duration = int((time.monotonic() - started) * 1000)
        if not attempt.actions and request.txn is None:
            return tally.commit(snapshot.version, request.operation, duration, skipped=True)
        try:
            note = log.note() if log else request.log_note
        except LogStoreError:
            attempt.discard()
            raise
        outcome = attempt.commit(duration, note)
        while outcome.verdict is Verdict.MOVED and attempt.follow(outcome.version):
            outcome = attempt.commit(int((time.monotonic() - started) * 1000), note)
        if outcome.verdict is Verdict.GO_ON:
            if log:
                log.committed(outcome.version)
            return tally.commit(outcome.version, request.operation, duration)
        attempt.discard()
        if outcome.verdict is Verdict.DONE:
            if log:
                log.committed(outcome.version)
            return Commit(outcome.version, request.operation, skipped=True)
    raise ConcurrentWriteError(
        f"{request.operation} on table {table.name} met a newer commit of another writer {MAX_ATTEMPTS} times.",
        "Nothing was written; try again, or write fewer, larger batches.",
    )


class _Attempt:
    """One try of a write on one snapshot."""

    def __init__(self, table: Table, request: Write, snapshot: Snapshot) -> None:
        self._table = table
        self._request = request
        self._base = snapshot
        check_writable(snapshot.protocol, snapshot.configuration, str(table.name))
        evolved = request.evolve(snapshot) if request.evolve else None
        self._evolved: list[Action] = [] if evolved is None else [evolved]
        if self._evolved:
            snapshot = snapshot.apply(snapshot.version, snapshot.timestamp, self._evolved)
        self._snapshot = snapshot
        self._layout = BucketLayout.of(table.root, snapshot, table.options_of(snapshot).target_file_size)
        self._run_id = uuid.uuid4().hex
        self._results: list[BucketResult] = []
        self._tally = Tally.of([])

    def run(self, log: WriteLog | None) -> Tally:
        """Writes the files; nothing is visible yet."""
        rows = batch.collected_if_few(self._table, self._request.build(self._snapshot))
        live = [] if self._request.replaces else list(self._snapshot.files.values())
        if isinstance(rows, pa.Table):
            run = self._table.lake.runner.run
            self._results = run(write_few, self._layout, live, rows, self._run_id)
        else:
            task = WriteTask.of(self._layout, live, self._run_id)
            self._results = run_buckets(self._table, rows, self._layout, task)
        _check(self._table, self._results, self.discard)
        self._tally = Tally.of(self._results)
        if self._request.replaces:
            self._tally = _replacing(self._tally, self._request.replaces(self._base, self._tally))
        if self._tally.removed and self._base.configuration.get("delta.appendOnly") == "true":
            self.discard()
            raise ConstraintError(
                f"Table {self._table.name} is append-only, and these rows replace or delete others.",
                "Nothing was written; write only new keys, or unset 'delta.appendOnly'.",
            )
        try:
            if log is not None:
                log.check(self._tally.new_files)
        except LakeError:
            self.discard()
            raise
        return self._tally

    @property
    def actions(self) -> list[Action]:
        """What the commit does."""
        return [*self._evolved, *self._tally.removed, *self._tally.added]

    def commit(self, duration_ms: int, log_note: LogNote | None) -> Outcome:
        """Proposes the commit."""
        footprint = Footprint(
            isolation=self._request.isolation,
            buckets=frozenset(b for r in self._results for b in r.touched),
            replaced=frozenset(f.path for f in self._tally.removed),
            txn=self._request.txn,
        )
        proposal = Proposal(
            read_version=self._base.version,
            actions=self.actions,
            footprint=footprint,
            operation=self._request.operation,
            parameters=self._request.parameters,
            metrics=self._tally.metrics(duration_ms),
            log_note=log_note,
        )
        return self._table.commit(proposal)

    def follow(self, version: int) -> bool:
        """Takes up a version in which a compaction moved rows; False if the work must be done again instead."""
        if self._request.replaces:
            return False
        now = self._table.snapshot(version)
        new = new_files(self._base.files, now.files)
        jobs = [moved(result, new, now.files) for result in self._results]
        todo = [job for job in jobs if job is not None]
        done = [result for result, job in zip(self._results, jobs, strict=True) if job is None]
        followed = run_numbered(self._table, NumberedTask.of(self._layout, follow, todo))
        if any(result.lost_rows for result in followed):
            return False
        self._results, self._base = [*done, *followed], now
        self._tally = Tally.of(self._results)
        return True

    def discard(self) -> None:
        """Deletes the data files of this attempt."""
        added = [f for r in self._results for f in r.added]
        self._table.lake.runner.run(_delete, self._table.root, added, self._run_id)


def run_buckets(table: Table, rows: DataFrame, layout: BucketLayout, task: WriteTask) -> list[BucketResult]:
    """Runs the bucket writer: bucket i is Spark partition i."""
    ordered = in_buckets(rows, layout)
    named = replace(task, columns=tuple(ordered.columns))
    return collect_results(table, batch.by_position(ordered).mapInArrow(named, RESULT_SCHEMA))


def in_buckets(rows: DataFrame, layout: BucketLayout) -> DataFrame:
    """Returns rows with bucket i in Spark partition i, sorted by partition, key, sequence and arrival.

    ``repartition(N, keys)`` is hash partitioning by ``pmod(murmur3(keys), N)``, which is the bucket function.
    """
    from pyspark.sql import functions as F

    keys = [F.col(quote(c)) for c in layout.primary_key]
    order = [*layout.partition_schema.names, *layout.sort_columns]
    if layout.sequence_field is not None and layout.sequence_field not in order:
        order.append(layout.sequence_field)
    shuffled = rows.withColumn(ORDER, F.monotonically_increasing_id()).repartition(layout.buckets, *keys)
    return shuffled.sortWithinPartitions(*[F.col(quote(c)) for c in order], ORDER)


def collect_results(table: Table, results: DataFrame) -> list[Any]:
    """Runs the Spark job and returns what its tasks did."""
    try:
        with table.lake.interruptible():
            return [pickle.loads(bytes(row.result)) for row in results.collect()]
    except Exception as error:
        raise spark_failure(error, f"Writing to table {table.name}") from None


def run_numbered(table: Table, task: NumberedTask, tasks: int | None = None) -> list[Any]:
    """Runs jobs that need no rows, each in a Spark task of its own, or in so many tasks at most."""
    if not task.jobs:
        return []
    numbers = table.lake.spark.range(0, len(task.jobs), 1, min(tasks or len(task.jobs), len(task.jobs)))
    return collect_results(table, numbers.mapInArrow(task, RESULT_SCHEMA))


def _replacing(tally: Tally, files: Sequence[AddFile]) -> Tally:
    now = int(time.time() * 1000)
    return Tally(
        added=tally.added,
        removed=tuple(f.remove(now, data_change=True) for f in files),
        rows_inserted=tally.rows_inserted,
        rows_updated=0,
        rows_deleted=sum(f.live_records or 0 for f in files),
        rows_late=0,
    )


def _check(table: Table, results: Sequence[BucketResult], discard: Callable[[], None]) -> None:
    """Raises what the rows of any bucket did wrong, after all buckets' files are deleted."""
    if not any(r.refused for r in results):
        return
    discard()
    nulls = sum(r.null_keys for r in results)
    if nulls:
        example = next(r.null_key_example for r in results if r.null_keys)
        raise PrimaryKeyError.null_keys(str(table.name), nulls, example)
    for result in results:
        if result.error is not None:
            raise result.error
    columns: dict[str, int] = {}
    for result in results:
        for name, count in result.null_columns.items():
            columns[name] = columns.get(name, 0) + count
    raise ConstraintError.null_columns(str(table.name), columns)


def _delete(root: str, added: Sequence[AddFile], run_id: str) -> None:
    delete_new_files(Store(root), added, run_id)
