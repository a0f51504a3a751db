"""Point look-ups: rows by primary key, without a Spark job on a local warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakekit.table.key_values import naive_instants, need_key
from lakekit.table.lookup import find
from lakekit.table.lookup_many import find_many
from lakekit.table.python_values import converter
from lakekit.table.rows import Rows, to_arrow

if TYPE_CHECKING:
    from lakekit.table.table import Table


def get(table: Table, key: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the row of a key in the newest version, or None.

    Args:
        table: a table with a primary key.
        key: a value for each key column; naive datetimes of a timestamp column are local time, as in PySpark.

    Returns:
        The row's values by column, in the table's order, as ``Row.asDict(recursive=True)`` would give them.

    Raises:
        ColumnNotFoundError: if a name is no key column.
        PrimaryKeyError: if the table has no key, or a key column is missing or null.
        SchemaMismatchError: if a value does not fit its column.
    """
    found = table.lake.runner.run(find, table.root, str(table.name), dict(key), naive_instants(key))
    if found is None:
        return None
    row = dict.fromkeys(found.types)
    for name, values in found.values.items():
        row[name] = converter(found.types[name])(values[0].as_py())
    return row


def get_many(table: Table, keys: Rows) -> pa.Table:
    """Returns the rows of many keys in the newest version; each file is read at most once.

    Args:
        table: a table with a primary key.
        keys: rows that hold the key columns, in any form that `Table.upsert` takes; other columns are
            ignored.

    Returns:
        The rows that exist, one for each key, in the order in which the keys first occur.

    Raises:
        PrimaryKeyError: if the table has no key, or a key column is missing or holds nulls.
        SchemaMismatchError: if a key column is of another type.
    """
    need_key(str(table.name), table.primary_key, "get_many()")
    rows = keys.toArrow() if hasattr(keys, "mapInArrow") else to_arrow(keys, table.schema)
    naive = any(pa.types.is_timestamp(kind) and kind.tz is None for kind in rows.schema.types)
    zone = table.lake.spark.conf.get("spark.sql.session.timeZone") if naive else None
    return table.lake.runner.run(find_many, table.root, str(table.name), rows, zone)
