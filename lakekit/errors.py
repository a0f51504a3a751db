"""Every error a user can cause.

* LakeError
  x SetupError               Java, jars or packages are missing or do not fit
  x SessionError             the Spark session is unusable or lacks something
  x InvalidNameError         a name no table, database or column can have
  x NotFoundError
    - DatabaseNotFoundError
    - TableNotFoundError
    - ColumnNotFoundError
    - VersionNotFoundError
  x AlreadyExistsError
  x InvalidOptionError       unknown option, or a value it cannot have
  x PrimaryKeyError          the key of a table is missing, null or of a type without a stable order
  x SchemaMismatchError      rows do not have the table's columns
  x ConstraintError          rows break NOT NULL, CHECK or a length
  x UnsupportedTableError    not a lakekit table, made by a newer lakekit, or with features it does not know
  x CorruptLogError          a file of the Delta log is missing or unreadable
  x ConcurrentWriteError     another writer changed the table and the write could not be repeated
  x LogStoreError            the LogStore cannot be reached, or its topic cannot serve the table
  x QueryError               SQL that cannot be parsed or run
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

__all__ = [
    "AlreadyExistsError",
    "ColumnNotFoundError",
    "ConcurrentWriteError",
    "ConstraintError",
    "CorruptLogError",
    "DatabaseNotFoundError",
    "InvalidNameError",
    "InvalidOptionError",
    "LakeError",
    "LogStoreError",
    "NotFoundError",
    "PrimaryKeyError",
    "QueryError",
    "SchemaMismatchError",
    "SessionError",
    "SetupError",
    "TableNotFoundError",
    "UnsupportedTableError",
    "VersionNotFoundError",
]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns ``" Did you mean 'x'?"`` for the closest known name, or an empty string."""
    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f" Did you mean '{by_lower[close[0]]}'?" if close else ""


class LakeError(Exception):
    """The root of all errors of lakekit; its text is one paragraph and ends in a hint."""

    def __init__(self, message: str, hint: str = "") -> None:
        """Builds the error from what happened and what to do about it."""
        self.message = message.strip()
        self.hint = hint.strip()
        super().__init__(f"{self.message} {self.hint}".strip())

    def __reduce__(self) -> tuple[type[LakeError], tuple[str, str]]:
        # Errors travel from Spark tasks to the driver by pickle.
        return type(self), (self.message, self.hint)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a stack: the error in a few lines."""
        lines = [f"{type(self).__name__}: {self.message}"]
        return [*lines, f"Hint: {self.hint}"] if self.hint else lines


class SetupError(LakeError):
    """Java, jars or packages are missing or do not fit together."""


class SessionError(LakeError):
    """The Spark session cannot be used, or lacks something lakekit needs."""


class InvalidNameError(LakeError):
    """A name that no table, database or column can have."""


class NotFoundError(LakeError):
    """Something that was named does not exist."""


class DatabaseNotFoundError(NotFoundError):
    """The database does not exist."""

    @classmethod
    def of(cls, name: str, known: Iterable[str]) -> DatabaseNotFoundError:
        """Builds the error for a database name and the names that exist."""
        hint = did_you_mean(name, known) or f"Create it with CREATE DATABASE {name}."
        return cls(f"Database '{name}' does not exist.", hint)


class TableNotFoundError(NotFoundError):
    """The table does not exist."""

    @classmethod
    def of(cls, name: str, known: Iterable[str]) -> TableNotFoundError:
        """Builds the error for a table name and the names that exist."""
        names = sorted(known)
        listed = f"Tables here: {', '.join(names[:10])}." if names else "Its database has no tables yet."
        return cls(f"Table '{name}' does not exist.", did_you_mean(name, names) or listed)


class ColumnNotFoundError(NotFoundError):
    """The table has no such column."""

    @classmethod
    def of(cls, table: str, column: str, known: Iterable[str]) -> ColumnNotFoundError:
        """Builds the error for a column name and the columns of the table."""
        names = list(known)
        hint = did_you_mean(column, names) or f"Its columns are {', '.join(names)}."
        return cls(f"Table {table} has no column '{column}'.", hint)


class VersionNotFoundError(NotFoundError):
    """The version or time is outside what the table still holds."""

    @classmethod
    def of_version(cls, table: str, version: int, earliest: int, latest: int) -> VersionNotFoundError:
        """Builds the error for a version and the range that can be read."""
        return cls(
            f"Table {table} has no version {version}.", f"Choose a version from {earliest} to {latest}."
        )

    @classmethod
    def of_timestamp(cls, table: str, timestamp: str, earliest: str, latest: str) -> VersionNotFoundError:
        """Builds the error for a timestamp and the range that can be read (ISO texts)."""
        return cls(
            f"Table {table} has no version at {timestamp}.", f"Choose a time from {earliest} to {latest}."
        )


class AlreadyExistsError(LakeError):
    """A table, database or column of that name exists already."""


class InvalidOptionError(LakeError):
    """An unknown option or property, or a value that it cannot have."""

    @classmethod
    def unknown(cls, option: str, known: Iterable[str]) -> InvalidOptionError:
        """Builds the error for an option nobody knows."""
        names = sorted(known)
        return cls(
            f"Unknown option '{option}'.", did_you_mean(option, names) or f"Known: {', '.join(names)}."
        )

    @classmethod
    def bad_value(cls, option: str, value: object, allowed: str) -> InvalidOptionError:
        """Builds the error for a value; `allowed` says in words what fits."""
        return cls(f"Option '{option}' cannot be {value!r}.", f"Allowed: {allowed}.")


class PrimaryKeyError(LakeError):
    """The primary key is missing, null, or of a type that cannot be a key."""

    @classmethod
    def null_keys(cls, table: str, count: int, example: str) -> PrimaryKeyError:
        """Builds the error for rows whose key holds a null; nothing was written."""
        return cls(
            f"{count} row(s) for table {table} have a null in the primary key, for example {example}. "
            "Nothing was written.",
            "Fill the key columns, or filter those rows out.",
        )


class SchemaMismatchError(LakeError):
    """Rows do not have the columns or types of the table."""


class ConstraintError(LakeError):
    """Rows break NOT NULL, CHECK or the length of a column."""

    @classmethod
    def null_columns(cls, table: str, counts: Mapping[str, int]) -> ConstraintError:
        """Builds the error for nulls in NOT NULL columns, with the number of rows for each."""
        listed = ", ".join(f"'{name}' ({count} rows)" for name, count in counts.items())
        return cls(
            f"Rows for table {table} hold null in NOT NULL columns: {listed}. Nothing was written.",
            "Fill those columns, or filter the rows out.",
        )


class UnsupportedTableError(LakeError):
    """A folder that is no lakekit table, or one with features this version does not know."""


class CorruptLogError(LakeError):
    """A file of the Delta log is missing or cannot be read."""


class ConcurrentWriteError(LakeError):
    """Another writer changed the table, and this write could not be repeated on top of it."""


class LogStoreError(LakeError):
    """The LogStore cannot be reached, or its topic cannot serve the table."""

    @classmethod
    def unreachable(cls, servers: str, reason: object) -> LogStoreError:
        """Builds the error for servers that do not answer."""
        return cls(
            f"Kafka at {servers} cannot be reached ({_first_line(reason)}).",
            "Check 'log-store.address', and the settings 'lake.log.*' of lakekit.connect(config=...).",
        )

    @classmethod
    def failed(cls, topic: str, reason: object) -> LogStoreError:
        """Builds the error for a request about a topic that Kafka refused."""
        return cls(f"Kafka refused a request about topic '{topic}': {_first_line(reason)}.")

    @classmethod
    def truncated(cls, topic: str, offsets: object) -> LogStoreError:
        """Builds the error for offsets that the topic does not have (any more)."""
        return cls(
            f"Topic '{topic}' does not have the offsets {offsets} (any more): its retention deleted them, or the topic"
            " was made anew.",
            "Start again from the table: read it with mode 'log', or start the stream with a new checkpoint.",
        )

    @classmethod
    def too_large(cls, topic: str, size: int, limit: int) -> LogStoreError:
        """Builds the error for a record that the broker does not take; sizes are in bytes."""
        return cls(
            f"A row of {size:,} bytes does not fit into topic '{topic}', which takes {limit:,}. Nothing was written.",
            "Raise the topic's max.message.bytes, or write such rows with emit.mode 'file'.",
        )

    @classmethod
    def no_text(cls, column: str) -> LogStoreError:
        """Builds the error for a column with bytes that are no text."""
        return cls(
            f"Column '{column}' holds text that is not UTF-8, which no record can hold. Nothing was written.",
            "Declare the column as BINARY, or clean it, for example with encode(decode(value, 'UTF-8'), 'UTF-8').",
        )

    @classmethod
    def foreign(cls, topic: str, partition: int, offset: int, reason: str) -> LogStoreError:
        """Builds the error for a record that no log of a table has."""
        return cls(
            f"Record {offset} in partition {partition} of topic '{topic}' is not of this log: {reason}.",
            "Give the table a topic of its own, or read with on_foreign='skip'.",
        )


def _first_line(reason: object) -> str:
    text = str(reason) or type(reason).__name__
    return text.splitlines()[0][:300].rstrip(".")


class QueryError(LakeError):
    """SQL that cannot be parsed or run."""
