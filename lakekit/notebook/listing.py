"""What the open lake holds, asked so cheaply that it may happen after each cell and at each key press.

No Spark job is started. On a local session the warehouse's folders and logs tell; of a remote session, whose files
only the cluster can reach, the Spark catalog is asked for names and columns. What else there is to say about a table
there costs a Spark task, and is read only when a person asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakekit.names import BUCKET_COLUMN, TableName, quote

if TYPE_CHECKING:
    from lakekit.lake import Lake
    from lakekit.table.table import Table

Details = dict[str, Any]
_MAX_REMEMBERED = 500
_remembered: dict[tuple[str, TableName], Details] = {}


def current_lake() -> Lake | None:
    """Returns the lake that is open in this process, if any; PySpark is not imported to find that there is none."""
    module = sys.modules.get("lakekit.session.connect")
    return module.current() if module is not None else None


def databases(lake: Lake) -> list[str]:
    """Returns the names of the databases, sorted."""
    if lake.runner.is_local:
        return lake.databases()
    return sorted(database.name for database in lake.spark.catalog.listDatabases())


def tables(lake: Lake, database: str) -> list[str]:
    """Returns the names of the tables of a database, sorted.

    Raises:
        DatabaseNotFoundError: if there is no such database.
    """
    if lake.runner.is_local:
        return lake.tables(database)
    rows = lake.spark.sql(f"SHOW TABLES IN {quote(database)}").collect()
    return sorted(row.tableName for row in rows if not row.isTemporary)


def lake_tables(lake: Lake, database: str | None = None) -> Iterator[Table]:
    """Yields the tables of one database, or of all.

    Raises:
        DatabaseNotFoundError: if there is no such database.
    """
    for each in lake.databases() if database is None else [database]:
        for name in lake.tables(each):
            yield lake.table(f"{quote(each)}.{quote(name)}")


def details(lake: Lake, name: TableName) -> Details:
    """Returns what the side panel says of a table: columns, key, partitions, buckets, version and log.

    On a remote session it costs a Spark task. It is remembered for `known`.

    Raises:
        LakeError: if the table is gone or cannot be read.
    """
    from lakekit.table import describe

    table = lake.table(name.sql)
    snapshot = table.snapshot()
    options = table.options_of(snapshot)
    found = {
        "comment": snapshot.metadata.description,
        "columns": describe.columns(table).to_pylist(),
        "key": list(snapshot.primary_key),
        "partitions": list(table.partition_by),
        "buckets": snapshot.buckets,
        "version": snapshot.version,
        "files": len(snapshot.files),
        "log": {"topic": options.log_store_topic, "address": options.log_store_address}
        if options.log_store_enabled
        else None,
    }
    if len(_remembered) >= _MAX_REMEMBERED:
        _remembered.clear()
    _remembered[_place(lake), name] = found
    return found


def known(lake: Lake, name: TableName) -> Details | None:
    """Returns what `details` last said of a table, or None."""
    return _remembered.get((_place(lake), name))


def columns(lake: Lake, name: TableName) -> list[tuple[str, str]]:
    """Returns names and types of a table's columns.

    Raises:
        LakeError: if the table is gone or cannot be read; on a remote session, what Spark raises.
    """
    if lake.runner.is_local:
        return [(c["column"], c["type"]) for c in details(lake, name)["columns"]]
    if (seen := known(lake, name)) is not None:
        return [(c["column"], c["type"]) for c in seen["columns"]]
    fields = lake.spark.table(name.sql).schema.fields
    return [(f.name, f.dataType.simpleString()) for f in fields if f.name != BUCKET_COLUMN]


def _place(lake: Lake) -> str:
    return f"{lake.remote} {lake.warehouse}"
