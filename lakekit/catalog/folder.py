"""The catalog of a warehouse: its folders are the databases and tables."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lakekit.catalog import folders
from lakekit.catalog.base import DEFAULT_DATABASE, check_name, resolve_name
from lakekit.errors import (
    AlreadyExistsError,
    DatabaseNotFoundError,
    InvalidOptionError,
    LakeError,
    SessionError,
    TableNotFoundError,
    UnsupportedTableError,
)
from lakekit.names import TableName, literal, quote
from lakekit.session.failures import spark_failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from lakekit.session.runner import Runner

T = TypeVar("T")


@dataclass(frozen=True)
class _Entry:
    """A table in Spark's catalog."""

    kind: str
    provider: str
    location: str

    def __str__(self) -> str:
        return f"a {self.provider} table at {self.location}" if self.provider else "a view"

    @property
    def is_only_a_name(self) -> bool:
        """Whether dropping it leaves the table's files where they are."""
        return self.kind == "EXTERNAL" and self.provider == "delta"

    def is_at(self, root: str) -> bool:
        """Whether it is the Delta table in a folder."""
        return self.provider == "delta" and folders.same_place(self.location, root)


class FolderCatalog:
    """The tables of a warehouse folder, which any number of sessions may share.

    What exists is what the folders hold. Spark's own catalog lives in memory and only learns the names: a
    table is registered there when it is first used, and forgotten when its folder is gone.
    """

    def __init__(self, spark: SparkSession, warehouse: str, runner: Runner) -> None:
        """Opens the catalog; nothing is read yet.

        Args:
            spark: the session, classic or Connect.
            warehouse: absolute path or URI of the folder of all tables.
            runner: runs storage code where the warehouse can be reached.
        """
        self.warehouse = warehouse.rstrip("/") or "/"
        self._spark = spark
        self._runner = runner
        self._registered: set[TableName] = set()
        self._known_databases: set[str] = set()
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"FolderCatalog({self.warehouse!r})"

    def _folders(self, function: Callable[..., T], *args: object) -> T:
        return self._runner.run(function, self.warehouse, *args)

    # Databases

    @property
    def current_database(self) -> str:
        """The database of names without one."""
        return self._spark.catalog.currentDatabase()

    def use(self, database: str) -> None:
        """Makes a database the current one.

        Raises:
            DatabaseNotFoundError: if it does not exist.
        """
        name = self._existing_database(database)
        self._register_database(name)
        self._spark.catalog.setCurrentDatabase(name)

    def databases(self) -> list[str]:
        """Returns the names of all databases, sorted."""
        return self._folders(folders.list_databases)

    def create_database(self, name: str, *, if_not_exists: bool = False, comment: str | None = None) -> None:
        """Creates a database.

        Raises:
            AlreadyExistsError: if it exists, unless `if_not_exists`.
        """
        database = check_name("database", name)
        if not self._folders(folders.create_database, database, comment) and not if_not_exists:
            raise AlreadyExistsError(
                f"Database '{database}' exists already.", "Choose another name, or use IF NOT EXISTS."
            )
        self._register_database(database)

    def drop_database(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Drops a database, and with `cascade` everything in it.

        Raises:
            DatabaseNotFoundError: if it does not exist, unless `if_exists`.
            InvalidOptionError: if it is not empty and `cascade` is not given, or it is the default one.
        """
        database = check_name("database", name)
        if database == DEFAULT_DATABASE:
            raise InvalidOptionError(
                "Database 'default' cannot be dropped.", "Drop the tables in it instead."
            )
        if if_exists and not self._folders(folders.database_exists, database):
            self._forget_database(database)
            return
        self._existing_database(database)
        for table in self.tables(database) if cascade else ():
            self.drop(TableName(database, table), if_exists=True)
        left = self._folders(folders.drop_database, database, cascade)
        if left:
            shown = ", ".join(left[:10])
            raise InvalidOptionError(
                f"Database '{database}' is not empty: it holds {shown}.",
                "Drop what is in it first, or say CASCADE (cascade=True in Python) to drop all of it.",
            )
        self._forget_database(database)

    def database_comment(self, name: str) -> str | None:
        """Returns the comment of a database."""
        return self._folders(folders.read_comment, self._existing_database(name))

    def set_database_comment(self, name: str, comment: str | None) -> None:
        """Sets or, with None, removes the comment of a database."""
        database = self._existing_database(name)
        self._folders(folders.write_comment, database, comment)
        if database in self._known_databases:
            self._spark.sql(f"COMMENT ON DATABASE {quote(database)} IS {literal(comment or '')}")

    def _existing_database(self, name: str) -> str:
        database = check_name("database", name)
        if not self._folders(folders.database_exists, database):
            raise DatabaseNotFoundError.of(database, self.databases())
        return database

    def _register_database(self, database: str) -> None:
        if database in self._known_databases or database == DEFAULT_DATABASE:
            return
        comment = self._folders(folders.read_comment, database)
        self._spark.sql(
            f"CREATE DATABASE IF NOT EXISTS {quote(database)}"
            + (f" COMMENT {literal(comment)}" if comment else "")
            + f" LOCATION {literal(f'{self.warehouse}/{folders.database_folder(database)}')}"
        )
        self._known_databases.add(database)

    def _forget_database(self, database: str) -> None:
        self._known_databases.discard(database)
        self._registered = {name for name in self._registered if name.database != database}
        if not self._spark.catalog.databaseExists(database):
            return
        if self.current_database == database:
            self._spark.catalog.setCurrentDatabase(DEFAULT_DATABASE)
        # Spark deletes the folder of a database that it drops, and another session may just be making a new
        # one of the same name there: so Spark gets another folder to delete, which does not exist.
        nowhere = f"{self.warehouse}/.dropped{folders.database_folder(database)}"
        self._spark.sql(f"ALTER DATABASE {quote(database)} SET LOCATION {literal(nowhere)}")
        self._spark.sql(f"DROP DATABASE IF EXISTS {quote(database)} CASCADE")

    # Tables

    def resolve(self, name: str) -> TableName:
        """Returns database and table that a name stands for; neither needs to exist.

        Raises:
            InvalidNameError: if no table can have that name.
        """
        return resolve_name(name, self.current_database)

    def tables(self, database: str | None = None) -> list[str]:
        """Returns the names of the tables in a database, sorted; the current one by default.

        Raises:
            DatabaseNotFoundError: if the database does not exist.
        """
        name = self._existing_database(database or self.current_database)
        return self._folders(folders.list_tables, name)

    def exists(self, name: TableName) -> bool:
        """Tells whether the table exists now."""
        return self._folders(folders.is_table, folders.table_folder(name))

    def location(self, name: TableName) -> str:
        """Returns path or URI of the table's folder.

        Where asking costs a Spark task, a table that was there before is taken to be there still; reading its
        log will tell otherwise, and then `missing` is to be called.

        Raises:
            TableNotFoundError: if there is no such table.
        """
        if not (self._runner.is_local or name not in self._registered) or self.exists(name):
            return self._root(name)
        raise self.missing(name)

    def _root(self, name: TableName) -> str:
        return f"{self.warehouse}/{folders.table_folder(name)}"

    def new_location(self, name: TableName) -> str:
        """Returns path or URI of the folder that a new table of that name gets.

        Raises:
            DatabaseNotFoundError: if the database does not exist.
        """
        self._existing_database(name.database)
        return self._root(name)

    def missing(self, name: TableName) -> LakeError:
        """Forgets a table that turned out to be gone, and returns the error to raise."""
        self.forget(name)
        if not self._folders(folders.database_exists, name.database):
            return DatabaseNotFoundError.of(name.database, self.databases())
        known = self.tables(name.database)
        return TableNotFoundError.of(str(name), [f"{name.database}.{table}" for table in known])

    def ensure_registered(self, name: TableName) -> None:
        """Makes sure that Spark SQL knows the table under its name.

        Raises:
            TableNotFoundError: if there is no such table.
            UnsupportedTableError: if Spark cannot read it.
            SessionError: if Spark has another table of that name elsewhere.
        """
        root = self.location(name)
        with self._lock:
            # Plain Spark may have dropped the name that was registered.
            if name in self._registered and self._spark.catalog.tableExists(name.sql):
                return
            self._register_database(name.database)
            self._register(name, root)
            self._registered.add(name)

    def _register(self, name: TableName, root: str) -> None:
        entry = self._entry(name)
        if entry is not None and entry.is_at(root):
            return
        if entry is not None:
            if not entry.is_only_a_name:
                raise SessionError(
                    f"The Spark session has another table {name} than this warehouse: {entry}.",
                    "Use another Spark session for this warehouse, or drop that table with Spark.",
                )
            self._spark.sql(f"DROP TABLE IF EXISTS {name.sql}")
        try:
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {name.sql} USING delta LOCATION {literal(root)}")
        except Exception as error:
            reason = spark_failure(error, "Reading it with Spark").message
            raise UnsupportedTableError(
                f"Table {name} cannot be used. {reason}", f"Look at the folder {root}."
            ) from error

    def _entry(self, name: TableName) -> _Entry | None:
        """Returns what Spark's catalog holds under a name, without looking at the table itself."""
        rows = self._spark.sql(
            f"SHOW TABLE EXTENDED IN {quote(name.database)} LIKE {literal(name.table)}"
        ).collect()
        about = next((row.information for row in rows if not row.isTemporary), None)
        if about is None:
            return None
        facts = dict(line.split(": ", 1) for line in about.splitlines() if ": " in line)
        return _Entry(facts.get("Type", ""), facts.get("Provider", ""), facts.get("Location", ""))

    def register_all(self) -> None:
        """Makes all tables known to Spark SQL; those that cannot be read are left out."""
        for database in self.databases():
            self._register_database(database)
            for table in self.tables(database):
                name = TableName(database, table)
                try:
                    self.ensure_registered(name)
                except LakeError:
                    # One broken table must not keep the others from being used; using it tells what is wrong.
                    continue

    def forget(self, name: TableName) -> None:
        """Removes a table from what Spark SQL knows; its files are not touched.

        A table of another kind or place that Spark has under that name stays.
        """
        with self._lock:
            self._registered.discard(name)
            if not self._spark.catalog.databaseExists(name.database):
                return
            entry = self._entry(name)
            if entry is not None and entry.is_at(self._root(name)):
                self._spark.sql(f"DROP TABLE IF EXISTS {name.sql}")

    def drop(self, name: TableName, *, if_exists: bool = False) -> None:
        """Drops a table and deletes its files.

        Raises:
            TableNotFoundError: if there is no such table, unless `if_exists`.
            InvalidNameError: if a link leads out of the warehouse; then nothing was deleted.
        """
        if not self.exists(name):
            if if_exists:
                self.forget(name)
                return
            raise self.missing(name)
        with self._lock:
            # Files first: if they may not be deleted, all stays as it was; and Spark, which deletes the files of a
            # table that it made itself, finds none.
            self._folders(folders.delete_table, folders.table_folder(name))
            self.forget(name)

    def rename(self, old: TableName, new: TableName) -> None:
        """Renames a table, and moves its folder.

        Raises:
            TableNotFoundError: if there is no table `old`.
            DatabaseNotFoundError: if the database of `new` does not exist.
            AlreadyExistsError: if there is a table `new`.
            UnsupportedTableError: in an object store, where a folder cannot be moved at once.
        """
        if not self.exists(old):
            raise self.missing(old)
        self._existing_database(new.database)
        if self.exists(new):
            raise AlreadyExistsError(
                f"Table '{new}' exists already.", "Choose another name, or drop it first."
            )
        with self._lock:
            # Moved before it is unregistered: a failed move leaves all as it was, and Spark finds nothing to
            # delete at the old place.
            self._folders(folders.move_table, folders.table_folder(old), folders.table_folder(new))
            self.forget(old)
        self.ensure_registered(new)
