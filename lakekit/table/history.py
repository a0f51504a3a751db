"""The commits and log files of a table; `lakekit.table.inspect` says what the columns are.

These functions run where the storage is reached: in this process, or in a task on the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakekit.storage.actions import Action, AddFile, RemoveFile
from lakekit.storage.checkpoint import read_checkpoint
from lakekit.storage.listing import Listing
from lakekit.storage.log import CommitRecord, DeltaLog, open_log
from lakekit.table.contents import Row, key_bounds, live_rows, moment

if TYPE_CHECKING:
    from lakekit.storage.listing import Checkpoint
    from lakekit.storage.snapshot import Snapshot

_INSERTED = ("numInsertedRows", "numTargetRowsInserted")
_UPDATED = ("numUpdatedRows", "numTargetRowsUpdated")
_DELETED = ("numDeletedRows", "numTargetRowsDeleted")
_DURATION = ("durationMs", "executionTimeMs")
_APPENDS = frozenset({"WRITE", "STREAMING UPDATE", "CREATE TABLE AS SELECT"})


def snapshots(root: str, version: int | None) -> list[Row]:
    """Returns the rows of `SNAPSHOTS_SCHEMA`, oldest first."""
    log = open_log(root)
    snapshot = log.snapshot(version)
    records = log.commits(end=snapshot.version)
    live = _rows_by_version(records, live_rows(log.store, snapshot))
    rows = []
    files, size = len(snapshot.files), snapshot.total_bytes
    # The sums of a version are those of the next one before its commit, so history is told backwards.
    for record in reversed(records):
        rows.append(_commit_row(record) | {"rows": live[record.version], "files": files, "bytes": size})
        files += record.n_removed - record.n_added
        size += record.bytes_removed - record.bytes_added
    return rows[::-1]


def _rows_by_version(records: Sequence[CommitRecord], newest: int | None) -> dict[int, int | None]:
    """Returns how many rows the table had at each version: from the end and, past gaps, from the beginning."""
    found: dict[int, int | None] = {}
    total = newest
    for record in reversed(records):
        found[record.version] = total
        gained = _gained(record)
        total = None if total is None or gained is None else total - gained
    total = 0 if records and records[0].version == 0 else None
    for record in records:
        gained = _gained(record)
        total = None if total is None or gained is None else total + gained
        if found[record.version] is None:
            found[record.version] = total
    return found


def _gained(record: CommitRecord) -> int | None:
    if record.rows_added is None or record.rows_removed is None:
        return None
    return record.rows_added - record.rows_removed


def manifests(root: str, version: int | None) -> list[Row]:
    """Returns the rows of `MANIFESTS_SCHEMA`, oldest first."""
    log = open_log(root)
    snapshot = log.snapshot(version)
    listing = Listing.of(log.store)
    usable = [checkpoint for checkpoint in listing.checkpoints if checkpoint.version <= snapshot.version]
    start = usable[-1].version if usable else -1
    rows = _checkpoint_rows(log, snapshot, usable[-1], listing) if usable else []
    for number in range(start + 1, snapshot.version + 1):
        file = listing.commits.get(number)
        if file is not None:
            row = {
                "path": file.path,
                "kind": "commit",
                "version": number,
                "bytes": file.size,
                "written_at": moment(file.modified_ms),
            }
            rows.append(row | _changes(snapshot, log.commit_actions(number)))
    return rows


def _checkpoint_rows(
    log: DeltaLog, snapshot: Snapshot, checkpoint: Checkpoint, listing: Listing
) -> list[Row]:
    actions = read_checkpoint(log.store, checkpoint)
    parts = [file for file in listing.files if file.path in checkpoint.paths]
    row = {
        "path": checkpoint.paths[0],
        "kind": "checkpoint",
        "version": checkpoint.version,
        "bytes": sum(file.size for file in parts),
        "written_at": moment(checkpoint.modified_ms),
    }
    return [row | _changes(snapshot, actions)]


def _changes(snapshot: Snapshot, actions: Sequence[Action]) -> Row:
    """Returns what a file of the log adds and removes."""
    added = {action.path: action for action in actions if isinstance(action, AddFile)}
    removed = {action.path: action for action in actions if isinstance(action, RemoveFile)}
    new = [file for path, file in added.items() if path not in removed]
    gone = [file for path, file in removed.items() if path not in added]
    changed = [path for path in added if path in removed]
    lost = [_live(removed[path]) for path in changed]
    kept = [added[path].live_records for path in changed]
    sizes = [file.size for file in gone]
    rows_removed = _total([*(_live(file) for file in gone), *lost])
    still_there = _total(kept)
    return {
        "files_added": len(new),
        "files_removed": len(gone),
        "vectors_changed": len(changed),
        "rows_added": _live_rows(new),
        "rows_removed": None if rows_removed is None or still_there is None else rows_removed - still_there,
        "bytes_added": sum(file.size for file in new),
        "bytes_removed": _total(sizes),
        **key_bounds(snapshot, new),
    }


def _live(file: RemoveFile) -> int | None:
    """Returns the rows of a removed file that could be read."""
    return AddFile(file.path, {}, 0, 0, False, file.stats, {}, file.deletion_vector).live_records


def _live_rows(files: Iterable[AddFile]) -> int | None:
    return _total([file.live_records for file in files])


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _commit_row(record: CommitRecord) -> Row:
    info = record.info
    metrics = _texts(info.get("operationMetrics"))
    operation = info.get("operation")
    inserted = _number(metrics, *_INSERTED)
    if inserted is None and operation in _APPENDS:
        inserted = _number(metrics, "numOutputRows")
    return {
        "version": record.version,
        "committed_at": moment(record.timestamp),
        "operation": operation,
        "rows_inserted": inserted,
        "rows_updated": _number(metrics, *_UPDATED),
        "rows_deleted": _number(metrics, *_DELETED),
        "files_added": _first(_number(metrics, "numAddedFiles"), record.n_added),
        "files_removed": _first(_number(metrics, "numRemovedFiles"), record.n_removed),
        "bytes_added": _first(_number(metrics, "numAddedBytes"), record.bytes_added),
        "duration_ms": _number(metrics, *_DURATION),
        "writer": info.get("engineInfo"),
        "user_metadata": info.get("userMetadata"),
        "parameters": list(_texts(info.get("operationParameters")).items()),
        "metrics": list(metrics.items()),
    }


def _first(stated: int | None, counted: int) -> int:
    return counted if stated is None else stated


def _texts(values: Any) -> dict[str, str]:
    """Returns a map of the log as texts; what is no text there, as its JSON."""
    if not isinstance(values, Mapping):
        return {}
    return {str(k): v if isinstance(v, str) else json.dumps(v) for k, v in values.items() if v is not None}


def _number(metrics: Mapping[str, str], *names: str) -> int | None:
    for name in names:
        value = metrics.get(name, "")
        if value.lstrip("-").isdigit():
            return int(value)
    return None
