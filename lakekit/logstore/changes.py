"""What a commit of the FileStore did to rows: a function of its actions, so anybody can work it out, at any time.

Old rows are those that the commit takes out of files, by deletion vectors or with the whole file; new ones are those it
brings in. By key they pair up: an old and a new row are -U and +U, a new one alone is +I, an old one alone -D. Delta's
change data feed says the same of the same commit.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakekit.filestore.keys import Positions, key_columns, within
from lakekit.filestore.matching import match
from lakekit.filestore.merge import file_batches, without
from lakekit.logstore.records import RowKind
from lakekit.names import BUCKET_COLUMN
from lakekit.skipping.positions import rows_at
from lakekit.storage.actions import Action, AddFile, DeletionVector, RemoveFile
from lakekit.storage.log import open_log
from lakekit.storage.stats import ColumnStats
from lakekit.storage.store import Store
from lakekit.storage.vectors import positions_of, read_vector

if TYPE_CHECKING:
    from lakekit.storage.snapshot import Snapshot

_MANY = 1 << 30
"""Rows of a file whose statistics do not tell."""


@dataclass(frozen=True)
class FileChange:
    """What a commit did to one data file.

    Attributes:
        path: of the file, as `Store` takes it.
        partition: values of the partition columns, the bucket apart.
        bucket: of the file; None in tables without buckets.
        was_live: whether the file was part of the table before.
        is_live: whether it is afterwards.
        before: rows that were deleted before.
        after: rows that are afterwards.
        rows: how many rows changed, as far as the log tells.
    """

    path: str
    partition: Mapping[str, Any]
    bucket: int | None
    was_live: bool
    is_live: bool
    before: DeletionVector | None
    after: DeletionVector | None
    rows: int

    def topic_partition(self, partitions: int) -> int:
        """Returns where the log has the file's rows: all rows of a key go the same way."""
        return (zlib.crc32(self.path.encode()) if self.bucket is None else self.bucket) % partitions


def file_changes(actions: Iterable[Action], snapshot: Snapshot) -> list[FileChange]:
    """Returns the files whose rows a commit changed, in a fixed order.

    Args:
        actions: of the commit.
        snapshot: any version of the table.
    """
    files = [a for a in actions if isinstance(a, (AddFile, RemoveFile)) and a.data_change]
    removed = {f.file_path: f for f in files if isinstance(f, RemoveFile)}
    added = {f.file_path: f for f in files if isinstance(f, AddFile)}
    columns = [c for c in snapshot.partition_columns if c != BUCKET_COLUMN]
    changes = []
    for path in sorted({*removed, *added}):
        old, new = removed.get(path), added.get(path)
        values = (added.get(path) or removed[path]).partition_values or {}
        bucket = values.get(BUCKET_COLUMN)
        changes.append(
            FileChange(
                path=path,
                partition={c: snapshot.partition_value(values, c) for c in columns},
                bucket=None if bucket is None else int(bucket),
                was_live=old is not None,
                is_live=new is not None,
                before=old.deletion_vector if old else None,
                after=new.deletion_vector if new else None,
                rows=abs(_live_records(new) - _live_records(old)),
            )
        )
    return changes


def _live_records(file: AddFile | RemoveFile | None) -> int:
    if file is None:
        return 0
    rows = ColumnStats.parse(file.stats, {}).num_records
    deleted = file.deletion_vector.cardinality if file.deletion_vector else 0
    return _MANY if rows is None else rows - deleted


def live_files(root: str, version: int) -> list[FileChange]:
    """Returns all files of a version, as if it had brought them."""
    snapshot = open_log(root).snapshot(version)
    files = [replace(file, data_change=True) for file in snapshot.files.values()]
    return file_changes(files, snapshot)


def by_bucket(changes: Iterable[FileChange]) -> dict[Any, tuple[FileChange, ...]]:
    """Groups changes by partition and bucket."""
    found: dict[Any, tuple[FileChange, ...]] = {}
    for change in changes:
        place = (*change.partition.values(), change.bucket)
        found[place] = (*found.get(place, ()), change)
    return found


@dataclass(frozen=True)
class RowChanges:
    """Rows with their kinds, in an order in which a -U comes right before its +U."""

    kinds: Sequence[RowKind]
    rows: pa.Table


def row_changes(
    store: Store, changes: Iterable[FileChange], schema: pa.Schema, key: Sequence[str]
) -> Iterator[RowChanges]:
    """Yields what files' changes mean for rows, always in the same order.

    Rows that go are held, one bucket at a time; rows that come are read batch by batch.

    Args:
        store: the table's folder.
        changes: of the files of whole buckets.
        schema: the table's columns, without the bucket.
        key: the primary key; without one, nothing is paired.
    """
    for own in by_bucket(changes).values():
        gone = pa.concat_tables([schema.empty_table(), *_rows(store, own, schema, came=False)])
        paired = np.zeros(gone.num_rows, dtype=np.bool_)
        for came in _rows(store, own, schema, came=True):
            old, new = _pairs(gone, came, key)
            paired[old] = True
            yield interleave(gone.take(pa.array(old)), came, new)
        left = gone.filter(pa.array(~paired))
        if left.num_rows:
            yield RowChanges([RowKind.DELETE] * left.num_rows, left)


def interleave(before: pa.Table, after: pa.Table, updated: Positions) -> RowChanges:
    """Returns new rows with the old ones that they replace.

    Args:
        before: the old rows.
        after: the new rows.
        updated: for each old row the position of its new row.
    """
    is_update = np.zeros(after.num_rows, dtype=np.bool_)
    is_update[updated] = True
    # A new row stands at an odd place, its old row right before it.
    place = np.concatenate([updated * 2, np.arange(after.num_rows) * 2 + 1])
    order = np.argsort(place, kind="stable")
    kinds = [RowKind.UPDATE_BEFORE] * before.num_rows
    kinds += [RowKind.UPDATE_AFTER if each else RowKind.INSERT for each in is_update.tolist()]
    rows = pa.concat_tables([before, after]).take(pa.array(order))
    return RowChanges([kinds[i] for i in order.tolist()], rows)


def _pairs(gone: pa.Table, came: pa.Table, key: Sequence[str]) -> tuple[Positions, Positions]:
    """Returns positions of old rows and, for each, of the new row with its key."""
    if not key:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return match(key_columns(gone, key), key_columns(came, key))


def _rows(store: Store, changes: Sequence[FileChange], schema: pa.Schema, came: bool) -> Iterator[pa.Table]:
    """Yields the rows that the files' changes bring in, or take out."""
    for change in changes:
        old, new = _dead(store, change.was_live, change.before), _dead(store, change.is_live, change.after)
        there, elsewhere = (new, old) if came else (old, new)
        if there is None:
            continue
        stored = pa.schema([f for f in schema if f.name not in change.partition])
        if elsewhere is None:
            batches = _all_but(store, change.path, there, stored)
        else:  # the file stays: only rows whose mark has changed
            batches = rows_at(store, change.path, np.setdiff1d(elsewhere, there), stored)
        for rows in batches:
            if rows.num_rows:
                yield _with_partition(rows, change.partition, schema)


def _dead(store: Store, live: bool, vector: DeletionVector | None) -> Positions | None:
    """Returns the deleted rows of a file that is live, and None for one that is not."""
    return positions_of(read_vector(store, vector)) if live else None


def _all_but(store: Store, path: str, dead: Positions, schema: pa.Schema) -> Iterator[pa.Table]:
    for offset, rows in file_batches(store, path, schema):
        yield without(rows, within(dead, offset, rows.num_rows))


def _with_partition(rows: pa.Table, partition: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    columns = [
        pa.array([partition[f.name]] * rows.num_rows, f.type) if f.name in partition else rows.column(f.name)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
