"""Small results as DataFrames: what a statement did, and facts about tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakekit.table.commit import Commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.sql.context import Context

COMMIT_SCHEMA = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("operation", pa.string(), nullable=False),
        pa.field("rows_inserted", pa.int64(), nullable=False),
        pa.field("rows_updated", pa.int64(), nullable=False),
        pa.field("rows_deleted", pa.int64(), nullable=False),
        pa.field("rows_late", pa.int64(), nullable=False),
        pa.field("files_added", pa.int64(), nullable=False),
        pa.field("files_removed", pa.int64(), nullable=False),
        pa.field("bytes_added", pa.int64(), nullable=False),
        pa.field("duration_ms", pa.int64(), nullable=False),
        pa.field("skipped", pa.bool_(), nullable=False),
    ]
)
"""What a write returns: the fields of `Commit`."""

STATUS_SCHEMA = pa.schema([pa.field("status", pa.string(), nullable=False)])
"""What a definition returns: what was done, in words."""


def arrow(context: Context, rows: pa.Table) -> DataFrame:
    """Returns Arrow rows as a DataFrame of the session."""
    return context.lake.spark.createDataFrame(rows)


def commit(context: Context, done: Commit) -> DataFrame:
    """Returns what a write did, as one row."""
    return arrow(context, pa.Table.from_pylist([done.as_dict()], COMMIT_SCHEMA))


def status(context: Context, text: str) -> DataFrame:
    """Returns what a definition did, as one row."""
    return arrow(context, pa.Table.from_pylist([{"status": text}], STATUS_SCHEMA))


def texts(context: Context, columns: Mapping[str, Sequence[str | None]]) -> DataFrame:
    """Returns columns of texts."""
    schema = pa.schema([pa.field(name, pa.string()) for name in columns])
    return arrow(context, pa.table(dict(columns), schema=schema))
