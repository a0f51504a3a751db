"""INSERT OVERWRITE: replaces a table or some of its partitions in one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakekit.errors import ColumnNotFoundError, InvalidOptionError
from lakekit.filestore.conflicts import Isolation, bucket_id
from lakekit.filestore.layout import PartitionValues, partition_of, partition_text
from lakekit.names import quote
from lakekit.storage.actions import AddFile
from lakekit.table import append, batch
from lakekit.table.commit import Commit, Tally
from lakekit.table.rows import Rows, to_dataframe
from lakekit.table.write import Write, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.storage.snapshot import Snapshot
    from lakekit.table.table import Table


def overwrite(table: Table, rows: Rows, partitions: str | Mapping[str, Any] | None) -> Commit:
    """Replaces rows; see `Table.overwrite`.

    Raises:
        InvalidOptionError: for a `partitions` that is none of None, "dynamic" and values of partition columns.
        ColumnNotFoundError: if one of its names is no partition column.
    """
    dataframe = to_dataframe(table.lake.spark, rows, table.schema)
    dynamic = partitions == "dynamic"
    fixed: Mapping[str, Any] = {}
    if isinstance(partitions, Mapping):
        fixed = {_partition_column(table, name): value for name, value in partitions.items()}
        dataframe = _only(table, dataframe, fixed)
    elif partitions is not None and not dynamic:
        raise InvalidOptionError.bad_value("partitions", partitions, "None, 'dynamic', or {column: value}")
    if not table.primary_key:
        condition = " AND ".join(f"{quote(c)} = {_literal(v)}" for c, v in fixed.items()) or None
        return append.overwrite(table, dataframe, condition, dynamic)
    request = Write(
        operation="OVERWRITE",
        build=lambda snapshot: batch.aligned(table, dataframe, snapshot),
        isolation=Isolation.TABLE,
        parameters={"mode": "dynamic" if dynamic else "static", "partitions": ", ".join(fixed) or "all"},
        replaces=_dynamic if dynamic else _static(fixed),
    )
    return table._written(write(table, request))


def _partition_column(table: Table, name: str) -> str:
    for column in table.partition_by:
        if column.lower() == name.lower():
            return column
    raise ColumnNotFoundError(
        f"'{name}' is no partition column of table {table.name}.",
        f"Its partition columns: {', '.join(table.partition_by) or 'none'}.",
    )


def _only(table: Table, rows: DataFrame, fixed: Mapping[str, Any]) -> DataFrame:
    """Fills in the fixed columns where rows lack them, and refuses rows of other partitions."""
    from pyspark.sql import functions as F

    have = {c.lower() for c in rows.columns}
    types = {f.name: f.dataType for f in table.schema}
    for name, value in fixed.items():
        wanted = F.lit(value).cast(types[name])
        if name.lower() not in have:
            rows = rows.withColumn(name, wanted)
            continue
        message = F.lit(
            f"Rows for table {table.name} are outside the overwritten partition {name}={value!r}."
        )
        rows = rows.where(F.when(F.col(quote(name)) == wanted, True).otherwise(F.raise_error(message)))
    return rows


def _literal(value: Any) -> str:
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"


def _dynamic(snapshot: Snapshot, tally: Tally) -> Sequence[AddFile]:
    written = {bucket_id(f)[0] for f in tally.added}
    return [f for f in snapshot.files.values() if bucket_id(f)[0] in written]


def _static(fixed: Mapping[str, Any]) -> Callable[[Snapshot, Tally], Sequence[AddFile]]:
    wanted: PartitionValues = {name: partition_text(value, name) for name, value in fixed.items()}

    def replaced(snapshot: Snapshot, _: Tally) -> Sequence[AddFile]:
        return [
            f for f in snapshot.files.values() if wanted.items() <= partition_of(f.partition_values).items()
        ]

    return replaced
