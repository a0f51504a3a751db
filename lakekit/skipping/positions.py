"""Reads rows of a data file by their numbers: few by the pages that hold them, many by whole row groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lakekit.filestore.encoding import in_schema
from lakekit.filestore.keys import Positions, within
from lakekit.skipping.footers import footer_of, open_data_file
from lakekit.skipping.pages import GroupReader
from lakekit.skipping.values import Column
from lakekit.storage.store import Store

_FEW = 64
"""Rows of a row group up to which single pages are read; more are likely to need most pages anyway."""


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
            if not len(wanted):
                continue
            reader = GroupReader(source, index, group, path)
            parts = [(0, length, wanted)]
            if len(wanted) <= _FEW:
                parts = [(int(row), int(row) + 1, np.zeros(1, dtype=np.int64)) for row in wanted]
            for start, stop, rows in parts:
                taken = pa.array(rows)
                found = {
                    name: values.take(taken) for name, values in reader.read(columns, start, stop).items()
                }
                yield in_schema(found, len(taken), schema)
