"""Reads rows of a data file by their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakekit.filestore.encoding import in_schema
from lakekit.filestore.keys import Positions, within
from lakekit.skipping.footers import footer_of, open_data_file
from lakekit.skipping.pages import GroupReader
from lakekit.skipping.values import Column
from lakekit.storage.store import Store

if TYPE_CHECKING:
    import pyarrow as pa


def rows_at(store: Store, path: str, positions: Positions, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yields rows of a data file, in the order of the file.

    Args:
        store: the table's folder.
        path: of the file, as the store takes it.
        positions: numbers of rows, ascending.
        schema: columns wanted; those that the file lacks are null.

    Raises:
        DataFileError: if the file is missing or damaged.
    """
    index = footer_of(store, path)
    columns = [Column((name,), None) for name in schema.names]
    with open_data_file(store, path) as source:
        for group in range(index.metadata.num_row_groups):
            length = index.metadata.row_group(group).num_rows
            wanted = within(positions, index.group_starts[group], length)
            if len(wanted):
                found = GroupReader(source, index, group, path).take(columns, wanted)
                yield in_schema(found, len(wanted), schema)
