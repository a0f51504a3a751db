"""Names of databases, tables and columns, and the one way to quote them."""

from __future__ import annotations

import re
from typing import NamedTuple

from lakekit.errors import InvalidNameError

BUCKET_COLUMN = "_bucket"
"""The generated partition column that lakekit hides from what it shows people."""

_PLAIN = re.compile(r"[A-Za-z0-9_]+\Z")
_PARTS = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


class TableName(NamedTuple):
    """A database and a table, both without quotes."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"

    @property
    def sql(self) -> str:
        """The name as quoted SQL text."""
        return f"{quote(self.database)}.{quote(self.table)}"


def quote(identifier: str) -> str:
    """Quotes an identifier for Spark SQL; every identifier in generated SQL passes here."""
    return "`" + identifier.replace("`", "``") + "`"


def split_name(name: str) -> list[str]:
    """Splits ``db.table``, with or without backticks, into its parts.

    Raises:
        InvalidNameError: if the text is no dotted name.
    """
    parts: list[str] = []
    position = 0
    while position <= len(name):
        match = _PARTS.match(name, position)
        if match is None:
            raise InvalidNameError(f"'{name}' is not a table name.", "Write it as table or database.table.")
        parts.append(match[1].replace("``", "`") if match[1] is not None else match[2].strip())
        position = match.end()
        if position == len(name):
            return parts
        if name[position] != ".":
            break
        position += 1
    raise InvalidNameError(f"'{name}' is not a table name.", "Write it as table or database.table.")


def check_plain(kind: str, name: str) -> str:
    """Returns `name` in lower case if a database or table can have it.

    Spark's catalog and folders on every file system agree only on ASCII letters, digits and `_`.

    Raises:
        InvalidNameError: if it has any other character, or is too long for a folder.
    """
    if not _PLAIN.match(name) or len(name) > 128:
        raise InvalidNameError(
            f"{name!r} cannot be the name of a {kind}.",
            "Use 1 to 128 ASCII letters, digits and underscores (columns may have other characters).",
        )
    return name.lower()


def literal(text: str) -> str:
    """Quotes a text for generated Spark SQL where a bound parameter is not allowed (DDL clauses)."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
