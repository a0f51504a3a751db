"""Finds rows by primary key in the files of a table, with neither Spark nor a scan.

A key is looked for only in the files of its partition and bucket; there only in files, row groups and pages
whose statistics allow it, by reading the key columns alone. At most one row of a key is not deleted, so the
first one found is
the row: files with the most rows come first. Files of any writer will do, sorted or not.

These functions run where the storage is reached: in this process, or in a task on the cluster.
"""

from __future__ import annotations

import datetime as dt
import functools
import math
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakekit.filestore.encoding import in_schema
from lakekit.filestore.keys import Positions, comparable
from lakekit.names import BUCKET_COLUMN
from lakekit.skipping.footers import columns_of, footer_of, open_data_file, vector_of
from lakekit.skipping.pages import GroupReader
from lakekit.skipping.predicate import And, Comparison
from lakekit.skipping.prune import FileBounds, PartitionBounds, bind, may_match
from lakekit.skipping.rows import FileRows
from lakekit.skipping.values import Column, Columns, arrow_type
from lakekit.storage.actions import AddFile
from lakekit.storage.log import open_log
from lakekit.storage.murmur3 import bucket_of
from lakekit.storage.stats import read_value
from lakekit.table.key_values import need_key, typed_key

if TYPE_CHECKING:
    from lakekit.storage.snapshot import Snapshot
    from lakekit.storage.store import Store

_KEPT_TABLES = 64
Place = tuple[tuple[Any, ...], int]
"""Values of the partition columns in the key (see `_canonical`), and the bucket."""


class KeyedFiles:
    """The files of a snapshot by partition and bucket."""

    def __init__(self, store: Store, snapshot: Snapshot) -> None:
        """Sorts the files into their places; opens none."""
        self.store = store
        self.snapshot = snapshot
        self.names = columns = Columns(snapshot.schema_json)
        self.key: list[Column] = [columns[name] for name in snapshot.primary_key]
        self.partitions = PartitionBounds(snapshot.partition_columns)
        self.partition_key = [c for c in self.key if c.name in self.partitions.columns]
        self.file_key = [c for c in self.key if c.name not in self.partitions.columns]
        self.columns: list[Column] = [columns[n] for n in columns.top_level if n != BUCKET_COLUMN]
        self.stored: list[Column] = [c for c in self.columns if c.name not in self.partitions.columns]
        self._by_place: dict[Place, list[AddFile]] = {}
        for file in snapshot.files.values():
            self._by_place.setdefault(self._place(file), []).append(file)
        for files in self._by_place.values():
            files.sort(key=lambda file: -(file.live_records or file.size))

    def place_of(self, key: Sequence[pa.Array]) -> Place:
        """Returns where a key belongs; `key` has one row."""
        partition = [v for c, v in zip(self.key, key, strict=True) if c in self.partition_key]
        bucket = int(bucket_of(list(key), self.snapshot.buckets or 1)[0])
        return tuple(canonical(v[0].as_py()) for v in partition), bucket

    def at(self, place: Place) -> list[AddFile]:
        """Returns the files of a place, those with the most live rows first."""
        return self._by_place.get(place, [])

    def partition_arrays(self, file: AddFile, count: int = 1) -> dict[str, pa.Array]:
        """Returns the partition columns of `count` rows of a file, without the bucket."""
        columns = [c for c in self.columns if c.name in self.partitions.columns]
        values = [(c, self.snapshot.partition_value(file.partition_values, c.name)) for c in columns]
        return {c.name: pa.array([value] * count, arrow_type(str(c.kind))) for c, value in values}

    def rows_at(
        self,
        file: AddFile,
        reader: GroupReader,
        read: Mapping[str, pa.Array],
        start: int,
        rows: Positions,
        schema: pa.Schema,
    ) -> pa.Table:
        """Returns rows of a row group.

        Args:
            file: the file.
            reader: of the row group.
            read: columns that were read already.
            start: the row of the row group that `read` starts with.
            rows: the rows wanted, counted from `start`, ascending.
            schema: names and types of the columns to return; what the file lacks is null.
        """
        taken = pa.array(rows)
        known = {name: values.take(taken) for name, values in read.items()}
        others = [c for c in self.stored if c.name in schema.names and c.name not in known]
        known |= reader.take(others, start + rows)
        return in_schema(known | self.partition_arrays(file, len(rows)), len(rows), schema)

    def _place(self, file: AddFile) -> Place:
        values = tuple(_parsed(file.partition_values.get(c.name), c.kind) for c in self.partition_key)
        return values, file.bucket or 0


def as_kind(values: pa.Array, column: Column) -> pa.Array:
    """Returns an array of a data file in the type of a column without children."""
    target = arrow_type(str(column.kind))
    return values if values.type == target else values.cast(target)


def canonical(value: Any) -> Any:
    """Returns a value such that equal keys have equal ones: all NaN are one."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@functools.lru_cache(maxsize=4096)
def _parsed(text: str | None, kind: str | None) -> Any:
    if text is None:
        return None
    if kind in ("float", "double") and text.lower() == "nan":
        return "NaN"
    return read_value(text, str(kind))


_tables: OrderedDict[str, KeyedFiles] = OrderedDict()
_tables_lock = threading.Lock()


def keyed_files(store: Store, snapshot: Snapshot) -> KeyedFiles:
    """Returns the files of a snapshot by place; those of the last snapshots asked for are kept."""
    with _tables_lock:
        known = _tables.get(store.root)
        if known is None or known.snapshot is not snapshot:
            known = _tables[store.root] = KeyedFiles(store, snapshot)
        _tables.move_to_end(store.root)
        if len(_tables) > _KEPT_TABLES:
            _tables.popitem(last=False)
        return known


@dataclass(frozen=True)
class FoundRow:
    """A row as it was read.

    Attributes:
        types: type of each column that people see, as in Delta's schema JSON, in the table's order.
        values: for each column that the file has, or that is a partition column, an array of one value.
    """

    types: dict[str, Any]
    values: dict[str, pa.Array]


def find(
    root: str, table: str, given: Mapping[str, Any], instants: Mapping[str, dt.datetime]
) -> FoundRow | None:
    """Returns the row of a key in the newest version of a table, or None.

    Args:
        root: path or URI of the table.
        table: its name, for errors.
        given: a value for each key column.
        instants: see `typed_key`.

    Raises:
        LakeError: what `typed_key` raises, and if a file is missing or damaged.
    """
    log = open_log(root)
    snapshot = log.snapshot()
    need_key(table, snapshot.primary_key, "get()")
    files = keyed_files(log.store, snapshot)
    key = typed_key(table, files.key, given, instants)
    wanted = {c.name: v for c, v in zip(files.key, key, strict=True) if c in files.file_key}
    bound = bind(And(tuple(Comparison(n, "=", v[0].as_py()) for n, v in wanted.items())), files.names)
    for file in files.at(files.place_of(key)):
        bounds = FileBounds(file, files.partitions)
        if may_match(bound, bounds.lookup):
            values = _find_in_file(
                files, file, FileRows(footer_of(log.store, file.file_path), bounds), bound, wanted
            )
            if values is not None:
                types = {c.name: snapshot.column_types[c.name] for c in files.columns}
                return FoundRow(types, {**files.partition_arrays(file), **values})
    return None


def _find_in_file(
    files: KeyedFiles, file: AddFile, rows: FileRows, bound: Any, key: Mapping[str, pa.Array]
) -> dict[str, pa.Array] | None:
    groups = rows.groups(bound)
    if not groups:
        return None
    vector = vector_of(files.store, file.deletion_vector) if file.deletion_vector else ()
    keep = columns_of(files.store, file.file_path)
    with open_data_file(files.store, file.file_path) as source:
        for group in groups:
            reader = GroupReader(source, rows.index, group, file.file_path, keep)
            first = rows.index.group_starts[group]
            for start, stop in rows.ranges(source, bound, group):
                stored = reader.read(files.file_key, start, stop)
                for row in _matches(files, stored, key, stop - start):
                    if first + start + row not in vector:
                        others = [c for c in files.stored if c.name not in stored]
                        found = {name: values.slice(row, 1) for name, values in stored.items()}
                        return found | reader.read(others, start + row, start + row + 1)
    return None


def _matches(
    files: KeyedFiles, stored: Mapping[str, pa.Array], key: Mapping[str, pa.Array], count: int
) -> list[int]:
    """Returns the rows whose key columns have the values of the key."""
    mask = np.ones(count, dtype=np.bool_)
    for column in files.file_key:
        values = comparable(as_kind(stored[column.name], column))
        equal = pc.equal(values, comparable(key[column.name])[0])
        mask &= equal.fill_null(False).to_numpy(zero_copy_only=False)
    return np.flatnonzero(mask).tolist()
