"""System tables: ``orders$files`` and the like, as rows that Spark SQL can query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakekit.errors import QueryError, did_you_mean
from lakekit.table import log_reads

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from lakekit.sql.hints import Options
    from lakekit.table.table import Table

SYSTEM_TABLES = ("snapshots", "manifests", "files", "buckets", "partitions", "changes", "log")


def split_system_name(name: str) -> tuple[str, str] | None:
    """Splits ``orders$files`` into table and system table; None for a plain name."""
    base, dollar, system = name.rpartition("$")
    return (base, system.lower()) if dollar and base else None


def rows(table: Table, system: str, version: int | None, options: Options) -> pa.Table | DataFrame:
    """Returns the rows of a system table.

    Args:
        table: the table it is about.
        system: its name, without ``$``.
        version: the version to look at; the newest by default.
        options: options of the reference.

    Raises:
        QueryError: if there is no such system table.
    """
    if system == "changes":
        return table.changes(since=options.since, until=version if options.until is None else options.until)
    if system == "log":
        return log_reads.bounded(table, options.table)
    if system not in SYSTEM_TABLES:
        hint = did_you_mean(system, SYSTEM_TABLES) or f"There are ${', $'.join(SYSTEM_TABLES)}."
        raise QueryError(f"Table {table.name} has no system table '${system}'.", hint)
    return getattr(table.inspect, system)(version=version)
