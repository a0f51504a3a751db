"""The Delta log of one table: states by version, history, and the atomic commit.

The time of a version is its ``commitInfo.timestamp``, and not, as in Delta without in-commit timestamps, the
modification time of its file: that one changes when a table is copied or restored. As Delta does with file times, a
time that is not later than the one before it counts as 1 ms later, so that times order versions.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from lakekit.errors import CorruptLogError, TableNotFoundError, VersionNotFoundError
from lakekit.storage.actions import Action, AddFile, CommitInfo, Protocol, RemoveFile, parse_line, to_line
from lakekit.storage.checkpoint import (
    LOG_FOLDER,
    Checkpoint,
    find_checkpoints,
    last_checkpoint_version,
    read_checkpoint,
    write_checkpoint,
)
from lakekit.storage.faults import corrupt_file, missing_file
from lakekit.storage.protocol import check_readable
from lakekit.storage.snapshot import Replay, Snapshot
from lakekit.storage.store import FileInfo, Store, local_root

_COMMIT = re.compile(rf"{LOG_FOLDER}/(\d{{20}})\.json\Z")
_FAR_BEHIND = 50
_KEPT_SNAPSHOTS = 8
_KEPT_LOGS = 256


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """What one commit did.

    `timestamp` is in ms since 1970, bytes are of data files; rows are live rows of the files, so that
    ``rows_added - rows_removed`` is how many rows the table gained (None if the log does not say).
    """

    version: int
    timestamp: int
    info: Mapping[str, Any]
    n_added: int
    n_removed: int
    bytes_added: int
    bytes_removed: int
    rows_added: int | None
    rows_removed: int | None


@dataclass(frozen=True)
class _Listing:
    commits: Mapping[int, FileInfo]
    checkpoints: Sequence[Checkpoint]

    @property
    def latest(self) -> int:
        newest = max(self.commits, default=-1)
        return max(newest, self.checkpoints[-1].version) if self.checkpoints else newest

    @property
    def earliest(self) -> int:
        """The oldest version that can be reconstructed: 0, or that of a checkpoint."""
        start = self.latest
        while start - 1 in self.commits:
            start -= 1
        if start == 0:
            return 0
        return next((c.version for c in self.checkpoints if c.version >= start - 1), start)


def commit_path(version: int) -> str:
    """Returns the path of a version's commit file, relative to the table."""
    return f"{LOG_FOLDER}/{version:020d}.json"


class DeltaLog:
    """Reads and extends the log of the table in a store; safe to use from many threads.

    The newest state is cached. Asking again costs a look at the cached version's file, which tells a table that was
    dropped or made anew, and at the next version's.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.RLock()
        self._latest: Snapshot | None = None
        self._stamp: FileInfo | None = None
        self._older: OrderedDict[int, Snapshot] = OrderedDict()
        self._records: dict[int, CommitRecord] = {}

    @property
    def store(self) -> Store:
        """The table's folder."""
        return self._store

    @property
    def name(self) -> str:
        """The table's name as its folder tells it, for messages."""
        *_, parent, folder = ("", *self._store.root.rstrip("/").split("/"))
        return f"{parent.removesuffix('.db')}.{folder}" if parent.endswith(".db") else folder

    def exists(self) -> bool:
        """Tells whether there is a Delta log."""
        with self._lock:
            if self._cache_holds():
                return True
            return self._store.exists(commit_path(0)) or self._list().latest >= 0

    def latest_version(self) -> int:
        """Returns the newest version; raises what `snapshot` raises."""
        return self.snapshot().version

    def earliest_version(self) -> int:
        """Returns the oldest version that can still be reconstructed; raises what `snapshot` raises."""
        listing = self._list()
        if listing.latest < 0:
            raise self._no_table()
        return listing.earliest

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Returns the state at a version, the newest if none is given.

        Raises:
            TableNotFoundError: if there is no Delta log.
            VersionNotFoundError: if the log does not hold the version.
            CorruptLogError: if a file of the log is missing or cannot be read; it names the file.
            UnsupportedTableError: if the table needs a reader feature that is not known here.
        """
        with self._lock:
            if not self._cache_holds():
                self._forget()
            if version is None:
                return self._refreshed()
            cached = self._latest if self._latest and self._latest.version == version else self._older.get(version)
            if cached is None:
                cached = self._load(version)
                self._older[version] = cached
                if len(self._older) > _KEPT_SNAPSHOTS:
                    self._older.popitem(last=False)
            return cached

    def version_at(self, timestamp_ms: int) -> int:
        """Returns the newest version that is not later than a time, in ms since 1970.

        Raises:
            VersionNotFoundError: if the time is before the first version still held, or in the future.
        """
        with self._lock:
            earliest = self.earliest_version()
            timeline = [record for record in self.commits() if record.version >= earliest]
            found = [record.version for record in timeline if record.timestamp <= timestamp_ms]
            newest = max(timeline[-1].timestamp, int(time.time() * 1000)) if timeline else -1
            if not found or timestamp_ms > newest:
                first = timeline[0].timestamp if timeline else newest
                raise VersionNotFoundError.of_timestamp(self.name, _iso(timestamp_ms), _iso(first), _iso(newest))
            return found[-1]

    def commit_actions(self, version: int) -> list[Action]:
        """Returns the actions of one commit, in the order of its file.

        Raises:
            VersionNotFoundError: if the log has no such version, or no longer.
            CorruptLogError: if the file cannot be read.
        """
        try:
            data = self._store.read(commit_path(version))
        except FileNotFoundError:
            listing = self._list()
            if listing.latest < 0:
                raise self._no_table() from None
            held = listing.commits or {listing.latest: None}
            if min(held) < version < max(held):
                raise missing_file(self._store.root, commit_path(version)) from None
            raise VersionNotFoundError.of_version(self.name, version, min(held), max(held)) from None
        return self._parse(version, data)

    def commits(self, start: int | None = None, end: int | None = None) -> list[CommitRecord]:
        """Returns what each commit did, oldest first, as far as the log still has its file.

        Args:
            start: the first version wanted, the oldest held if None.
            end: the last version wanted, the newest if None.
        """
        with self._lock:
            if not self._cache_holds():
                self._forget()
            listing = self._list()
            versions = sorted(listing.commits)
            self._read_records([listing.commits[v] for v in versions if v not in self._records])
            records: list[CommitRecord] = []
            for version in versions:
                record = self._records[version]
                if records and record.timestamp <= records[-1].timestamp:
                    record = _at(record, records[-1].timestamp + 1)
                records.append(record)
        low = versions[0] if start is None and versions else start or 0
        return [r for r in records if r.version >= low and (end is None or r.version <= end)]

    def tombstones(self, version: int | None = None) -> list[RemoveFile]:
        """Returns the removed files that the log still lists at a version: vacuum must spare those not expired."""
        with self._lock:
            target = self.latest_version() if version is None else version
            _, replay = self._replay(target, keep_tombstones=True)
            return list(replay.tombstones.values())

    def write(self, version: int, actions: Sequence[Action], commit_id: str) -> bool:
        """Commits a version unless it exists.

        Args:
            version: the newest version plus one.
            actions: what the commit does; a `CommitInfo` among them gets the commit id, else one is added.
            commit_id: unique for each attempt's logical write; tells our own commit when a reply was lost.

        Returns:
            True if the version is ours, False if somebody else's.
        """
        info = next((dict(a.fields) for a in actions if isinstance(a, CommitInfo)), {})
        info = {"timestamp": int(time.time() * 1000), **info, "txnId": commit_id}
        others = [action for action in actions if not isinstance(action, CommitInfo)]
        data = "".join(f"{to_line(action)}\n" for action in (CommitInfo(info), *others)).encode()
        try:
            created = self._store.put_if_absent(commit_path(version), data)
        except Exception:
            # The reply may be lost and the commit there: only the log itself knows.
            owner = self._owner(version)
            if owner is None:
                raise
            return owner == commit_id
        if created and not self._store.is_local:
            return True
        # Spark's local writer looks first and renames then, so it can replace a commit made in between; and an object
        # store's client may have repeated a request of ours that had succeeded.
        return self._owner(version) == commit_id

    def checkpoint(self, version: int) -> None:
        """Writes a checkpoint of a version and updates ``_last_checkpoint``; raises what `snapshot` raises."""
        with self._lock:
            snapshot, replay = self._replay(version, keep_tombstones=True)
        write_checkpoint(self._store, snapshot, replay)

    # -- reading ---------------------------------------------------------------------------------------------------

    def _no_table(self) -> TableNotFoundError:
        return TableNotFoundError(
            f"There is no Delta table at {self._store.root}.", "Check the location, or create the table first."
        )

    def _list(self, start: int = 0) -> _Listing:
        after = f"{LOG_FOLDER}/{start:020d}" if start else None
        files = self._store.list(LOG_FOLDER, after)
        commits = {int(match[1]): file for file in files if (match := _COMMIT.match(file.path))}
        return _Listing(commits, find_checkpoints(files))

    def _cache_holds(self) -> bool:
        if self._latest is None or self._stamp is None:
            return False
        return self._store.info(self._stamp.path) == self._stamp

    def _forget(self) -> None:
        self._latest = self._stamp = None
        self._older.clear()
        self._records.clear()

    def _refreshed(self) -> Snapshot:
        if self._latest is not None:
            latest = self._advanced(self._latest)
            if latest is self._latest:
                return latest
        else:
            latest = None
        if latest is None:
            latest = self._load(None)
        self._latest = latest
        self._stamp = self._store.info(commit_path(latest.version))
        return latest

    def _advanced(self, base: Snapshot) -> Snapshot | None:
        """The newest state by reading the next versions; None if there are so many that a checkpoint is better."""
        replay = Replay(base)
        version, timestamp = base.version, base.timestamp
        while True:
            try:
                data = self._store.read(commit_path(version + 1))
            except FileNotFoundError:
                break
            if version - base.version >= _FAR_BEHIND:
                return None
            version += 1
            timestamp = self._apply(replay, version, timestamp, data)
        return base if version == base.version else self._checked(replay, version, timestamp)

    def _load(self, version: int | None) -> Snapshot:
        return self._replay(version)[0]

    def _replay(self, version: int | None, keep_tombstones: bool = False) -> tuple[Snapshot, Replay]:
        hint = last_checkpoint_version(self._store) or 0
        listing = self._list(hint if version is None or version >= hint else 0)
        if hint and not listing.checkpoints:
            listing = self._list()
        if listing.latest < 0:
            raise self._no_table()
        target = listing.latest if version is None else version
        if target > listing.latest or target < 0:
            full = self._list()
            raise VersionNotFoundError.of_version(self.name, target, full.earliest, full.latest)
        try:
            return self._replay_to(listing, target, keep_tombstones)
        except CorruptLogError:
            # The newest checkpoint may be damaged: an older one and the commits after it give the same state.
            full = self._list()
            for usable in range(len(full.checkpoints), -1, -1):
                older = _Listing(full.commits, full.checkpoints[:usable])
                if (found := self._try_replay(older, target, keep_tombstones)) is not None:
                    return found
            if target < full.earliest:
                raise VersionNotFoundError.of_version(self.name, target, full.earliest, full.latest) from None
            raise

    def _try_replay(
        self, listing: _Listing, target: int, keep_tombstones: bool
    ) -> tuple[Snapshot, Replay] | None:
        try:
            return self._replay_to(listing, target, keep_tombstones)
        except CorruptLogError:
            return None

    def _replay_to(self, listing: _Listing, target: int, keep_tombstones: bool) -> tuple[Snapshot, Replay]:
        replay = Replay(keep_tombstones=keep_tombstones)
        usable = [checkpoint for checkpoint in listing.checkpoints if checkpoint.version <= target]
        version, timestamp = -1, -1
        if usable:
            checkpoint = usable[-1]
            actions = read_checkpoint(self._store, checkpoint, removes=keep_tombstones)
            for action in actions:
                if isinstance(action, Protocol):
                    check_readable(action, table=self.name)
            replay.commit(actions)
            version, timestamp = checkpoint.version, self._checkpoint_time(checkpoint)
        while version < target:
            version += 1
            try:
                data = self._store.read(commit_path(version))
            except FileNotFoundError:
                raise missing_file(self._store.root, commit_path(version)) from None
            timestamp = self._apply(replay, version, timestamp, data)
        return self._checked(replay, version, timestamp), replay

    def _checkpoint_time(self, checkpoint: Checkpoint) -> int:
        try:
            data = self._store.read(commit_path(checkpoint.version))
        except FileNotFoundError:
            return checkpoint.modified_ms
        return self._record(checkpoint.version, self._parse(checkpoint.version, data)).timestamp

    def _apply(self, replay: Replay, version: int, before: int, data: bytes) -> int:
        """Applies a commit file and returns the version's time."""
        actions = self._parse(version, data)
        for action in actions:
            if isinstance(action, Protocol):
                check_readable(action, table=self.name)
        replay.commit(actions)
        return max(self._record(version, actions).timestamp, before + 1)

    def _checked(self, replay: Replay, version: int, timestamp: int) -> Snapshot:
        try:
            snapshot = replay.snapshot(version, timestamp)
        except ValueError as error:
            raise corrupt_file(self._store.root, commit_path(version), str(error)) from error
        check_readable(snapshot.protocol, snapshot.metadata.configuration, self.name)
        return snapshot

    def _parse(self, version: int, data: bytes) -> list[Action]:
        path = commit_path(version)
        actions: list[Action] = []
        for number, line in enumerate(data.split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                actions.append(parse_line(line.decode("utf-8")))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                why = f"line {number} is no action ({type(error).__name__}: {error})"
                raise corrupt_file(self._store.root, path, why) from error
        return actions

    def _record(self, version: int, actions: Sequence[Action]) -> CommitRecord:
        record = self._records.get(version)
        if record is None:
            record = self._records[version] = _summary(version, actions, lambda: self._modified(version))
        return record

    def _modified(self, version: int) -> int:
        info = self._store.info(commit_path(version))
        return info.modified_ms if info else 0

    def _read_records(self, files: Sequence[FileInfo]) -> None:
        def read(file: FileInfo) -> tuple[int, bytes]:
            return int(file.path[-25:-5]), self._store.read(file.path)

        for version, data in _in_order(read, files, parallel=not self._store.is_local):
            self._record(version, self._parse(version, data))

    def _owner(self, version: int) -> str | None:
        try:
            actions = self._parse(version, self._store.read(commit_path(version)))
        except FileNotFoundError:
            return None
        infos = [action.fields.get("txnId") for action in actions if isinstance(action, CommitInfo)]
        return str(infos[0]) if infos else ""


def _in_order(
    read: Callable[[FileInfo], tuple[int, bytes]], files: Sequence[FileInfo], parallel: bool
) -> Iterator[tuple[int, bytes]]:
    if not parallel or len(files) < 2:
        yield from map(read, files)
        return
    with ThreadPoolExecutor(16) as pool:
        yield from pool.map(read, files)


def _summary(version: int, actions: Sequence[Action], modified: Callable[[], int]) -> CommitRecord:
    info: Mapping[str, Any] = next((a.fields for a in actions if isinstance(a, CommitInfo)), {})
    added = [action for action in actions if isinstance(action, AddFile)]
    removed = [action for action in actions if isinstance(action, RemoveFile)]
    stated = info.get("inCommitTimestamp") or info.get("timestamp")
    return CommitRecord(
        version=version,
        timestamp=int(stated) if stated else modified(),
        info=info,
        n_added=len(added),
        n_removed=len(removed),
        bytes_added=sum(file.size for file in added),
        bytes_removed=sum(file.size or 0 for file in removed),
        rows_added=_total(file.live_records for file in added),
        rows_removed=_total(_live(file) for file in removed),
    )


def _live(file: RemoveFile) -> int | None:
    return AddFile(file.path, {}, 0, 0, False, file.stats, {}, file.deletion_vector).live_records


def _total(counts: Iterator[int | None]) -> int | None:
    listed = list(counts)
    known = [count for count in listed if count is not None]
    return sum(known) if len(known) == len(listed) else None


def _at(record: CommitRecord, timestamp: int) -> CommitRecord:
    return CommitRecord(
        **{name: getattr(record, name) for name in CommitRecord.__slots__ if name != "timestamp"}, timestamp=timestamp
    )


def _iso(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")


_logs: OrderedDict[tuple[str, tuple[tuple[str, str], ...]], DeltaLog] = OrderedDict()
_logs_lock = threading.Lock()


def open_log(root: str, options: Mapping[str, str] | None = None) -> DeltaLog:
    """Returns the log of the table at a root; the same one each time in a process, so that its cache is shared.

    Args:
        root: see `Store`.
        options: see `Store`.
    """
    key = (local_root(root) or root.rstrip("/"), tuple(sorted((options or {}).items())))
    with _logs_lock:
        log = _logs.get(key)
        if log is None:
            log = _logs[key] = DeltaLog(Store(root, options))
        _logs.move_to_end(key)
        if len(_logs) > _KEPT_LOGS:
            _logs.popitem(last=False)
        return log
