"""Turns what users hand over as rows into a Spark DataFrame."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakekit.errors import SchemaMismatchError
from lakekit.filestore.few import FEW_ROWS
from lakekit.names import quote
from lakekit.schema.columns import as_nullable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Rows = Any
"""A Spark DataFrame, a pandas or polars DataFrame, anything else with Arrow data, or a list of dicts."""


def to_dataframe(spark: SparkSession, rows: Rows, schema: StructType) -> DataFrame:
    """Returns the rows as a DataFrame of the session.

    Args:
        spark: the session.
        rows: see `Rows`; dicts may omit columns, which are then null.
        schema: the table's columns, which decide the types of values in dicts.

    Raises:
        SchemaMismatchError: if the rows are of no known kind, or a value does not fit its column.
    """
    here_or_there = in_process(spark, rows, schema)
    if not isinstance(here_or_there, pa.Table):
        return here_or_there
    return spark.createDataFrame(here_or_there)


def in_process(spark: SparkSession, rows: Rows, schema: StructType) -> pa.Table | DataFrame:
    """Returns rows of this process as an Arrow table, and a DataFrame of the session as it is.

    Raises:
        SchemaMismatchError: see `to_dataframe`.
    """
    if not (hasattr(rows, "mapInArrow") and hasattr(rows, "sparkSession")):
        return to_arrow(rows, schema)
    if rows.sparkSession is not spark and type(rows.sparkSession) is not type(spark):
        raise SchemaMismatchError(
            "The DataFrame belongs to another Spark session than the table.",
            "Make it with lake.spark of the same connection.",
        )
    dataframe: DataFrame = rows
    return dataframe


def are_few(rows: pa.Table | DataFrame, schema: StructType) -> bool:
    """Tells whether rows are in this process, and so few that Spark need not be asked to write them."""
    if not isinstance(rows, pa.Table) or not rows.num_columns or rows.num_rows > FEW_ROWS:
        return False
    return can_collect(schema)


def can_collect(schema: StructType) -> bool:
    """Tells whether Spark can return rows as Arrow data; it cannot with variants in them."""
    return not any("variant" in field.dataType.simpleString() for field in schema)


def with_nullable_parts(rows: DataFrame) -> DataFrame:
    """Returns a DataFrame whose nested values have parts that can all be null.

    PySpark's `toArrow` fails where a nested value is null and its parts, by their type, cannot be.
    """
    from pyspark.sql import functions as F

    wanted = {field.name: as_nullable(field.dataType) for field in rows.schema}
    if all(field.dataType == wanted[field.name] for field in rows.schema):
        return rows
    return rows.select(*[F.col(quote(name)).cast(kind).alias(name) for name, kind in wanted.items()])


def to_arrow(rows: Rows, schema: StructType) -> pa.Table:
    """Returns rows that live in this process as an Arrow table; see `to_dataframe`."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, Mapping):
        return _from_dicts([rows], schema)
    if type(rows).__module__.split(".")[0] == "pandas":
        # Through Arrow, because Spark's own conversion of pandas turns missing text into 'NaN'.
        return pa.Table.from_pandas(rows, preserve_index=False)
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows)
    if isinstance(rows, Sequence) and not isinstance(rows, (str, bytes)):
        if all(isinstance(row, Mapping) for row in rows):
            return _from_dicts(rows, schema)
        if all(hasattr(row, "asDict") for row in rows):
            return _from_dicts([row.asDict() for row in rows], schema)
    raise SchemaMismatchError(
        f"Rows of type {type(rows).__name__} cannot be written.",
        "Pass a Spark, pandas or polars DataFrame, an Arrow table, or a list of dicts.",
    )


def _from_dicts(rows: Sequence[Mapping[str, Any]], schema: StructType) -> pa.Table:
    from pyspark.sql.pandas.types import to_arrow_type

    types = {f.name.lower(): to_arrow_type(f.dataType) for f in schema}
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names or [f.name for f in schema]:
        kind = types.get(name.lower())
        values = [row.get(name) for row in rows]
        if kind is not None and pa.types.is_timestamp(kind) and kind.tz is not None:
            values = [_instant(value) for value in values]
        try:
            columns[name] = pa.array(values, type=kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
            wanted = kind or "one type"
            raise SchemaMismatchError(
                f"The values of column '{name}' do not fit {wanted}: {str(error).splitlines()[0]}.",
                "Correct the values, or cast them before they are written.",
            ) from None
    return pa.table(columns)


def _instant(value: Any) -> Any:
    """Takes a naive datetime as local time, as PySpark does, so that collected rows can be written back."""
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return value.astimezone(dt.timezone.utc)
    return value
