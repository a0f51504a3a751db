"""The catalog of a remote session that has no warehouse of its own: the one that the server has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakekit.catalog import folders
from lakekit.catalog.base import DEFAULT_DATABASE, check_name, resolve_name
from lakekit.errors import (
    AlreadyExistsError,
    DatabaseNotFoundError,
    InvalidOptionError,
    LakeError,
    TableNotFoundError,
    UnsupportedTableError,
)
from lakekit.names import TableName, literal, quote
from lakekit.storage.store import local_root

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakekit.session.runner import Runner


class SessionCatalog:
    """The databases and Delta tables that the session's own catalog has."""

    def __init__(self, spark: SparkSession, runner: Runner) -> None:
        """Wraps the catalog of a session.

        Args:
            spark: the session.
            runner: runs storage code where the tables can be reached.
        """
        self._spark = spark
        self._runner = runner
        self._locations: dict[TableName, str] = {}

    def __repr__(self) -> str:
        return "SessionCatalog()"

    @property
    def current_database(self) -> str:
        """The database of names without one."""
        return self._spark.catalog.currentDatabase()

    def use(self, database: str) -> None:
        """Makes a database the current one.

        Raises:
            DatabaseNotFoundError: if it does not exist.
        """
        self._spark.catalog.setCurrentDatabase(self._existing_database(database))

    def databases(self) -> list[str]:
        """Returns the names of all databases, sorted."""
        return sorted(database.name for database in self._spark.catalog.listDatabases())

    def create_database(self, name: str, *, if_not_exists: bool = False, comment: str | None = None) -> None:
        """Creates a database.

        Raises:
            AlreadyExistsError: if it exists, unless `if_not_exists`.
        """
        database = check_name("database", name)
        if self._spark.catalog.databaseExists(database) and not if_not_exists:
            raise AlreadyExistsError(
                f"Database '{database}' exists already.", "Choose another name, or use IF NOT EXISTS."
            )
        about = f" COMMENT {literal(comment)}" if comment else ""
        self._spark.sql(f"CREATE DATABASE IF NOT EXISTS {quote(database)}{about}")

    def drop_database(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Drops a database, and with `cascade` the tables in it.

        Raises:
            DatabaseNotFoundError: if it does not exist, unless `if_exists`.
            InvalidOptionError: if it is not empty and `cascade` is not given, or it is the default one.
        """
        database = check_name("database", name)
        if database == DEFAULT_DATABASE:
            raise InvalidOptionError(
                "Database 'default' cannot be dropped.", "Drop the tables in it instead."
            )
        if if_exists and not self._spark.catalog.databaseExists(database):
            return
        tables = self.tables(self._existing_database(database))
        if tables and not cascade:
            raise InvalidOptionError(
                f"Database '{database}' is not empty: it holds {', '.join(tables[:10])}.",
                "Drop what is in it first, or say CASCADE (cascade=True in Python) to drop all of it.",
            )
        for table in tables:
            self.drop(TableName(database, table), if_exists=True)
        if self.current_database == database:
            self._spark.catalog.setCurrentDatabase(DEFAULT_DATABASE)
        self._spark.sql(f"DROP DATABASE IF EXISTS {quote(database)} CASCADE")

    def database_comment(self, name: str) -> str | None:
        """Returns the comment of a database."""
        return self._spark.catalog.getDatabase(self._existing_database(name)).description or None

    def set_database_comment(self, name: str, comment: str | None) -> None:
        """Sets or, with None, removes the comment of a database."""
        database = self._existing_database(name)
        self._spark.sql(f"COMMENT ON DATABASE {quote(database)} IS {literal(comment or '')}")

    def _existing_database(self, name: str) -> str:
        database = check_name("database", name)
        if not self._spark.catalog.databaseExists(database):
            raise DatabaseNotFoundError.of(database, self.databases())
        return database

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
        rows = self._spark.sql(f"SHOW TABLES IN {quote(name)}").collect()
        return sorted(row.tableName for row in rows if not row.isTemporary)

    def exists(self, name: TableName) -> bool:
        """Tells whether the table exists now."""
        return bool(self._spark.catalog.tableExists(name.sql))

    def location(self, name: TableName) -> str:
        """Returns path or URI of the table's folder.

        Raises:
            TableNotFoundError: if there is no such table.
            UnsupportedTableError: if it is no Delta table.
        """
        if name not in self._locations:
            if not self.exists(name):
                raise self.missing(name)
            try:
                detail = self._spark.sql(f"DESCRIBE DETAIL {name.sql}").collect()[0]
            except Exception as error:
                raise UnsupportedTableError(
                    f"The table {name} of the session's catalog is no Delta table.",
                    "Read it with plain Spark.",
                ) from error
            if detail.format != "delta":
                raise UnsupportedTableError(
                    f"The table {name} has the format {detail.format}.", "Read it with plain Spark."
                )
            self._locations[name] = detail.location
        return self._locations[name]

    def new_location(self, name: TableName) -> str:
        """Returns path or URI of the folder that a new table of that name gets.

        Raises:
            DatabaseNotFoundError: if the database does not exist.
        """
        database = self._spark.catalog.getDatabase(self._existing_database(name.database))
        return f"{database.locationUri.rstrip('/')}/{name.table}"

    def missing(self, name: TableName) -> LakeError:
        """Forgets a table that turned out to be gone, and returns the error to raise."""
        self._locations.pop(name, None)
        if not self._spark.catalog.databaseExists(name.database):
            return DatabaseNotFoundError.of(name.database, self.databases())
        known = self.tables(name.database)
        return TableNotFoundError.of(str(name), [f"{name.database}.{table}" for table in known])

    def ensure_registered(self, name: TableName) -> None:
        """Makes sure that Spark SQL knows the table; a new folder of this catalog's is registered.

        Raises:
            TableNotFoundError: if there is no such table.
        """
        if not self.exists(name):
            root = self.new_location(name)
            if not self._runner.run(folders.is_table, root, ""):
                raise self.missing(name)
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {name.sql} USING delta LOCATION {literal(root)}")

    def register_all(self) -> None:
        """Does nothing: the session's catalog knows its tables."""

    def forget(self, name: TableName) -> None:
        """Removes a table from what is remembered here; the session's catalog keeps what it has."""
        self._locations.pop(name, None)

    def drop(self, name: TableName, *, if_exists: bool = False) -> None:
        """Drops a table; the files of a Delta table are deleted if they are in the folder of its database.

        Raises:
            TableNotFoundError: if there is no such table, unless `if_exists`.
        """
        if not self.exists(name):
            self.forget(name)
            if if_exists:
                return
            raise self.missing(name)
        folder = self._own_folder(name)
        self._spark.sql(f"DROP TABLE IF EXISTS {name.sql}")
        self.forget(name)
        if folder is not None:
            self._runner.run(folders.delete_table, *folder)

    def _own_folder(self, name: TableName) -> tuple[str, str] | None:
        """Returns folder of the database and name of the table's folder in it; None if its files are elsewhere."""
        try:
            root = self.location(name).rstrip("/")
        except UnsupportedTableError:
            return None
        parent, _, folder = root.rpartition("/")
        database = self.new_location(name).rpartition("/")[0]
        return (database, folder) if folders.same_place(parent, database) else None

    def rename(self, old: TableName, new: TableName) -> None:
        """Renames a table; its files move along where that can be done at once.

        Raises:
            TableNotFoundError: if there is no table `old`.
            AlreadyExistsError: if there is a table `new`.
        """
        if not self.exists(old):
            raise self.missing(old)
        self._existing_database(new.database)
        if self.exists(new):
            raise AlreadyExistsError(
                f"Table '{new}' exists already.", "Choose another name, or drop it first."
            )
        folder = self._own_folder(old)
        if folder is None or old.database != new.database or local_root(folder[0]) is None:
            self._spark.sql(f"ALTER TABLE {old.sql} RENAME TO {new.sql}")
        else:
            self._runner.run(folders.move_table, *folder, new.table)
            self._spark.sql(f"DROP TABLE IF EXISTS {old.sql}")
            self.ensure_registered(new)
        self.forget(old)
