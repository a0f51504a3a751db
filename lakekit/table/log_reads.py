"""Reads of a table's log: as it comes, as a stream of Spark, as a piece, and merged over the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lakekit import schema as schemas
from lakekit.errors import InvalidOptionError, LogStoreError
from lakekit.logstore import loop
from lakekit.logstore.positions import Resumption, resumption
from lakekit.logstore.reading import (
    KIND,
    LATEST,
    OFFSETS,
    TIMESTAMP,
    Semantics,
    Startup,
    net_effect,
    read,
    starts,
    to_table,
)
from lakekit.logstore.retract import LogChange
from lakekit.logstore.source import NAME, LogScan, LogSource
from lakekit.logstore.tail import Tail
from lakekit.logstore.topic import offsets_at, start_offsets
from lakekit.names import BUCKET_COLUMN, quote
from lakekit.properties import TableOptions, normalise_hints
from lakekit.table.log import TableLog
from lakekit.table.python_values import rows_converter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.table.table import Moment, Table

FULL = "full"
"""Startup mode: the table first, then the log from the table's version on."""
APPEND_ONLY = "append-only"

Offsets = Mapping[int, int]


@dataclass(frozen=True)
class Wanted:
    """What a reader asks for; what is None is as the table's options say.

    Attributes:
        startup: a mode of `scan.startup.mode`.
        timestamp: where to start, if the mode is "timestamp".
        offsets: where to start, if the mode is "specific-offsets".
        guarantee: `log-store.consistency-guarantee.enabled`.
        changelog_modes: `log.consumer.changelog.modes`.
        on_foreign: "stop" or "skip": what to do about a record that is not of the log.
    """

    startup: str | None = None
    timestamp: Moment | None = None
    offsets: Offsets | None = None
    guarantee: bool | None = None
    changelog_modes: str | None = None
    on_foreign: str = "stop"

    @property
    def skip_foreign(self) -> bool:
        """Whether such records are skipped.

        Raises:
            InvalidOptionError: if `on_foreign` is neither.
        """
        if self.on_foreign not in ("stop", "skip"):
            raise InvalidOptionError.bad_value("on_foreign", self.on_foreign, "'stop' or 'skip'")
        return self.on_foreign == "skip"

    def options(self, table: Table, more: Mapping[str, str] | None = None) -> TableOptions:
        """Returns the table's options with these.

        Raises:
            InvalidOptionError: for values that cannot be, or do not fit together.
        """
        given: dict[str, object] = dict(more or {})
        mode = self.startup
        if self.timestamp is not None:
            mode = mode or TIMESTAMP
            given["scan.startup.timestamp-millis"] = schemas.to_millis(table.lake.spark, self.timestamp)
        if self.offsets is not None:
            mode = mode or OFFSETS
            listed = (f"partition:{p},offset:{o}" for p, o in sorted(self.offsets.items()))
            given["scan.startup.specific-offsets"] = ";".join(listed)
        if mode is not None:
            given["scan.startup.mode"] = mode
        if self.guarantee is not None:
            given["log-store.consistency-guarantee.enabled"] = self.guarantee
        if self.changelog_modes is not None:
            given["log.consumer.changelog.modes"] = self.changelog_modes
        configuration = table.snapshot().configuration
        return TableOptions.from_configuration({**configuration, **normalise_hints(given, configuration)})


def semantics_of(options: TableOptions, skip_foreign: bool) -> Semantics:
    """Returns what a reader with these options makes of records."""
    return Semantics(
        guarantee=options.log_store_consistency_guarantee_enabled,
        append_only=options.log_consumer_changelog_modes == APPEND_ONLY,
        skip_foreign=skip_foreign,
    )


def startup_of(options: TableOptions) -> Startup:
    """Returns where a reader with these options starts; the mode is not `FULL`."""
    offsets: dict[int, int] = {}
    for pair in filter(None, (options.scan_startup_specific_offsets or "").split(";")):
        partition, offset = (int(part.partition(":")[2]) for part in pair.split(","))
        offsets[partition] = offset
    return Startup(options.scan_startup_mode, options.scan_startup_timestamp_millis or 0, offsets)


def tail(table: Table, wanted: Wanted) -> Tail:
    """Returns the changes as they come; see `Table.tail`."""
    log, options = TableLog.of(table), wanted.options(table)
    if options.scan_startup_mode == FULL:
        raise InvalidOptionError.bad_value(
            "startup",
            FULL,
            "earliest, latest, timestamp or specific-offsets; for the table itself use to_df()",
        )
    types = {
        f["name"]: f["type"] for f in table.snapshot().schema_json["fields"] if f["name"] != BUCKET_COLUMN
    }
    semantics = semantics_of(options, wanted.skip_foreign)
    return Tail(log.target, startup_of(options), semantics, rows_converter(types))


def bounded(
    table: Table,
    options: TableOptions,
    skip_foreign: bool = False,
    until: Moment | None = None,
    until_offsets: Offsets | None = None,
) -> DataFrame:
    """Returns a piece of the log; see `Table.read_log`."""
    log = TableLog.of(table)
    startup = startup_of(options)
    if startup.mode in (LATEST, FULL):  # a piece that ends now would be empty
        startup = Startup("earliest")
    # Both ends are fixed here: a DataFrame that is computed twice has the same rows.
    place = log.target.connection, log.target.topic
    ends = until_offsets
    if until is not None:
        ends = loop.run(offsets_at(*place, schemas.to_millis(table.lake.spark, until)))
    fixed = Startup(OFFSETS, offsets=loop.run(starts(log.target, startup)))
    scan = LogScan(log.target, fixed, semantics_of(options, skip_foreign), ends or log.end_offsets())
    table.lake.spark.dataSource.register(LogSource)
    return table.lake.spark.read.format(NAME).option("scan", scan.to_option()).load()


def stream(table: Table, wanted: Wanted, changelog: bool, more: Mapping[str, str] | None) -> DataFrame:
    """Returns the log as a stream of Spark; see `Table.read_stream`."""
    log, options = TableLog.of(table), wanted.options(table, more)
    semantics = semantics_of(options, wanted.skip_foreign)
    if options.scan_startup_mode == FULL:
        begin = table.lake.runner.run(resumption, table.root, log.target.topic)
        scan = LogScan(log.target, _after(log, begin), semantics, version=begin.version)
    else:
        scan = LogScan(log.target, startup_of(options), semantics)
    table.lake.spark.dataSource.register(LogSource)
    rows = table.lake.spark.readStream.format(NAME).option("scan", scan.to_option()).load()
    if changelog:
        return rows
    return rows.where(f"{KIND} IN ('+I', '+U')").select(*[quote(f.name) for f in table.schema])


def freshest(table: Table) -> DataFrame:
    """Returns the rows of the newest version with the log's newer changes over them.

    Raises:
        InvalidOptionError: if the table has no log, or no primary key.
        LogStoreError: if the log cannot be read, or does not go back to the version.
    """
    log = TableLog.of(table)
    begin = table.lake.runner.run(resumption, table.root, log.target.topic)
    changes = loop.run(read(log.target, _after(log, begin), Semantics()))
    files = table.to_df(version=begin.version)
    if not changes:
        return files
    spark = table.lake.spark
    if not log.target.key:
        return files.unionByName(spark.createDataFrame(_columns(log, changes)))
    there, gone = net_effect(log.target, changes)
    keys = pa.concat_tables([there.select(list(log.target.key)), gone])
    older = files.join(spark.createDataFrame(keys), on=list(log.target.key), how="left_anti")
    return older.select(*files.columns).unionByName(spark.createDataFrame(there))


def _columns(log: TableLog, changes: Sequence[LogChange]) -> pa.Table:
    return to_table(log.target, changes).select(log.target.schema.names)


def _after(log: TableLog, begin: Resumption) -> Startup:
    """Returns the start of a reader that has a version of the table."""
    earliest = loop.run(start_offsets(log.target.connection, log.target.topic))
    try:
        return Startup(OFFSETS, 0, begin.starts(earliest), begin.done)
    except ValueError as error:
        raise LogStoreError.truncated(log.target.topic, error) from None
