"""Batches as the bucket writer takes them: the table's columns in its order and types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lakekit import schema as schemas
from lakekit.filestore.layout import OPERATION
from lakekit.names import quote
from lakekit.session.failures import spark_failure
from lakekit.table.constraints import checked, has_rules

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


def few(table: Table, rows: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Returns few rows that are in this process, as `aligned` does.

    Where they have the table's very types and nothing is to be checked, Spark is not asked.

    Raises:
        SchemaMismatchError: see `aligned`.
        ConstraintError: for a row that breaks a CHECK or a length.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    target = table.schema_of(snapshot)
    wanted = {f.name: f.type for f in to_arrow_schema(target)}
    same = len(rows.schema) == len(wanted) and {f.name: f.type for f in rows.schema} == wanted
    if same and not has_rules(snapshot) and not any(pa.types.is_nested(kind) for kind in wanted.values()):
        return rows.select(list(wanted))
    return collected(table, aligned(table, table.lake.spark.createDataFrame(rows), snapshot))


def collected(table: Table, rows: DataFrame) -> pa.Table:
    """Returns few rows of Spark's, which it computes by itself from rows that were in this process."""
    try:
        with table.lake.interruptible():
            return rows.toArrow()
    except Exception as error:
        raise spark_failure(error, f"Writing to table {table.name}") from None


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
