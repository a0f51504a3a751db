"""The Lake: a Spark session, a warehouse, and the tables in it."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from lakekit.errors import SessionError
from lakekit.session.interrupts import interrupted, persistently

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType
    from typing_extensions import Self

    from lakekit.catalog import Catalog
    from lakekit.ingest.ingestion import Ingestion
    from lakekit.logstore.clients import LogClients
    from lakekit.session.runner import Runner
    from lakekit.skipping.report import SkippingReport
    from lakekit.table.background import BackgroundCompaction
    from lakekit.table.table import Table


class Lake:
    """An open lake; made by `lakekit.connect()`.

    Attributes:
        warehouse: absolute path or URI of the tables; None where a remote session uses its own catalog.
        runner: runs storage code where the files can be reached.
        remote: ``host:port`` of the Spark Connect server, or None.
        log_file: what the local Spark logs, or None where lakekit did not start it.
        settings: options that ``SET lake.… = …`` gave the session, under their stored names.
        log_settings: settings ``lake.log.…`` of `lakekit.connect(config=...)`, under their full names.
        ingestions: what `Table.write_stream()` returned in this process, last for each checkpoint, oldest first.
    """

    def __init__(
        self,
        spark: SparkSession,
        warehouse: str | None,
        runner: Runner,
        *,
        remote: str | None = None,
        log_file: Path | None = None,
    ) -> None:
        """Wraps a session that `lakekit.connect()` has checked."""
        self._spark: SparkSession | None = spark
        self.warehouse = warehouse
        self.runner = runner
        self.remote = remote
        self.log_file = log_file
        self.settings: dict[str, str] = {}
        self.log_settings: dict[str, str] = {}
        self.ingestions: list[Ingestion] = []
        self._close_hooks: list[Callable[[], object]] = []

    @property
    def spark(self) -> SparkSession:
        """The Spark session, classic or Connect.

        Raises:
            SessionError: after `stop()`.
        """
        if self._spark is None:
            raise SessionError("This Lake has been stopped.", "Open it again with lakekit.connect().")
        return self._spark

    @property
    def stopped(self) -> bool:
        """True after `stop()`."""
        return self._spark is None

    @functools.cached_property
    def catalog(self) -> Catalog:
        """The databases and tables: folders of the warehouse, or the remote session's own catalog."""
        from lakekit.catalog import open_catalog

        return open_catalog(self.spark, self.warehouse, self.runner)

    @functools.cached_property
    def background_compaction(self) -> BackgroundCompaction:
        """The thread that compacts tables after commits, when their triggers fire."""
        from lakekit.table.background import BackgroundCompaction

        return BackgroundCompaction(self)

    @property
    def cores(self) -> int | None:
        """How many tasks the local Spark runs at once; None for a cluster, where nobody knows."""
        return int(self.spark.sparkContext.defaultParallelism) if self.runner.is_local else None

    @functools.cached_property
    def log_clients(self) -> LogClients:
        """The Kafkas of the tables' logs."""
        from lakekit.logstore.clients import LogClients

        # A broker on this machine is of no use to a cluster.
        clients = LogClients(self.warehouse if self.runner.is_local else None, self.log_settings)
        self.before_stop(clients.close)
        return clients

    def sql(self, query: str, /, **params: object) -> DataFrame:
        """Runs one statement of Spark SQL or of lakekit's additions.

        Args:
            query: the statement; ``:name`` stands for the value of the keyword `name`.
            params: the values, bound and never pasted into the text.

        Returns:
            The rows; for a write, one row that describes the commit.

        Raises:
            LakeError: if the statement cannot be run.
        """
        from lakekit.sql import engine

        return engine.execute(self, query, params)

    def explain(self, query: str, /, **params: object) -> SkippingReport | list[SkippingReport]:
        """Tells which files, row groups and pages a query skips, by which step, and what it reads.

        Args:
            query: one SELECT; ``:name`` stands for the value of the keyword `name`.
            params: the values.

        Returns:
            The report; a list of them for a query of several tables.

        Raises:
            LakeError: if it reads no table of the lake.
        """
        from lakekit.sql import explain

        return explain.explain(self, query, params)

    def table(self, name: str) -> Table:
        """Returns a table by its name, ``table`` or ``database.table``.

        Raises:
            TableNotFoundError: if there is none.
        """
        from lakekit.table.table import Table

        return Table(self, self.catalog.resolve(name))

    def create_table(
        self,
        name: str,
        schema: StructType | str,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        buckets: int | None = None,
        properties: Mapping[str, object] | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Creates a table; with a primary key it is a keyed table, without one a plain append table.

        Args:
            name: ``table`` or ``database.table``.
            schema: columns as a Spark schema or as text, ``id BIGINT NOT NULL, name STRING``.
            primary_key: columns that identify a row; they must contain the partition columns.
            partition_by: columns by whose values files are kept apart.
            buckets: number of buckets in each partition; chosen from the number of cores by default.
            properties: table options such as ``sequence.field``.
            comment: a text about the table.
            if_not_exists: return the table that exists instead of raising.

        Raises:
            LakeError: if anything about it is wrong; then nothing was created.
        """
        from lakekit.table import create

        return create.create_table(
            self,
            name,
            schema,
            primary_key=primary_key,
            partition_by=partition_by,
            buckets=buckets,
            properties=properties,
            comment=comment,
            if_not_exists=if_not_exists,
        )

    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Drops a table with its data."""
        self.catalog.drop(self.catalog.resolve(name), if_exists=if_exists)

    def rename_table(self, old: str, new: str) -> None:
        """Renames a table; a new name without a database stays in the old one's."""
        self.catalog.rename(self.catalog.resolve(old), self.catalog.resolve(new))

    def tables(self, database: str | None = None) -> list[str]:
        """Returns the names of the tables of a database, the current one by default."""
        return self.catalog.tables(database or self.current_database)

    def databases(self) -> list[str]:
        """Returns the names of the databases."""
        return self.catalog.databases()

    def create_database(self, name: str, *, if_not_exists: bool = False, comment: str | None = None) -> None:
        """Creates a database."""
        self.catalog.create_database(name, if_not_exists=if_not_exists, comment=comment)

    def drop_database(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Drops a database; one that has tables only with `cascade`."""
        self.catalog.drop_database(name, if_exists=if_exists, cascade=cascade)

    def use(self, database: str) -> None:
        """Makes a database the current one."""
        self.catalog.use(database)

    @property
    def current_database(self) -> str:
        """The database of names without one."""
        return self.catalog.current_database

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Cancels the Spark jobs started inside when the user interrupts.

        PySpark's own handler for that lives only as long as the notebook cell which made the session.
        """
        tag = f"lakekit-{uuid.uuid4().hex}"
        spark = self.spark
        spark.addTag(tag)
        try:
            yield
        except BaseException as error:
            if not interrupted(error):
                raise
            persistently(spark.interruptTag, tag)
            if isinstance(error, KeyboardInterrupt):
                raise
            raise KeyboardInterrupt from error
        finally:
            # A session that has died says so in the error that is on its way already.
            with suppress(Exception):
                spark.removeTag(tag)

    def before_stop(self, action: Callable[[], object]) -> None:
        """Has something done by `stop()`, while the session still lives; what was named last is done first."""
        if action not in self._close_hooks:
            self._close_hooks.append(action)

    def stop(self) -> None:
        """Ends background work, and the Spark session if lakekit started it."""
        try:
            # Last come, first gone: the session was the first to come.
            while self._close_hooks:
                self._close_hooks.pop()()
        finally:
            self._spark = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        where = f", remote={self.remote!r}" if self.remote else ""
        return f"Lake(warehouse={self.warehouse!r}{where})"
