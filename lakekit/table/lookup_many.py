"""Finds the rows of many keys at once; see `lakekit.table.lookup`."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakekit.filestore.keys import Mask, Positions, comparable, differs_from_next, sort_order, sortable
from lakekit.filestore.matching import match
from lakekit.names import BUCKET_COLUMN
from lakekit.skipping.footers import columns_of, footer_of, open_data_file, vector_of
from lakekit.skipping.pages import GroupReader
from lakekit.skipping.predicate import In
from lakekit.skipping.prune import FileBounds, bind
from lakekit.skipping.rows import FileRows, Ranges
from lakekit.skipping.values import Bounds, Column, arrow_type
from lakekit.storage.log import open_log
from lakekit.storage.murmur3 import bucket_of
from lakekit.storage.vectors import positions_of
from lakekit.table.key_values import need_key, typed_keys
from lakekit.table.lookup import KeyedFiles, Place, as_kind, keyed_files

if TYPE_CHECKING:
    from lakekit.storage.actions import AddFile

_READERS = 8
_FEW = 64
"""Keys in a row group up to which single pages are read; more are likely to need most pages anyway."""


@dataclass(frozen=True)
class Hits:
    """Rows found in one file: for each the number of its key, and its columns."""

    keys: Positions
    rows: pa.Table


def find_many(root: str, table: str, rows: pa.Table, zone: str | None) -> pa.Table:
    """Returns the rows of many keys in the newest version of a table.

    Args:
        root: path or URI of the table.
        table: its name, for errors.
        rows: has the key columns, and perhaps others.
        zone: time zone of timestamps that have none.

    Returns:
        The rows that exist, one a key, in the order in which the keys first occur.

    Raises:
        LakeError: what `typed_keys` raises, and if a file is missing or damaged.
    """
    log = open_log(root)
    snapshot = log.snapshot()
    need_key(table, snapshot.primary_key, "get_many()")
    files = keyed_files(log.store, snapshot)
    schema = visible_schema(snapshot.metadata.schema_string)
    key = typed_keys(table, files.key, rows, zone)
    first = pa.array(_first_of_each(key))
    key = [values.take(first) for values in key]
    wanted = [v for c, v in zip(files.key, key, strict=True) if c in files.file_key]

    def find_at(task: tuple[Place, Positions]) -> list[Hits]:
        return list(_find_at(files, task[0], wanted, task[1], schema))

    # Each place has its own files, and reading them leaves Python's lock free.
    with ThreadPoolExecutor(_READERS) as pool:
        hits = [hit for found in pool.map(find_at, _by_place(files, key)) for hit in found]
    found = pa.concat_tables([schema.empty_table(), *(hit.rows for hit in hits)])
    order = np.argsort(np.concatenate([np.empty(0, np.int64), *(hit.keys for hit in hits)]), kind="stable")
    return found.take(pa.array(order)).combine_chunks()


@functools.lru_cache(maxsize=64)
def visible_schema(schema_string: str) -> pa.Schema:
    """Returns the Arrow schema of the columns that people see, from Delta's schema text."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    arrow = to_arrow_schema(StructType.fromJson(json.loads(schema_string)))
    return pa.schema([f.with_nullable(True) for f in arrow if f.name != BUCKET_COLUMN])


def _first_of_each(key: Sequence[pa.Array]) -> Positions:
    """Returns the positions of the first row of each key, ascending."""
    columns = [sortable(values) for values in key]
    order = sort_order(columns)
    changes = differs_from_next([values.take(order) for values in columns], len(order))
    starts = np.flatnonzero(np.concatenate([[True] * min(len(order), 1), changes]))
    # Sorting need not be stable: the first of equal keys is the smallest position among them.
    return np.sort(np.minimum.reduceat(order.to_numpy().astype(np.int64), starts)) if len(order) else starts


def _by_place(files: KeyedFiles, key: Sequence[pa.Array]) -> Iterator[tuple[Place, Positions]]:
    """Yields each partition and bucket that keys belong to, and the numbers of those keys."""
    if not len(key[0]):
        return
    codes = bucket_of(key, files.snapshot.buckets or 1).astype(np.int64)
    partition = [v for c, v in zip(files.key, key, strict=True) if c in files.partition_key]
    for values in partition:
        encoded = comparable(values).dictionary_encode()
        _, codes = np.unique(
            codes * len(encoded.dictionary) + encoded.indices.to_numpy(), return_inverse=True
        )
    order = np.argsort(codes, kind="stable")
    for numbers in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        yield files.place_of([values.slice(int(numbers[0]), 1) for values in key]), numbers


def _find_at(
    files: KeyedFiles, place: Place, wanted: Sequence[pa.Array], numbers: Positions, schema: pa.Schema
) -> Iterator[Hits]:
    """Yields the rows of the keys `numbers`, all of which belong to one place, file by file."""
    for file in files.at(place):
        if not len(numbers):
            return
        for hits in _FileSearch(files, file, wanted, schema).find(numbers):
            numbers = _without(numbers, hits.keys)
            yield hits


def _without(numbers: Positions, found: Positions) -> Positions:
    return np.setdiff1d(numbers, found, assume_unique=True)


class _FileSearch:
    """The search for keys in one file."""

    def __init__(
        self, files: KeyedFiles, file: AddFile, wanted: Sequence[pa.Array], schema: pa.Schema
    ) -> None:
        """Opens nothing yet; `wanted` are the key columns that files hold, one row a key."""
        self._files = files
        self._file = file
        self._wanted = wanted
        self._schema = schema
        self._bounds = FileBounds(file, files.partitions)

    def find(self, numbers: Positions) -> Iterator[Hits]:
        """Yields the live rows of the keys with these numbers, each key once."""
        columns = self._files.file_key
        numbers = numbers[self._may_hold(numbers, [self._bounds.lookup(c) for c in columns])]
        if not len(numbers):
            return
        path = self._file.file_path
        rows = FileRows(footer_of(self._files.store, path), self._bounds)
        dead = self._dead()
        with open_data_file(self._files.store, path) as source:
            for group in range(rows.index.metadata.num_row_groups):
                bounds = [rows.index.group_bounds(group, c, self._bounds.may_have_nan(c)) for c in columns]
                some = numbers[self._may_hold(numbers, bounds)]
                for hits in self._find_in_group(source, rows, group, some, dead) if len(some) else ():
                    numbers = _without(numbers, hits.keys)
                    yield hits

    def _find_in_group(
        self, source: pa.NativeFile, rows: FileRows, group: int, numbers: Positions, dead: Positions
    ) -> Iterator[Hits]:
        path = self._file.file_path
        reader = GroupReader(source, rows.index, group, path, columns_of(self._files.store, path))
        first = rows.index.group_starts[group]
        for start, stop in self._ranges(source, rows, group, numbers):
            hits = self._find_in(reader, start, stop, dead - (first + start), numbers)
            if hits is not None:
                numbers = _without(numbers, hits.keys)
                yield hits

    def _may_hold(self, numbers: Positions, bounds: Sequence[Bounds]) -> Mask:
        """Tells for each key whether rows within the bounds may have it."""
        mask = np.ones(len(numbers), dtype=np.bool_)
        taken = pa.array(numbers)
        for column, values, limits in zip(self._files.file_key, self._wanted, bounds, strict=True):
            mask &= _within(values.take(taken), column, limits)
        return mask

    def _ranges(self, source: pa.NativeFile, rows: FileRows, group: int, numbers: Positions) -> Ranges:
        if len(numbers) > _FEW or not self._wanted:
            return [(0, rows.index.metadata.row_group(group).num_rows)]
        values = tuple(self._wanted[0].take(pa.array(numbers)).to_pylist())
        return rows.ranges(source, bind(In(self._files.file_key[0].name, values), self._files.names), group)

    def _dead(self) -> Positions:
        if self._file.deletion_vector is None:
            return np.empty(0, dtype=np.int64)
        return positions_of(vector_of(self._files.store, self._file.deletion_vector))

    def _find_in(
        self, reader: GroupReader, start: int, stop: int, dead: Positions, numbers: Positions
    ) -> Hits | None:
        """Returns the live rows from `start` to `stop` of a row group; `dead` counts from `start`."""
        columns = self._files.file_key
        stored = reader.read(columns, start, stop)
        if columns:
            existing = [comparable(as_kind(stored[c.name], c)) for c in columns]
            taken = pa.array(numbers)
            positions, keys = match(existing, [comparable(values.take(taken)) for values in self._wanted])
        else:
            # The key is made of partition columns alone: all rows of the place have it.
            positions = np.arange(stop - start, dtype=np.int64)
            keys = np.zeros(stop - start, dtype=np.int64)
        live = ~np.isin(positions, dead)
        # Another writer may have left two rows of one key.
        keys, unique = np.unique(numbers[keys[live]], return_index=True)
        positions = positions[live][unique]
        if not len(positions):
            return None
        order = np.argsort(positions)
        rows = self._files.rows_at(self._file, reader, stored, start, positions[order], self._schema)
        return Hits(keys[order], rows)


def _within(values: pa.Array, column: Column, bounds: Bounds) -> Mask:
    """Tells for each value, none of them null, whether rows within the bounds may have it."""
    mask = np.full(len(values), not bounds.only_nulls, dtype=np.bool_)
    kind = arrow_type(str(column.kind))
    if pa.types.is_boolean(kind):
        values, kind = values.cast(pa.int8()), pa.int8()  # Arrow does not order booleans
    tests: list[pa.Array] = []
    if bounds.low is not None:
        tests.append(pc.greater_equal(values, pa.scalar(bounds.low, kind)))
    if bounds.high is not None:
        cut = pc.utf8_slice_codeunits(values, 0, len(bounds.high)) if bounds.prefix else values
        tests.append(pc.less_equal(cut, pa.scalar(bounds.high, kind)))
    for test in tests:
        mask &= test.to_numpy(zero_copy_only=False)
    if pa.types.is_floating(kind) and bounds.nan:
        mask |= pc.is_nan(values).to_numpy(zero_copy_only=False)
    return mask
