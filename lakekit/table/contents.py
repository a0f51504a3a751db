"""The files, buckets and partitions of a version; `lakekit.table.inspect` says what the columns are.

These functions run where the storage is reached: in this process, or in a task on the cluster.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lakekit.names import BUCKET_COLUMN
from lakekit.skipping.footers import footer_of
from lakekit.skipping.report import partition_label
from lakekit.storage.log import open_log

if TYPE_CHECKING:
    from lakekit.storage.actions import AddFile
    from lakekit.storage.snapshot import Snapshot
    from lakekit.storage.store import Store

Row = dict[str, Any]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def files(root: str, version: int | None) -> list[Row]:
    """Returns the rows of `FILES_SCHEMA`, by partition, bucket, level and age."""
    log = open_log(root)
    snapshot = log.snapshot(version)
    rows = [_file_row(log.store, snapshot, file) for file in snapshot.files.values()]
    return sorted(rows, key=_file_order)


def buckets(root: str, version: int | None) -> list[Row]:
    """Returns the rows of `BUCKETS_SCHEMA`, by partition and bucket."""
    log = open_log(root)
    snapshot = log.snapshot(version)
    groups: dict[tuple[tuple[tuple[str, str | None], ...], int | None], list[AddFile]] = {}
    for file in snapshot.files.values():
        groups.setdefault((_identity(file), file.bucket), []).append(file)
    rows = []
    for (_, bucket), members in groups.items():
        # A file without a run was written by others and is one of its own.
        runs = {(file.run_id or file.path, file.level or 0) for file in members}
        row = {
            "partition": partition_label(members[0].partition_values),
            "bucket": bucket,
            "runs": len({run for run, _ in runs}),
            "level0_runs": len({run for run, level in runs if level == 0}),
        }
        rows.append(row | _sums(log.store, members) | key_bounds(snapshot, members))
    return sorted(rows, key=lambda row: (row["partition"], -1 if row["bucket"] is None else row["bucket"]))


def partitions(root: str, version: int | None) -> list[Row]:
    """Returns the rows of `PARTITIONS_SCHEMA`, by name."""
    log = open_log(root)
    snapshot = log.snapshot(version)
    groups: dict[tuple[tuple[str, str | None], ...], list[AddFile]] = {}
    for file in snapshot.files.values():
        groups.setdefault(_identity(file), []).append(file)
    rows = []
    for identity, members in groups.items():
        row = {
            "partition": partition_label(members[0].partition_values),
            "partition_values": list(identity),
            "buckets": len({file.bucket for file in members}),
        }
        rows.append(row | _sums(log.store, members))
    return sorted(rows, key=lambda row: str(row["partition"]))


def live_rows(store: Store, snapshot: Snapshot) -> int:
    """Returns how many rows can be read at a version."""
    return sum(_records(store, file) - _deleted(file) for file in snapshot.files.values())


def moment(millis: int) -> dt.datetime:
    """Returns a time of the log, in ms since 1970, as an aware datetime."""
    return _EPOCH + dt.timedelta(milliseconds=millis)


def key_bounds(snapshot: Snapshot, files: Iterable[AddFile]) -> Row:
    """Returns `key_min` and `key_max` of some files: for each key column the bounds over all of them."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    members = list(files)
    for column in snapshot.primary_key:
        ranges = [_range(snapshot, file, column) for file in members]
        known = [r for r in ranges if r is not None]
        if known and len(known) == len(ranges):
            low[column] = min(r[0] for r in known)
            high[column] = max(r[1] for r in known)
    return {"key_min": _json(low), "key_max": _json(high)}


def _range(snapshot: Snapshot, file: AddFile, column: str) -> tuple[Any, Any] | None:
    if column in snapshot.partition_columns:
        try:
            value = snapshot.partition_value(file.partition_values, column)
        except ValueError:
            return None
        return None if value is None else (value, value)
    return file.with_types(snapshot.column_types).column_stats.range(column)


def _json(values: dict[str, Any]) -> str | None:
    return json.dumps(values, ensure_ascii=False, default=_plain) if values else None


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _identity(file: AddFile) -> tuple[tuple[str, str | None], ...]:
    return tuple((k, v) for k, v in file.partition_values.items() if k != BUCKET_COLUMN)


def _file_row(store: Store, snapshot: Snapshot, file: AddFile) -> Row:
    total = _records(store, file)
    deleted = _deleted(file)
    return {
        "path": file.file_path,
        "partition": partition_label(file.partition_values),
        "partition_values": list(_identity(file)),
        "bucket": file.bucket,
        "level": file.level,
        "run_id": file.run_id,
        "rows": total - deleted,
        "deleted_rows": deleted,
        "deleted_share": deleted / total if total else None,
        "bytes": file.size,
        "modified_at": moment(file.modification_time),
        **key_bounds(snapshot, [file]),
    }


def _file_order(row: Row) -> tuple[Any, ...]:
    bucket, level = (-1 if row[name] is None else row[name] for name in ("bucket", "level"))
    return row["partition"], bucket, -level, row["modified_at"], row["path"]


def _sums(store: Store, files: Sequence[AddFile]) -> Row:
    total = sum(_records(store, file) for file in files)
    deleted = sum(_deleted(file) for file in files)
    return {
        "rows": total - deleted,
        "deleted_rows": deleted,
        "deleted_share": deleted / total if total else None,
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "modified_at": moment(max(file.modification_time for file in files)),
    }


def _deleted(file: AddFile) -> int:
    return file.deletion_vector.cardinality if file.deletion_vector else 0


def _records(store: Store, file: AddFile) -> int:
    """Returns the rows of a file, removed ones included; from the file if the log does not say."""
    if file.num_records is not None:
        return file.num_records
    return int(footer_of(store, file.file_path).metadata.num_rows)
