"""The methods of `Table` that have to do with its log, and with streams."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from lakekit.errors import InvalidOptionError
from lakekit.names import quote
from lakekit.properties import normalise_hints
from lakekit.table import changes, log_reads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.ingest.ingestion import Ingestion
    from lakekit.logstore.tail import Tail
    from lakekit.table.table import Moment, Table


class LogMethods:
    """What a table can do with its log."""

    @property
    def _table(self) -> Table:
        return cast("Table", self)

    def read_stream(
        self,
        mode: str = "file",
        *,
        changelog: bool = False,
        since: int | None = None,
        startup: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> DataFrame:
        """Returns the table as a stream.

        Args:
            mode: "file": its rows now, then every change, as commits bring them. "log": the changes of its log, within
                a second after they were made.
            changelog: True for row kinds as in `changes()`; False for inserted rows and new versions of rows alone.
            since: for "file": start with the changes of this version instead of the full table.
            startup: for "log": "latest", "earliest", "timestamp", "specific-offsets", or "full" for the rows of the
                table first; by default what the table's `scan.startup.mode` says.
            options: for "file": options of Delta's stream source, such as maxFilesPerTrigger; for "log": options such
                as scan.startup.timestamp-millis.

        Raises:
            InvalidOptionError: for options that cannot be, or mode "log" without a log.
        """
        if mode == "log":
            return log_reads.stream(self._table, log_reads.Wanted(startup=startup), changelog, options)
        if mode != "file":
            raise InvalidOptionError.bad_value("mode", mode, "'file' or 'log'")
        reader = self._table.lake.spark.readStream.option("readChangeFeed", "true").options(**(options or {}))
        if since is not None:
            reader = reader.option("startingVersion", since)
        rows = changes.changelog(
            reader.table(self._table.relation()), self._table.primary_key, streaming=True
        )
        if changelog:
            return rows
        return rows.where(f"{changes.KIND} IN ('+I', '+U')").select(
            *[quote(f.name) for f in self._table.schema]
        )

    # The log

    def tail(
        self,
        startup: str | None = None,
        *,
        timestamp: Moment | None = None,
        offsets: Mapping[int, int] | None = None,
        guarantee: bool | None = None,
        changelog_modes: str | None = None,
        on_foreign: str = "stop",
    ) -> Tail:
        """Returns the changes of the log as they come: ``async for change in orders.tail(): …``.

        Args:
            startup: "latest", "earliest", "timestamp" or "specific-offsets"; by default what the table's
                `scan.startup.mode` says.
            timestamp: start with the first change that is not older.
            offsets: start at these offsets, by topic partition.
            guarantee: take back what a failed writer sent in vain; by default what the table's
                `log-store.consistency-guarantee.enabled` says.
            changelog_modes: "all-kinds", or "append-only" to refuse other changes than +I.
            on_foreign: "stop" or "skip": what to do about a record that is not of the log.

        Raises:
            InvalidOptionError: if the table has no log, or options do not fit together.
            LogStoreError: if the log cannot be reached.
        """
        wanted = log_reads.Wanted(startup, timestamp, offsets, guarantee, changelog_modes, on_foreign)
        return log_reads.tail(self._table, wanted)

    def read_log(
        self,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        offsets: Mapping[int, int] | None = None,
        until_offsets: Mapping[int, int] | None = None,
        guarantee: bool | None = None,
        on_foreign: str = "stop",
    ) -> DataFrame:
        """Returns a piece of the log: rows with `_change_kind`, and where in the log they were.

        Args:
            since: the first change that is not older; by default the log's first.
            until: up to the first change that is not older; by default up to now.
            offsets: the first offset of each topic partition, instead of `since`.
            until_offsets: the offset after the last of each topic partition, instead of `until`.
            guarantee: see `tail()`.
            on_foreign: see `tail()`.

        Raises:
            InvalidOptionError: if the table has no log.
            LogStoreError: if the log cannot be reached.
        """
        wanted = log_reads.Wanted(None, since, offsets, guarantee, None, on_foreign)
        return log_reads.bounded(
            self._table, wanted.options(self._table), wanted.skip_foreign, until, until_offsets
        )

    def freshest(self) -> DataFrame:
        """Returns the rows of the files with the log's newer changes over them: what both stores know together.

        Raises:
            InvalidOptionError: if the table has no log.
            LogStoreError: if the log cannot be read, or does not go back to the newest version.
        """
        return log_reads.freshest(self._table)

    def write_stream(
        self,
        rows: DataFrame,
        name: str = "default",
        *,
        checkpoint: str | None = None,
        interval: float = 10.0,
        patience: float = 600.0,
        available_now: bool = False,
    ) -> Ingestion:
        """Writes a stream into both stores: into the log at once, into the files in one commit each interval.

        After a crash, or `stop()`, the same call goes on where it was; nothing is lost or doubled.

        Args:
            rows: a streaming DataFrame of a source that can be read again, with the table's columns. With a column
                `_change_kind` it is a changelog, as `changes()` and `read_stream(changelog=True)` give it.
            name: of the stream, if a table has several.
            checkpoint: folder for its progress; by default in the table's folder, by name.
            interval: seconds between commits to the files.
            patience: seconds for which a Kafka that is away is tried again before the stream fails.
            available_now: take what the source has now, and end.

        Returns:
            A handle that shows what it does, and pauses, resumes and stops it.

        Raises:
            InvalidOptionError: if `rows` is no stream.
            LogStoreError: if the log cannot be reached.
        """
        from lakekit.ingest.ingestion import write_stream

        return write_stream(
            self._table,
            rows,
            name,
            checkpoint=checkpoint,
            interval=interval,
            patience=patience,
            available_now=available_now,
        )

    def emitting(self, emit_mode: str) -> Table:
        """Returns the same table with another emit mode for its writes: "auto", "file", "log" or "file,log"."""
        other = copy.copy(self._table)
        checked = normalise_hints({"emit.mode": emit_mode}, self._table.snapshot().configuration)
        other.emit_mode = checked["lake.emit.mode"]
        return other
