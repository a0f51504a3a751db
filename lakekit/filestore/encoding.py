"""How data files are encoded, the settings of the Parquet writer, and how what is read of them fits a schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

DICTIONARY_BYTES = 64 << 10
"""A column whose dictionary grows past this is written plain: a look-up would have to decode the whole dictionary."""
PAGE_BYTES = 256 << 10
"""Pages of this size let the page index skip more of a row group than Parquet's 1 MB."""


def parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """Returns the keyword arguments of `pyarrow.parquet.ParquetWriter` for data files.

    Columns of floats get neither statistics nor a dictionary. PyArrow leaves NaN out of the minimum and maximum, and
    Parquet's dictionary tells -0.0 from 0.0, so Spark would skip rows that its own comparisons find.
    """
    exact = [path for field in schema for path, kind in _leaves(field, ()) if not pa.types.is_floating(kind)]
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": exact,
        "write_statistics": exact,
        "write_page_index": True,
        "dictionary_pagesize_limit": DICTIONARY_BYTES,
        "data_page_size": PAGE_BYTES,
        "store_schema": False,
    }


def in_schema(columns: Mapping[str, pa.Array], rows: int, schema: pa.Schema) -> pa.Table:
    """Returns columns of a data file as the schema has them now; what the file lacks is null.

    Args:
        columns: what was read, by name, `rows` values each; columns that the schema has not are left out.
        rows: number of rows.
        schema: names and types of the table's columns, which may be wider than the file's.
    """
    arrays = []
    for field in schema:
        values = columns[field.name] if field.name in columns else pa.nulls(rows, field.type)
        arrays.append(values if values.type == field.type else values.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _leaves(field: pa.Field, path: tuple[str, ...]) -> Iterator[tuple[str, pa.DataType]]:
    """Yields path and type of each Parquet column of a field."""
    path = (*path, field.name)
    kind = field.type
    if pa.types.is_struct(kind):
        for child in kind:
            yield from _leaves(child, path)
    elif pa.types.is_map(kind):
        yield from _leaves(kind.key_field.with_name("key"), (*path, "key_value"))
        yield from _leaves(kind.item_field.with_name("value"), (*path, "key_value"))
    elif pa.types.is_list(kind):
        yield from _leaves(kind.value_field.with_name("element"), (*path, "list"))
    else:
        yield ".".join(path), kind
