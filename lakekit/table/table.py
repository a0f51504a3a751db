"""The table as users hold it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from lakekit import schema as schemas
from lakekit.errors import InvalidOptionError, PrimaryKeyError, VersionNotFoundError
from lakekit.filestore.commit import Outcome, Proposal, commit
from lakekit.filestore.conflicts import Isolation
from lakekit.filestore.layout import OPERATION
from lakekit.names import BUCKET_COLUMN, TableName
from lakekit.properties import TableOptions, check_format, visible_properties
from lakekit.storage.snapshot import Snapshot
from lakekit.table import alter, append, batch, changes, maintenance, overwrite, point, rewrite, versions
from lakekit.table.commit import Commit
from lakekit.table.inspect import Inspect
from lakekit.table.log_methods import LogMethods
from lakekit.table.rows import Rows, are_few, in_process, to_dataframe
from lakekit.table.write import Write, write

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from lakekit.lake import Lake

Moment = dt.datetime | str
"""A time: aware datetimes as they are, naive ones and texts without an offset in the session's time zone."""


class Table(LogMethods):
    """A table of a lake; made by `Lake.table()` and `Lake.create_table()`.

    Attributes:
        lake: the lake it belongs to.
        name: its database and table name.
        root: path or URI of its folder.
        emit_mode: where its writes go; None for what its options say. See `emitting()`.
    """

    def __init__(self, lake: Lake, name: TableName) -> None:
        """Opens an existing table.

        Raises:
            TableNotFoundError: if there is none of that name.
            UnsupportedTableError: if a newer lakekit made it, or it has features this one does not know.
        """
        self.lake = lake
        self.name = name
        self.root = lake.catalog.location(name)
        self.emit_mode: str | None = None
        self._latest: Snapshot | None = None
        check_format(str(name), self.snapshot().configuration)

    def __repr__(self) -> str:
        key = f", primary_key={list(self.primary_key)}" if self.primary_key else ""
        return f"Table({str(self.name)!r}, version={self.version}{key})"

    # What it is

    def snapshot(self, version: int | None = None, timestamp: Moment | None = None) -> Snapshot:
        """Returns the state of the table: its files, schema and properties, at the newest or an older version.

        Raises:
            VersionNotFoundError: if the version or time is not one the table still holds; it tells the range.
            CorruptLogError: if a log file is missing or unreadable.
        """
        if version is not None and timestamp is not None:
            raise InvalidOptionError("Both a version and a timestamp were given.", "Give one of them.")
        if timestamp is not None:
            version = self.version_at(timestamp)
        if version is not None:
            if isinstance(version, bool) or not isinstance(version, int):
                raise InvalidOptionError.bad_value("version", version, "a whole number")
            return self.lake.runner.run(versions.snapshot_at, self.root, str(self.name), version)
        known = self._latest
        mark = (known.version, known.metadata.id) if known else None
        found = self.lake.runner.run(versions.newest, self.root, str(self.name), mark)
        self._latest = found or known
        return cast("Snapshot", self._latest)

    def version_at(self, timestamp: Moment) -> int:
        """Returns the version that was current at a time.

        Raises:
            VersionNotFoundError: if the time is before the first version still held, or after the last.
        """
        millis = schemas.to_millis(self.lake.spark, timestamp)
        return self.lake.runner.run(versions.version_at, self.root, str(self.name), millis)

    @property
    def version(self) -> int:
        """The newest version."""
        return self.snapshot().version

    @property
    def schema(self) -> StructType:
        """The columns, as a Spark schema."""
        return self.schema_of(self.snapshot())

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The key columns; empty for an append table."""
        return tuple(self.snapshot().primary_key)

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The columns that the table is partitioned by."""
        return tuple(c for c in self.snapshot().partition_columns if c != BUCKET_COLUMN)

    @property
    def buckets(self) -> int | None:
        """The number of buckets in each partition; None for an append table."""
        return self.snapshot().buckets

    @property
    def sequence_field(self) -> str | None:
        """The column that decides which of two rows of a key is newer, if the table has one."""
        return self.snapshot().sequence_field

    @property
    def comment(self) -> str | None:
        """The text about the table."""
        return self.snapshot().metadata.description

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties as users set them."""
        return visible_properties(self.snapshot().configuration)

    @property
    def options(self) -> TableOptions:
        """The table's options, typed, with defaults."""
        return self.options_of(self.snapshot())

    @staticmethod
    def options_of(snapshot: Snapshot) -> TableOptions:
        """Returns the options at a snapshot."""
        return TableOptions.from_configuration(snapshot.configuration)

    @staticmethod
    def schema_of(snapshot: Snapshot) -> StructType:
        """Returns the columns at a snapshot, as a Spark schema without the hidden bucket column."""
        from pyspark.sql.types import StructType

        fields = StructType.fromJson(snapshot.schema_json).fields
        return StructType([f for f in fields if f.name != BUCKET_COLUMN])

    @cached_property
    def inspect(self) -> Inspect:
        """Snapshots, manifests, files, buckets and partitions as Arrow tables."""
        return Inspect(self)

    # Reads

    def relation(self, version: int | None = None) -> str:
        """Returns the table as SQL text for a FROM clause, known to the Spark session."""
        self.lake.catalog.ensure_registered(self.name)
        return self.name.sql if version is None else f"{self.name.sql} VERSION AS OF {int(version)}"

    def to_df(self, version: int | None = None, timestamp: Moment | None = None) -> DataFrame:
        """Returns the rows as a DataFrame, of the newest or an older version.

        Raises:
            VersionNotFoundError: if the version or time is not one the table still holds.
        """
        if version is not None or timestamp is not None:
            version = self.snapshot(version, timestamp).version
        return self.lake.spark.sql(f"SELECT * FROM {self.relation(version)}").drop(BUCKET_COLUMN)

    def get(self, **key: Any) -> dict[str, Any] | None:
        """Returns the row of a key as a dict, or None; starts no Spark job on a local warehouse.

        Args:
            **key: a value for each primary key column.

        Raises:
            PrimaryKeyError: if the table has no key, or a key column is missing or null.
            ColumnNotFoundError: if a name is no key column.
        """
        return point.get(self, key)

    def get_many(self, keys: Rows) -> pa.Table:
        """Returns the rows of many keys as an Arrow table, reading each file at most once.

        Args:
            keys: rows that hold the primary key columns.
        """
        return point.get_many(self, keys)

    def changes(self, since: int | None = None, until: int | None = None) -> DataFrame:
        """Returns the changelog: rows with `_change_kind` (+I, -U, +U, -D), `_version` and `_timestamp`.

        Args:
            since: first version whose changes are wanted; the first one still held by default.
            until: last version, inclusive; the newest by default.

        Raises:
            VersionNotFoundError: if a version is outside what the table holds.
        """
        earliest, latest = self.lake.runner.run(versions.held_versions, self.root)
        first = max(earliest, 0) if since is None else since
        last = latest if until is None else until
        for version in (first, last):
            if not earliest <= version <= latest:
                raise VersionNotFoundError.of_version(str(self.name), version, earliest, latest)
        if first > last:
            raise InvalidOptionError.bad_value("since", first, f"a version up to {last}")
        reader = self.lake.spark.read.option("readChangeFeed", "true").option("startingVersion", first)
        feed = reader.option("endingVersion", last).table(self.relation())
        return changes.changelog(feed, self.primary_key, streaming=False)

    # Writes

    def upsert(
        self,
        rows: Rows,
        *,
        writer_id: str | None = None,
        epoch: int | None = None,
        evolve_schema: bool = False,
    ) -> Commit:
        """Inserts rows, replacing those of the same primary key; on an append table, appends them.

        Args:
            rows: a Spark, pandas or polars DataFrame, an Arrow table, or a list of dicts. Of several rows of one key
                the last wins, or the one with the highest sequence field.
            writer_id: with `epoch`, makes the write idempotent: an epoch not above the writer's last is skipped.
            epoch: a number that grows with each write of this writer.
            evolve_schema: add columns that the table does not have yet.

        Raises:
            SchemaMismatchError: naming every column that is missing, unknown or of another type.
            PrimaryKeyError: for rows with a null in the key, with their count and an example.
            ConstraintError: for nulls in NOT NULL columns, failed checks, texts that are too long.
        """
        txn = _txn(writer_id, epoch)
        spark, schema = self.lake.spark, self.schema
        given = in_process(spark, rows, schema)
        if self.primary_key and not evolve_schema and are_few(given, schema):
            request = Write("UPSERT", lambda snapshot: batch.few(self, given, snapshot), txn=txn)
            return self._written(write(self, request))
        dataframe = to_dataframe(spark, given, schema)
        if not self.primary_key:
            return append.append(self, dataframe, txn, evolve_schema)
        request = Write(
            operation="UPSERT",
            build=lambda snapshot: batch.aligned(self, dataframe, snapshot),
            txn=txn,
            evolve=(lambda s: schemas.evolved(s, dataframe.schema)) if evolve_schema else None,
        )
        return self._written(write(self, request))

    def insert(
        self,
        rows: Rows,
        *,
        writer_id: str | None = None,
        epoch: int | None = None,
        evolve_schema: bool = False,
    ) -> Commit:
        """Does what INSERT INTO does: see `upsert()`."""
        return self.upsert(rows, writer_id=writer_id, epoch=epoch, evolve_schema=evolve_schema)

    def delete(
        self, keys: Rows, *, writer_id: str | None = None, epoch: int | None = None, **params: Any
    ) -> Commit:
        """Deletes rows by key or by condition.

        Args:
            keys: rows that hold the primary key columns, or a SQL condition as text.
            writer_id: see `upsert()`.
            epoch: see `upsert()`.
            **params: values for ``:name`` in the condition.
        """
        if isinstance(keys, str):
            return self._delete_where(keys, params)
        self._need_key("delete() with keys")
        spark, schema = self.lake.spark, self.schema
        dataframe = to_dataframe(spark, keys, schema)
        request = Write(
            operation="DELETE",
            build=lambda snapshot: batch.deletions(self, dataframe, snapshot),
            txn=_txn(writer_id, epoch),
        )
        return self._written(write(self, request))

    def update(self, assignments: Mapping[str, str], where: str | None = None, **params: Any) -> Commit:
        """Sets columns of the rows that fulfil a condition.

        Args:
            assignments: for each column a SQL expression over the old row.
            where: a SQL condition; all rows by default.
            **params: values for ``:name`` in the expressions and the condition.
        """
        return rewrite.update(self, assignments, where, params)

    def apply_changes(self, build: Callable[[int], DataFrame], *, operation: str) -> Commit:
        """Applies changes that were computed from the table itself, as MERGE does, serializably.

        Args:
            build: returns, for a version of the table, rows with its columns and a text column ``__lake_op``: 'U'
                upserts the row, 'D' deletes its key. It is called again if another writer commits first.
            operation: the name in the table's history.
        """
        self._need_key(operation)
        request = Write(
            operation=operation,
            build=lambda snapshot: batch.aligned(self, build(snapshot.version), snapshot),
            isolation=Isolation.TABLE,
        )
        return self._written(write(self, request))

    def overwrite(self, rows: Rows, *, partitions: str | Mapping[str, Any] | None = None) -> Commit:
        """Replaces the whole table, or some of its partitions, in one commit.

        Args:
            rows: as for `upsert()`.
            partitions: None for all, "dynamic" for those that `rows` has rows in, or values of partition columns.
        """
        return overwrite.overwrite(self, rows, partitions)

    # What it is to become

    def set_properties(self, properties: Mapping[str, object]) -> None:
        """Sets table options, such as ``{"compaction.auto": False}``.

        Raises:
            InvalidOptionError: for an unknown option, a bad value, or one that is fixed once the table exists.
        """
        alter.set_properties(self, properties)

    def unset_properties(self, *names: str) -> None:
        """Removes table options, so that their defaults are in force again."""
        alter.unset_properties(self, names)

    def add_columns(self, columns: StructType | str) -> None:
        """Adds columns, null in the rows that are there.

        Args:
            columns: as a Spark schema or as text, ``note STRING, price DECIMAL(10, 2)``.
        """
        alter.add_columns(self, columns)

    def widen_column(self, column: str, new_type: str) -> None:
        """Changes the type of a column to a wider one, such as INT to BIGINT, by rewriting the files."""
        alter.widen_column(self, column, new_type)

    def set_comment(self, comment: str | None, *, column: str | None = None) -> None:
        """Sets or removes the comment of the table or of a column."""
        if column is None:
            alter.set_comment(self, comment)
        else:
            alter.set_column_comment(self, column, comment)

    # Maintenance

    def compact(self) -> Commit:
        """Merges the sorted runs of every bucket into one, in files with disjoint key ranges and no deleted rows."""
        self._need_key("compact()")
        return maintenance.compact(self)

    def vacuum(self, retain_hours: float = 168, *, dry_run: bool = False, force: bool = False) -> DataFrame:
        """Deletes files that no version of the last hours needs.

        Args:
            retain_hours: hours of history to keep.
            dry_run: only return the paths that would be deleted.
            force: allow less than 168 hours; breaks readers and time travel of older versions.

        Returns:
            A DataFrame with a column `path`: what would be deleted, or the table's path.
        """
        return maintenance.vacuum(self, retain_hours, dry_run, force)

    def commit(self, proposal: Proposal) -> Outcome:
        """Proposes a commit where the storage can be reached; for the writing modules of this folder."""
        from lakekit import __version__

        return self.lake.runner.run(commit, self.root, proposal, f"lakekit/{__version__}")

    # Shared by the writes above

    def _written(self, done: Commit) -> Commit:
        if not done.skipped:
            self.lake.background_compaction.after_commit(self)
        return done

    def _delete_where(self, condition: str, params: Mapping[str, Any]) -> Commit:
        if not self.primary_key:
            return append.statement(self, f"DELETE FROM {self.relation()} WHERE {condition}", params)

        def build(version: int) -> DataFrame:
            text = f"SELECT *, 'D' AS {OPERATION} FROM {self.relation(version)} AS t WHERE {condition}"
            return self.lake.spark.sql(text, args=dict(params)).drop(BUCKET_COLUMN)

        return self.apply_changes(build, operation="DELETE")

    def _need_key(self, what: str) -> None:
        if not self.primary_key:
            raise PrimaryKeyError(
                f"{what} needs a primary key, and table {self.name} has none.",
                "Use a SQL condition, or create the table with PRIMARY KEY.",
            )


def _txn(writer_id: str | None, epoch: int | None) -> tuple[str, int] | None:
    if (writer_id is None) != (epoch is None):
        raise InvalidOptionError(
            "writer_id and epoch go together; only one was given.", "Give both or neither."
        )
    if writer_id is None or epoch is None:
        return None
    if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 0:
        raise InvalidOptionError.bad_value("epoch", epoch, "a whole number, 0 or more")
    return writer_id, epoch
