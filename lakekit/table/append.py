"""Writes to append tables: tables without a primary key are plain Delta tables, written by Spark's Delta writer."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakekit import schema as schemas
from lakekit.errors import InvalidOptionError
from lakekit.session.failures import spark_failure
from lakekit.storage.log import CommitRecord, open_log
from lakekit.table.commit import Commit
from lakekit.table.log import WriteLog, only_to_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter

    from lakekit.table.table import Table

_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def append(table: Table, rows: DataFrame, txn: tuple[str, int] | None, evolve_schema: bool) -> Commit:
    """Appends rows; with a (writer id, epoch) that the table has already, does nothing."""
    snapshot = table.snapshot()
    if txn is not None and snapshot.txns.get(txn[0], -1) >= txn[1]:
        return Commit(snapshot.version, "WRITE", skipped=True)
    aligned = schemas.align(rows, table.schema, str(table.name), allow_new=evolve_schema)
    writer = aligned.write.format("delta").mode("append")
    if txn is not None:
        writer = writer.option("txnAppId", txn[0]).option("txnVersion", txn[1])
    if evolve_schema:
        writer = writer.option("mergeSchema", "true")
    return _saved(table, writer)


def overwrite(table: Table, rows: DataFrame, condition: str | None, dynamic: bool) -> Commit:
    """Replaces all rows, those that fulfil a condition, or the partitions that `rows` has rows in."""
    aligned = schemas.align(rows, table.schema, str(table.name))
    writer = aligned.write.format("delta").mode("overwrite")
    writer = writer.option("partitionOverwriteMode", "dynamic" if dynamic else "static")
    if condition is not None:
        writer = writer.option("replaceWhere", condition)
    return _saved(table, writer)


def statement(table: Table, sql: str, params: Mapping[str, Any]) -> Commit:
    """Runs a statement of Delta's own SQL that changes the table."""

    def run(mark: str) -> None:
        with _marked(table, mark):
            table.lake.spark.sql(sql, args=dict(params)).collect()

    return _observed(table, run)


def _saved(table: Table, writer: DataFrameWriter) -> Commit:
    target = table.relation()
    # Not by the session's setting: in a stream's micro-batch, rows belong to a session of their own.
    return _observed(table, lambda mark: writer.option("userMetadata", mark).saveAsTable(target))


def _observed(table: Table, action: Callable[[str], object]) -> Commit:
    """Runs an action of Spark's Delta writer and finds the commit it made by a mark in its commitInfo."""
    snapshot = table.snapshot()
    if only_to_log(table, snapshot):
        raise InvalidOptionError.bad_value(
            "emit.mode", "log", "auto or file for a table without a primary key"
        )
    before, log = snapshot.version, WriteLog(table, snapshot)
    mark = f"lakekit-{uuid.uuid4()}"
    started = time.monotonic()
    with table.lake.interruptible():
        try:
            action(mark)
        except Exception as error:
            raise spark_failure(error, f"Writing to table {table.name}") from None
    duration = int((time.monotonic() - started) * 1000)
    record = table.lake.runner.run(_find, table.root, before + 1, mark)
    if record is None:
        return Commit(before, "WRITE", duration_ms=duration, skipped=True)
    log.committed(record.version)
    return _commit_of(record, duration)


@contextmanager
def _marked(table: Table, mark: str) -> Iterator[None]:
    conf = table.lake.spark.conf
    before = conf.get(_USER_METADATA, None)
    conf.set(_USER_METADATA, mark)
    try:
        yield
    finally:
        conf.unset(_USER_METADATA) if before is None else conf.set(_USER_METADATA, before)


def _find(root: str, since: int, mark: str) -> CommitRecord | None:
    log = open_log(root)
    if log.latest_version() < since:
        return None
    return next((c for c in log.commits(since) if c.info.get("userMetadata") == mark), None)


def _commit_of(record: CommitRecord, duration_ms: int) -> Commit:
    metrics = record.info.get("operationMetrics") or {}

    def number(*names: str) -> int:
        return next((int(metrics[n]) for n in names if n in metrics), 0)

    return Commit(
        version=record.version,
        operation=str(record.info.get("operation", "WRITE")),
        rows_inserted=number("numTargetRowsInserted", "numOutputRows"),
        rows_updated=number("numTargetRowsUpdated", "numUpdatedRows"),
        rows_deleted=number("numTargetRowsDeleted", "numDeletedRows"),
        files_added=record.n_added,
        files_removed=record.n_removed,
        bytes_added=record.bytes_added,
        duration_ms=duration_ms,
    )
