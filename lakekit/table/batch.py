"""Batches as the bucket writer takes them: the table's columns in its order and types."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import pyarrow as pa

from lakekit import schema as schemas
from lakekit.filestore.few import FEW_ROWS
from lakekit.filestore.layout import OPERATION
from lakekit.names import quote
from lakekit.session.failures import spark_failure
from lakekit.table.constraints import checked, has_rules
from lakekit.table.rows import can_collect, with_nullable_parts

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


def few(table: Table, rows: pa.Table, snapshot: Snapshot) -> DataFrame | pa.Table:
    """Returns few rows that are in this process, as `aligned` does.

    Where they have the table's very types and nothing is to be checked, Spark is not asked.

    Raises:
        SchemaMismatchError: see `aligned`.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    target = table.schema_of(snapshot)
    wanted = {f.name: f.type for f in to_arrow_schema(target)}
    same = len(rows.schema) == len(wanted) and {f.name: f.type for f in rows.schema} == wanted
    if same and not has_rules(snapshot) and not any(pa.types.is_nested(kind) for kind in wanted.values()):
        return rows.select(list(wanted))
    return aligned(table, table.lake.spark.createDataFrame(rows), snapshot)


def collected_if_few(table: Table, rows: DataFrame | pa.Table) -> DataFrame | pa.Table:
    """Returns the rows as an Arrow table if there are no more than FEW_ROWS, as far as Spark can tell beforehand.

    Raises:
        LakeError: for a row that cannot be computed, or breaks a CHECK or a length.
    """
    if isinstance(rows, pa.Table) or not can_collect(rows.schema):
        return rows
    try:
        with table.lake.interruptible():
            if _expected_bytes(rows) > _FEW_BYTES:
                return rows
            found = at_most(rows, FEW_ROWS)
    except Exception as error:
        raise spark_failure(error, f"Writing to table {table.name}") from None
    return rows if found is None else found


def collected(table: Table, rows: DataFrame) -> pa.Table:
    """Returns all rows as an Arrow table.

    Raises:
        LakeError: for a row that cannot be computed, or breaks a CHECK or a length.
    """
    try:
        with table.lake.interruptible():
            return with_nullable_parts(rows).toArrow()
    except Exception as error:
        raise spark_failure(error, f"Writing to table {table.name}") from None


def at_most(rows: DataFrame, limit: int) -> pa.Table | None:
    """Returns the rows in their order, or None if there are more than `limit`; of no partition it fetches many more."""
    first = f"(monotonically_increasing_id() & {_ROW_IN_PARTITION}) <= {limit}"
    found = with_nullable_parts(rows).where(first).toArrow()
    return found if found.num_rows <= limit else None


_FEW_BYTES = 4 << 20
"""More than Spark expects of FEW_ROWS rows, unless they are very wide."""
_ROW_IN_PARTITION = (1 << 33) - 1
"""The bits of `monotonically_increasing_id` that number the rows of a partition."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_STATISTICS = re.compile(r"Statistics\(sizeInBytes=([-+.\dE]+) (\w+)")


def _expected_bytes(rows: DataFrame) -> float:
    """Returns the size of the result that Spark's optimizer expects, which EXPLAIN COST shows."""
    plan = rows.sparkSession.sql("EXPLAIN COST SELECT * FROM {rows}", rows=rows).collect()[0][0]
    found = _STATISTICS.search(plan)
    return float(found[1]) * 1024.0 ** _UNITS.index(found[2]) if found and found[2] in _UNITS else math.inf


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
