"""The Delta log of one table: states by version, history, and the atomic commit.

The time of a version is its ``commitInfo.timestamp``, and not, as in Delta without in-commit timestamps, the
modification time of its file: that one changes when a table is copied or restored. As Delta does with file
times, a time that is not later than the one before it counts as 1 ms later, so that times order versions.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

from lakekit.errors import CorruptLogError, TableNotFoundError, VersionNotFoundError
from lakekit.storage.actions import Action, CommitInfo, Protocol, parse_line, to_line
from lakekit.storage.checkpoint import (
    last_checkpoint_version,
    read_checkpoint,
    retention_ms,
    write_checkpoint,
)
from lakekit.storage.faults import corrupt_file, missing_file
from lakekit.storage.history import CommitRecord, in_order
from lakekit.storage.listing import Checkpoint, Listing, commit_path
from lakekit.storage.protocol import check_readable
from lakekit.storage.snapshot import Replay, Snapshot
from lakekit.storage.store import FileInfo, Store, local_root

__all__ = ["CommitRecord", "DeltaLog", "commit_path", "open_log"]

_FAR_BEHIND = 50
_KEPT_SNAPSHOTS = 8
_KEPT_LOGS = 256
_REMOTE_READS = 16
_LOG_RETENTION_MS = 30 * 24 * 3600 * 1000


class DeltaLog:
    """Reads and extends the log of the table in a store; safe to use from many threads.

    The newest state is cached. Asking again costs a look at the cached version's file, which tells a table
    that was dropped or made anew, and at the next version's.
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
            return self._cache_holds() or Listing.of(self._store).latest >= 0

    def latest_version(self) -> int:
        """Returns the newest version; raises what `snapshot` raises."""
        return self.snapshot().version

    def earliest_version(self) -> int:
        """Returns the oldest version that can still be reconstructed; raises what `snapshot` raises."""
        return self._listing().earliest

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
            if self._latest is not None and self._latest.version == version:
                return self._latest
            if version not in self._older:
                self._older[version] = self._replay(version)[0]
            self._older.move_to_end(version)
            if len(self._older) > _KEPT_SNAPSHOTS:
                self._older.popitem(last=False)
            return self._older[version]

    def version_at(self, timestamp_ms: int) -> int:
        """Returns the newest version that is not later than a time, in ms since 1970.

        Raises:
            VersionNotFoundError: if the time is before the first version still held, or in the future.
        """
        earliest = self.earliest_version()
        timeline = [record for record in self.commits() if record.version >= earliest]
        # Only a checkpoint may be left of a log; its version is then the only one.
        times = [record.timestamp for record in timeline] or [self.snapshot(earliest).timestamp]
        newest = max(times[-1], int(time.time() * 1000))
        if not times[0] <= timestamp_ms <= newest:
            range_text = _iso(times[0]), _iso(newest)
            raise VersionNotFoundError.of_timestamp(self.name, _iso(timestamp_ms), *range_text)
        return max((r.version for r in timeline if r.timestamp <= timestamp_ms), default=earliest)

    def commit_actions(self, version: int) -> list[Action]:
        """Returns the actions of one commit, in the order of its file.

        Raises:
            VersionNotFoundError: if the log has no such version, or no longer.
            CorruptLogError: if the file is missing between others, or cannot be read.
        """
        try:
            return self._parse(version, self._store.read(commit_path(version)))
        except FileNotFoundError:
            held = self._listing().commits
        first, last = min(held, default=0), max(held, default=-1)
        if first < version < last:
            raise missing_file(self._store.root, commit_path(version))
        raise VersionNotFoundError.of_version(self.name, version, first, last)

    def commits(self, start: int | None = None, end: int | None = None) -> list[CommitRecord]:
        """Returns what each commit did, oldest first, as far as the log still has its file.

        Args:
            start: the first version wanted, the oldest held if None.
            end: the last version wanted, the newest if None.
        """
        with self._lock:
            if not self._cache_holds():
                self._forget()
            held = self._listing().commits
            self._read_records([held[version] for version in sorted(held) if version not in self._records])
            records = in_order(self._records[version] for version in sorted(held))
        return [
            record
            for record in records
            if (start is None or record.version >= start) and (end is None or record.version <= end)
        ]

    def write(self, version: int, actions: Sequence[Action], commit_id: str) -> bool:
        """Commits a version unless it exists.

        Args:
            version: the newest version plus one.
            actions: what the commit does; a `CommitInfo` among them gets the commit id, else one is added.
            commit_id: unique for each logical write; tells our own commit when a reply was lost.

        Returns:
            True if the version is ours, False if somebody else's.

        Raises:
            TableNotFoundError: if the table is gone; only version 0 makes one.
        """
        if version > 0 and not self.exists():
            raise self._no_table()
        info = next((dict(a.fields) for a in actions if isinstance(a, CommitInfo)), {})
        stamp = max(info.get("timestamp", int(time.time() * 1000)), self._time_after(version - 1))
        info |= {"timestamp": stamp, "txnId": commit_id}
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
        # An object store's client may have repeated a request of ours that had succeeded. And Spark's local
        # writer looks first and renames then, so it can replace a commit that was made in between.
        return self._owner(version) == commit_id

    def _time_after(self, version: int) -> int:
        """The first time that is later than a version's, as far as the cache knows it."""
        latest = self._latest
        return latest.timestamp + 1 if latest is not None and latest.version == version else 0

    def checkpoint(self, version: int) -> None:
        """Writes a checkpoint of a version, updates ``_last_checkpoint``, and deletes expired log files.

        As in Delta, they expire by ``delta.logRetentionDuration`` unless ``delta.enableExpiredLogCleanup``
        is false. Raises what `snapshot` raises.
        """
        snapshot, replay = self._replay(version, keep_tombstones=True)
        write_checkpoint(self._store, snapshot, replay)
        configuration = snapshot.configuration
        if configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "true":
            retention = retention_ms(configuration, "delta.logRetentionDuration", _LOG_RETENTION_MS)
            self._store.delete(Listing.of(self._store).expired(int(time.time() * 1000) - retention))

    def _listing(self, start: int = 0) -> Listing:
        listing = Listing.of(self._store, start)
        if start and not listing.checkpoints:  # the hint was wrong
            listing = Listing.of(self._store)
        if listing.latest < 0:
            raise self._no_table()
        return listing

    def _no_table(self) -> TableNotFoundError:
        return TableNotFoundError(
            f"There is no Delta table at {self._store.root}.",
            "Check the location, or create the table first.",
        )

    def _cache_holds(self) -> bool:
        return self._stamp is not None and self._store.info(self._stamp.path) == self._stamp

    def _forget(self) -> None:
        self._latest = self._stamp = None
        self._older.clear()
        self._records.clear()

    def _refreshed(self) -> Snapshot:
        before = self._latest
        latest = (self._advanced(before) if before else None) or self._replay(None)[0]
        if latest is not before:
            self._latest = latest
            self._stamp = self._store.info(commit_path(latest.version))
        return latest

    def _advanced(self, base: Snapshot) -> Snapshot | None:
        """Reads the next versions; None if there are so many that starting from a checkpoint is better."""
        replay: Replay | None = None
        version, timestamp = base.version, base.timestamp
        while version - base.version < _FAR_BEHIND:
            try:
                data = self._store.read(commit_path(version + 1))
            except FileNotFoundError:
                return base if replay is None else self._checked(replay, version, timestamp)
            replay = replay or Replay(base)
            version += 1
            timestamp = self._apply(replay, version, timestamp, data)
        return None

    def _replay(self, version: int | None, keep_tombstones: bool = False) -> tuple[Snapshot, Replay]:
        hint = last_checkpoint_version(self._store) or 0
        listing = self._listing(hint if version is None or version >= hint else 0)
        target = listing.latest if version is None else version
        if not 0 <= target <= listing.latest:
            full = self._listing()
            raise VersionNotFoundError.of_version(self.name, target, full.earliest, full.latest)
        try:
            return self._replay_to(listing, target, keep_tombstones)
        except CorruptLogError:
            # A checkpoint may be damaged: an older one and the commits after it give the same state.
            full = self._listing()
            older = [c for c in full.checkpoints if c.version <= target]
            while older:
                older.pop()
                try:
                    return self._replay_to(Listing(full.files, full.commits, older), target, keep_tombstones)
                except CorruptLogError:
                    continue
            if target < full.earliest:
                raise VersionNotFoundError.of_version(self.name, target, full.earliest, full.latest) from None
            raise

    def _replay_to(self, listing: Listing, target: int, keep_tombstones: bool) -> tuple[Snapshot, Replay]:
        replay = Replay(keep_tombstones=keep_tombstones)
        usable = [checkpoint for checkpoint in listing.checkpoints if checkpoint.version <= target]
        version, timestamp = -1, -1
        if usable:
            actions = read_checkpoint(self._store, usable[-1], removes=keep_tombstones)
            self._check_protocol(actions)
            replay.commit(actions)
            version, timestamp = usable[-1].version, self._checkpoint_time(usable[-1])
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
        # The commit info comes first, and the rest may be long.
        first = self._parse(checkpoint.version, data.partition(b"\n")[0])
        return CommitRecord.of(checkpoint.version, first, lambda: checkpoint.modified_ms).timestamp

    def _apply(self, replay: Replay, version: int, before: int, data: bytes) -> int:
        """Applies a commit file and returns the version's time."""
        actions = self._parse(version, data)
        self._check_protocol(actions)
        replay.commit(actions)
        return max(self._record(version, actions).timestamp, before + 1)

    def _check_protocol(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Protocol):
                check_readable(action, table=self.name)

    def _checked(self, replay: Replay, version: int, timestamp: int) -> Snapshot:
        try:
            snapshot = replay.snapshot(version, timestamp)
        except ValueError as error:
            raise corrupt_file(self._store.root, commit_path(version), str(error)) from error
        check_readable(snapshot.protocol, snapshot.metadata.configuration, self.name)
        return snapshot

    def _parse(self, version: int, data: bytes) -> list[Action]:
        actions: list[Action] = []
        for number, line in enumerate(data.split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                actions.append(parse_line(line.decode("utf-8")))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                why = f"line {number} is no action ({type(error).__name__}: {error})"
                raise corrupt_file(self._store.root, commit_path(version), why) from error
        return actions

    def _record(self, version: int, actions: Sequence[Action]) -> CommitRecord:
        record = self._records.get(version)
        if record is None:
            record = CommitRecord.of(version, actions, lambda: self._modified(version))
            self._records[version] = record
        return record

    def _modified(self, version: int) -> int:
        info = self._store.info(commit_path(version))
        return info.modified_ms if info else 0

    def _read_records(self, files: Sequence[FileInfo]) -> None:
        def read(file: FileInfo) -> tuple[int, bytes]:
            return int(file.path[-25:-5]), self._store.read(file.path)

        with ThreadPoolExecutor(1 if self._store.is_local else _REMOTE_READS) as pool:
            for version, data in pool.map(read, files):
                self._record(version, self._parse(version, data))

    def _owner(self, version: int) -> str | None:
        """The commit id of a version: empty if its writer gave none, None if there is no such version."""
        try:
            actions = self._parse(version, self._store.read(commit_path(version)))
        except FileNotFoundError:
            return None
        infos = (action.fields for action in actions if isinstance(action, CommitInfo))
        return next((str(fields.get("txnId", "")) for fields in infos), "")


def _iso(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")


_logs: OrderedDict[tuple[str, tuple[tuple[str, str], ...]], DeltaLog] = OrderedDict()
_logs_lock = threading.Lock()


def open_log(root: str, options: Mapping[str, str] | None = None) -> DeltaLog:
    """Returns the log of the table at a root, in a process always the same one, so that its cache is shared.

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
