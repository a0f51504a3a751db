"""Batches as the bucket writer takes them: the table's columns in its order and types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakekit import schema as schemas
from lakekit.filestore.layout import OPERATION
from lakekit.names import quote
from lakekit.table.constraints import checked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.storage.snapshot import Snapshot
    from lakekit.table.table import Table


def aligned(table: Table, rows: DataFrame, snapshot: Snapshot) -> DataFrame:
    """Returns rows with the table's columns in its order and types, and OPERATION if they had it.

    Raises:
        SchemaMismatchError: naming every column that is missing, unknown or of another type.
    """
    keep = [OPERATION] if OPERATION in rows.columns else []
    fitted = schemas.align(rows, table.schema_of(snapshot), str(table.name), keep=keep)
    return checked(fitted, snapshot)


def deletions(table: Table, rows: DataFrame, snapshot: Snapshot) -> DataFrame:
    """Returns rows that delete the keys in `rows`; other columns are ignored but for the sequence field."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    wanted = {c.lower() for c in (*snapshot.primary_key, snapshot.sequence_field or "")}
    named = {c.lower() for c in rows.columns} & wanted
    target = table.schema_of(snapshot)
    part = StructType([f for f in target if f.name.lower() in named or f.name in snapshot.primary_key])
    chosen = rows.select(*[quote(c) for c in rows.columns if c.lower() in wanted])
    fitted = schemas.align(chosen, part, str(table.name))
    have = {f.name for f in part}
    columns = [
        F.col(quote(f.name)) if f.name in have else F.lit(None).cast(f.dataType).alias(f.name) for f in target
    ]
    return fitted.select(*columns, F.lit("D").alias(OPERATION))


def by_position(rows: DataFrame) -> DataFrame:
    """Returns the rows with columns c0, c1, …: `mapInArrow` cannot name one with a dot or backtick."""
    return rows.toDF(*[f"c{i}" for i in range(len(rows.columns))])
