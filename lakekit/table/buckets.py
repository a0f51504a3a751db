"""How many buckets a table should have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lakekit.options import MAX_BUCKETS

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from lakekit.lake import Lake

MOST_DEFAULT_BUCKETS = 4
"""The most buckets that a table gets without being asked, and what it gets on a cluster."""
BUCKET_BYTES = 1 << 30
"""Bytes of rows, before Parquet encodes them, for which a bucket is meant: 100 to 700 MB of files.

A write reads the keys of the files that may hold its own, and a compaction rewrites a bucket as a whole, so larger ones
cost every write more; smaller ones mean more files and tasks for the same rows. `docs/scaling.md` has the figures.
"""

_FIXED = {
    "boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "date": 4, "float": 4,
    "bigint": 8, "double": 8, "timestamp": 8, "timestamp_ntz": 8,
}  # fmt: skip
_TEXT = 32
_NESTED = 64


def default_buckets(lake: Lake) -> int:
    """Returns the number of buckets of a table of which nothing is known: as many as the local session has cores.

    A bucket is one Spark task of each write, so fewer than the cores leave some idle; and it is at least one
    file of each partition, so many make a small table slow.
    """
    return min(lake.cores or MOST_DEFAULT_BUCKETS, MOST_DEFAULT_BUCKETS)


def suggested_buckets(columns: StructType, rows: int, at_least: int = 1) -> int:
    """Returns how many buckets suit a table, or each partition of one.

    Args:
        columns: its columns.
        rows: how many rows it will grow to.
        at_least: what is returned for few rows.
    """
    bytes_of_row = sum(_width(field.dataType) for field in columns)
    return min(max(math.ceil(rows * bytes_of_row / BUCKET_BYTES), at_least), MAX_BUCKETS)


def _width(kind: DataType) -> int:
    """Returns about how many bytes a value takes."""
    name = kind.simpleString().partition("(")[0]
    if name in ("string", "varchar", "char", "binary"):
        return _TEXT
    return 16 if name == "decimal" else _FIXED.get(name, _NESTED)
