"""What the parts of the engine share while one statement runs."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from lakekit.catalog.base import CATALOG_NAMES
from lakekit.errors import (
    DatabaseNotFoundError,
    InvalidNameError,
    LakeError,
    TableNotFoundError,
    UnsupportedTableError,
)
from lakekit.names import TableName, quote, split_name
from lakekit.options import PREFIX
from lakekit.properties import FORMAT_VERSION
from lakekit.sql import parameters
from lakekit.sql.failures import translate
from lakekit.sql.lexer import Kind, string_value, tokenize
from lakekit.sql.parse import Name
from lakekit.sql.text import SqlText

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from lakekit.lake import Lake
    from lakekit.table.table import Table

VIEW_PREFIX = "__lake_"
"""Names of temporary views that stand for system tables; they are not shown."""

_KEPT_VIEWS = 32
_views: WeakKeyDictionary[Lake, deque[str]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Reads:
    """How tables are read where the SQL does not say it itself.

    Attributes:
        mode: the read mode, "file" or "log", before that of the session.
        at: the version, or the time as text.
    """

    mode: str | None = None
    at: int | str | None = None


_reads: ContextVar[Reads | None] = ContextVar("lakekit_reads", default=None)


@contextlib.contextmanager
def reading(reads: Reads) -> Iterator[None]:
    """Makes the statements that this thread runs inside read that way."""
    token = _reads.set(reads)
    try:
        yield
    finally:
        _reads.reset(token)


class Context:
    """One statement on its way: the lake, its parameters, and what was found out.

    Attributes:
        lake: the lake.
        params: values of the parameters.
        source: everything the user wrote, for the places in errors.
        reads: how tables are read where the SQL does not say it.
    """

    def __init__(self, lake: Lake, params: Mapping[str, Any], source: str) -> None:
        """Begins a statement."""
        self.lake = lake
        self.params = params
        self.source = source
        self.reads = _reads.get() or Reads()
        self._tables: dict[tuple[str, ...], Table | None] = {}

    @property
    def settings(self) -> dict[str, str]:
        """The options that SET gave the session, under stored names."""
        return self.lake.settings

    @property
    def reading_settings(self) -> dict[str, str]:
        """The options for a table that is read."""
        own = {} if self.reads.mode is None else {f"{PREFIX}read.mode": self.reads.mode}
        return {**self.settings, **own}

    # Running SQL

    def sql(self, statement: SqlText) -> DataFrame:
        """Runs one statement of Spark with the parameters that it names.

        Raises:
            LakeError: if Spark refuses it.
        """
        with self.translated(statement):
            bound, values = parameters.bind(statement, self.params)
        with self.translated(bound):
            return self.lake.spark.sql(str(bound), args=values)

    @contextlib.contextmanager
    def translated(self, statement: SqlText) -> Iterator[None]:
        """Turns what Spark raises inside into a LakeError with places in the user's text."""
        try:
            yield
        except Exception as error:
            raise translate(
                error,
                statement,
                self.source,
                params=list(self.params),
                tables=self._known_tables,
                databases=self._known_databases,
            ) from None

    def value(self, expression: str) -> Any:
        """Computes a constant expression."""
        text = expression.strip()
        if text.startswith(":") and text[1:] in self.params:
            return self.params[text[1:]]
        tokens = tokenize(text)
        if len(tokens) == 1 and tokens[0].kind is Kind.STRING:
            return string_value(text)
        if len(tokens) == 1 and tokens[0].kind is Kind.NUMBER and text.isdigit():
            return int(text)
        statement = SqlText.generated(f"SELECT ({text}) AS value FROM VALUES (0)")
        frame = self.sql(statement)
        with self.translated(statement):
            return frame.collect()[0][0]

    def _known_tables(self, database: str | None) -> Sequence[str]:
        try:
            return self.lake.tables(database)
        except LakeError:
            return ()

    def _known_databases(self) -> Sequence[str]:
        return self.lake.databases()

    # Names

    def parts(self, name: Name, text: str) -> tuple[str, ...]:
        """Returns the parts of a name; those of ``IDENTIFIER(…)`` are computed."""
        if name.expression is None:
            return name.parts
        value = self.value(text[name.expression[0] : name.expression[1]])
        return tuple(split_name(str(value)))

    def table_name(self, parts: Sequence[str]) -> TableName | None:
        """Returns the name of the table of the lake that the parts could mean, or None."""
        if not 1 <= len(parts) <= 3 or (len(parts) == 3 and not self._is_our_catalog(parts[0])):
            return None
        try:
            return self.lake.catalog.resolve(".".join(quote(p) for p in parts))
        except InvalidNameError:
            return None

    def _is_our_catalog(self, name: str) -> bool:
        if name.lower() == "spark_catalog":
            return True
        configured = self.lake.spark.conf.get(f"spark.sql.catalog.{name}", None) is not None
        return name.lower() in CATALOG_NAMES and not configured

    def find(self, parts: Sequence[str]) -> Table | None:
        """Returns the table of the lake that a name means; None for views and tables of others.

        Raises:
            UnsupportedTableError: if a newer lakekit made it.
        """
        key = tuple(parts)
        if key not in self._tables:
            self._tables[key] = self._open(key)
        return self._tables[key]

    def _open(self, parts: tuple[str, ...]) -> Table | None:
        name = self.table_name(parts)
        # Asked first, because opening forgets a name that is no table of the warehouse, and Spark may have it.
        if name is None or not self.lake.catalog.exists(name):
            return None
        try:
            table = self.lake.table(name.sql)
        except (TableNotFoundError, DatabaseNotFoundError):
            return None
        except UnsupportedTableError:
            if not self._is_foreign(name):
                raise
            self.lake.catalog.ensure_registered(name)
            return None
        if self.is_view(parts):
            return None
        self.lake.catalog.ensure_registered(name)
        return table

    def _is_foreign(self, name: TableName) -> bool:
        """Tells whether it is a Delta table that lakekit did not make."""
        root = self.lake.catalog.location(name)
        return bool(self.lake.runner.run(_has_no_format, root))

    def is_view(self, parts: Sequence[str]) -> bool:
        """Tells whether a temporary view hides the table of that name, as it does in Spark."""
        if len(parts) != 1:
            return False
        try:
            return bool(self.lake.spark.catalog.getTable(quote(parts[0])).isTemporary)
        except Exception:
            # Spark does not know the name yet, so it is no view either.
            return False

    def table(self, parts: Sequence[str]) -> Table:
        """Returns the table of the lake of a name.

        Raises:
            TableNotFoundError: if there is none.
        """
        found = self.find(parts)
        if found is None:
            name = self.table_name(parts)
            raise TableNotFoundError.of(
                str(name or ".".join(parts)), self._known_tables(name.database if name else None)
            )
        return found

    # Views

    def view(self, rows: pa.Table | DataFrame) -> str:
        """Makes rows known to Spark SQL under a name of their own, and returns it."""
        frame = rows if hasattr(rows, "sparkSession") else self.lake.spark.createDataFrame(rows)
        name = f"{VIEW_PREFIX}{uuid4().hex}"
        frame.createOrReplaceTempView(name)
        # A DataFrame of Spark Connect looks its views up whenever it runs, so that they outlive the statement.
        kept = _views.setdefault(self.lake, deque())
        kept.append(name)
        while len(kept) > _KEPT_VIEWS:
            self.lake.spark.catalog.dropTempView(kept.popleft())
        return name


def _has_no_format(root: str) -> bool:
    from lakekit.storage.log import open_log

    return FORMAT_VERSION not in open_log(root).snapshot().configuration
