"""Merges the sorted runs of a bucket into one, in bounded memory: the body of a compaction's Spark task.

Deletion vectors leave each key at most once in a bucket, so merging needs no comparison of versions. In each round
every run offers its next batch; rows up to the smallest of the batches' last keys are complete, and are sorted
together and written. Memory is one batch of each run.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakekit.filestore.compaction import Unit
from lakekit.filestore.encoding import in_schema
from lakekit.filestore.keys import Positions, within
from lakekit.filestore.layout import BucketLayout
from lakekit.filestore.result import BucketResult
from lakekit.filestore.runs import RunWriter
from lakekit.storage.actions import AddFile
from lakekit.storage.store import Store
from lakekit.storage.vectors import positions_of, read_vector

BATCH_ROWS = 64 * 1024


def merge_unit(layout: BucketLayout, unit: Unit) -> BucketResult:
    """Merges the files of a unit into one sorted run and returns the actions that replace them."""
    store = layout.store()
    partition, bucket = unit.bucket
    writer = RunWriter(
        store, layout, dict(partition), bucket, unit.level, uuid.uuid4().hex, data_change=False
    )
    sources = [_Source(store, run, layout) for run in _sorted_runs(unit.files)]
    for rows in _merged(sources, layout.sort_columns):
        writer.write(rows)
    now = int(time.time() * 1000)
    return BucketResult(
        added=writer.close(),
        removed=[f.remove(now, data_change=False) for f in unit.files],
        touched={unit.bucket},
    )


def merge_in_turn(layout: BucketLayout, units: Sequence[Unit]) -> list[BucketResult]:
    """Merges units one after the other."""
    return [merge_unit(layout, unit) for unit in units]


def _sorted_runs(files: Sequence[AddFile]) -> list[list[AddFile]]:
    """Groups files by run, each in key order (their ranges are disjoint); a foreign file is a run of its own."""
    runs: dict[str, list[AddFile]] = {}
    for file in files:
        runs.setdefault(file.run_id if file.sort_columns and file.run_id else file.path, []).append(file)
    return [sorted(run, key=_first_key) for run in runs.values()]


def _first_key(file: AddFile) -> tuple[Any, ...]:
    statistics = file.column_stats
    ranges = [statistics.range(c) for c in file.sort_columns[:1]]
    return tuple(r[0] for r in ranges if r is not None and r[0] is not None)


def _merged(sources: Sequence[_Source], columns: Sequence[str]) -> Iterator[pa.Table]:
    open_sources = [s for s in sources if s.advance()]
    while open_sources:
        if len(open_sources) == 1:
            yield open_sources[0].rest()
        else:
            bound = min(s.last_key for s in open_sources)
            parts = [s.take_up_to(bound) for s in open_sources]
            rows = pa.concat_tables([p for p in parts if p.num_rows])
            yield sort_by(rows, columns)
        open_sources = [s for s in open_sources if s.remaining or s.advance()]


def sort_by(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Returns the rows sorted by the columns, ascending, as Spark sorts keys (NaN last)."""
    order = pc.sort_indices(rows.select(list(columns)), sort_keys=[(c, "ascending") for c in columns])
    return rows.take(order)


class _Source:
    """The live rows of one run, batch by batch, in key order."""

    def __init__(self, store: Store, files: Sequence[AddFile], layout: BucketLayout) -> None:
        self._batches = self._read(store, files, layout)
        self._columns = layout.sort_columns
        self._rows = layout.schema.empty_table()

    @property
    def remaining(self) -> bool:
        return self._rows.num_rows > 0

    @property
    def last_key(self) -> tuple[Any, ...]:
        return _key(self._rows, self._columns, self._rows.num_rows - 1)

    def advance(self) -> bool:
        """Loads the next batch with live rows; False at the end."""
        self._rows = next((b for b in self._batches if b.num_rows), self._rows)
        return self.remaining

    def rest(self) -> pa.Table:
        rows, self._rows = self._rows, self._rows.slice(0, 0)
        return rows

    def take_up_to(self, bound: tuple[Any, ...]) -> pa.Table:
        """Takes the rows whose key is at most `bound`."""
        low, high = 0, self._rows.num_rows
        while low < high:
            middle = (low + high) // 2
            if _key(self._rows, self._columns, middle) <= bound:
                low = middle + 1
            else:
                high = middle
        taken, self._rows = self._rows.slice(0, low), self._rows.slice(low)
        return taken

    @staticmethod
    def _read(store: Store, files: Sequence[AddFile], layout: BucketLayout) -> Iterator[pa.Table]:
        for file in files:
            batches = live_batches(store, file, layout.schema)
            if file.sort_columns == layout.sort_columns:
                yield from batches
            else:  # written by somebody else, in any order: such a file is sorted as a whole
                found = list(batches)
                if found:
                    whole = sort_by(pa.concat_tables(found), layout.sort_columns)
                    yield from (whole.slice(i, BATCH_ROWS) for i in range(0, whole.num_rows, BATCH_ROWS))


def live_batches(store: Store, file: AddFile, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yields the rows of a data file that are not deleted, in the given schema; columns it lacks are null."""
    dead = positions_of(read_vector(store, file.deletion_vector))
    for offset, rows in file_batches(store, file.file_path, schema):
        yield without(rows, within(dead, offset, rows.num_rows))


def without(rows: pa.Table, positions: Positions) -> pa.Table:
    """Returns the rows but for those at some positions."""
    if not len(positions):
        return rows
    keep = np.ones(rows.num_rows, dtype=np.bool_)
    keep[positions] = False
    return rows.filter(pa.array(keep))


def file_batches(store: Store, path: str, schema: pa.Schema) -> Iterator[tuple[int, pa.Table]]:
    """Yields all rows of a data file in the given schema, each batch with the number of its first row."""
    parquet = pq.ParquetFile(store.open_input(path))
    present = set(parquet.schema_arrow.names)
    names = [name for name in schema.names if name in present]
    offset = 0
    for batch in parquet.iter_batches(batch_size=BATCH_ROWS, columns=names, use_threads=False):
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        yield offset, in_schema(columns, batch.num_rows, schema)
        offset += batch.num_rows
    parquet.close()


def _key(rows: pa.Table, columns: Sequence[str], index: int) -> tuple[Any, ...]:
    return tuple(_ordered(rows.column(c)[index].as_py()) for c in columns)


def _ordered(value: Any) -> Any:
    """Makes NaN the greatest of floats, so that keys compare as the files are sorted."""
    if isinstance(value, float):
        return (True, 0.0) if math.isnan(value) else (False, value)
    return value
