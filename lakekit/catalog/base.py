"""What every catalog offers, and the rules of names."""

from __future__ import annotations

from typing import Protocol

from lakekit.errors import InvalidNameError, LakeError
from lakekit.names import TableName, check_plain, split_name

DEFAULT_DATABASE = "default"
CATALOG_NAMES = frozenset({"spark_catalog", "lake", "lakekit", "arctic", "mixed", "catalog"})
"""First parts that a name of three parts may have; there is one catalog, whatever it is called."""

_RESERVED = {"database": frozenset({"global_temp"}), "table": frozenset({"_delta_log"})}


class Catalog(Protocol):
    """Databases and tables of a lake."""

    @property
    def current_database(self) -> str:
        """The database of names without one."""

    def use(self, database: str) -> None:
        """Makes a database the current one.

        Raises:
            DatabaseNotFoundError: if it does not exist.
        """

    def resolve(self, name: str) -> TableName:
        """Returns database and table that a name stands for; neither needs to exist.

        Raises:
            InvalidNameError: if no table can have that name.
        """

    def databases(self) -> list[str]:
        """Returns the names of all databases, sorted."""

    def create_database(self, name: str, *, if_not_exists: bool = False, comment: str | None = None) -> None:
        """Creates a database.

        Raises:
            AlreadyExistsError: if it exists, unless `if_not_exists`.
        """

    def drop_database(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Drops a database, and with `cascade` the tables in it.

        Raises:
            DatabaseNotFoundError: if it does not exist, unless `if_exists`.
            InvalidOptionError: if it is not empty and `cascade` is not given.
        """

    def database_comment(self, name: str) -> str | None:
        """Returns the comment of a database."""

    def set_database_comment(self, name: str, comment: str | None) -> None:
        """Sets or, with None, removes the comment of a database."""

    def tables(self, database: str | None = None) -> list[str]:
        """Returns the names of the tables in a database, sorted; the current one by default.

        Raises:
            DatabaseNotFoundError: if the database does not exist.
        """

    def exists(self, name: TableName) -> bool:
        """Tells whether the table exists now."""

    def location(self, name: TableName) -> str:
        """Returns path or URI of the table's folder.

        Raises:
            TableNotFoundError: if there is no such table.
        """

    def new_location(self, name: TableName) -> str:
        """Returns path or URI of the folder that a new table of that name gets.

        Raises:
            DatabaseNotFoundError: if the database does not exist.
        """

    def ensure_registered(self, name: TableName) -> None:
        """Makes sure that Spark SQL knows the table under its name.

        Raises:
            TableNotFoundError: if there is no such table.
        """

    def register_all(self) -> None:
        """Makes all tables known to Spark SQL; those that cannot be read are left out."""

    def forget(self, name: TableName) -> None:
        """Removes a table that is gone from what Spark SQL knows; its files are not touched."""

    def missing(self, name: TableName) -> LakeError:
        """Forgets a table that turned out to be gone, and returns the error to raise."""

    def drop(self, name: TableName, *, if_exists: bool = False) -> None:
        """Drops a table and deletes its files.

        Raises:
            TableNotFoundError: if there is no such table, unless `if_exists`.
        """

    def rename(self, old: TableName, new: TableName) -> None:
        """Renames a table.

        Raises:
            TableNotFoundError: if there is no table `old`.
            AlreadyExistsError: if there is a table `new`.
        """


def resolve_name(name: str, current_database: str) -> TableName:
    """Returns database and table of a dotted name.

    Raises:
        InvalidNameError: if the name has too many parts, or characters that a table's name cannot have.
    """
    parts = split_name(name)
    if len(parts) == 3 and parts[0].lower() in CATALOG_NAMES:
        parts = parts[1:]
    if len(parts) > 2:
        raise InvalidNameError(
            f"'{name}' has {len(parts)} parts.", "Write the name of a table as table or database.table."
        )
    database = check_name("database", parts[0]) if len(parts) == 2 else current_database
    return TableName(database, check_name("table", parts[-1]))


def check_name(kind: str, name: str) -> str:
    """Returns the name of a database or table in lower case.

    Raises:
        InvalidNameError: if none can have it.
    """
    plain = check_plain(kind, name)
    if plain in _RESERVED[kind]:
        raise InvalidNameError(f"'{name}' cannot be the name of a {kind}: it is reserved.", "Choose another.")
    return plain


def plain_names(kind: str, folders: list[str]) -> list[str]:
    """Returns those folder names that are names of databases or tables."""
    found = []
    for folder in folders:
        try:
            if check_name(kind, folder) == folder:
                found.append(folder)
        except InvalidNameError:
            continue
    return found
