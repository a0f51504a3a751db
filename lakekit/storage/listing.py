"""Which files the log of a table has: commits and complete checkpoints, by version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakekit.storage.store import FileInfo, Store

LOG_FOLDER = "_delta_log"

_COMMIT = re.compile(rf"{LOG_FOLDER}/(\d{{20}})\.json\Z")
_CHECKPOINT = re.compile(
    rf"{LOG_FOLDER}/(?P<version>\d{{20}})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})\.parquet|\.[0-9a-fA-F-]{36}\.(?:json|parquet)|\.parquet)\Z"
)
_VERSIONED = re.compile(rf"{LOG_FOLDER}/(\d{{20}})\.")


def commit_path(version: int) -> str:
    """Returns the path of a version's commit file, relative to the table."""
    return f"{LOG_FOLDER}/{version:020d}.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: its version, its files and when the first was written (ms since 1970)."""

    version: int
    paths: tuple[str, ...]
    modified_ms: int


def find_checkpoints(files: Iterable[FileInfo]) -> list[Checkpoint]:
    """Returns the complete checkpoints among the files of a log, oldest first."""
    found: list[Checkpoint] = []
    parts: dict[tuple[int, int], list[FileInfo]] = {}
    for file in files:
        match = _CHECKPOINT.match(file.path)
        if match is None:
            continue
        version = int(match["version"])
        if match["parts"]:
            parts.setdefault((version, int(match["parts"])), []).append(file)
        else:
            found.append(Checkpoint(version, (file.path,), file.modified_ms))
    for (version, count), group in parts.items():
        if len(group) == count:
            paths = tuple(sorted(file.path for file in group))
            found.append(Checkpoint(version, paths, group[0].modified_ms))
    return sorted(found, key=lambda checkpoint: checkpoint.version)


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a log, or of its newer part."""

    files: Sequence[FileInfo]
    commits: Mapping[int, FileInfo]
    checkpoints: Sequence[Checkpoint]

    @classmethod
    def of(cls, store: Store, start: int = 0) -> Listing:
        """Lists the log of a table from version `start` on."""
        files = store.list(LOG_FOLDER, f"{LOG_FOLDER}/{start:020d}" if start else None)
        commits = {int(match[1]): file for file in files if (match := _COMMIT.match(file.path))}
        return cls(files, commits, find_checkpoints(files))

    @property
    def latest(self) -> int:
        """The newest version; -1 if there is none."""
        newest = max(self.commits, default=-1)
        return max(newest, self.checkpoints[-1].version) if self.checkpoints else newest

    @property
    def earliest(self) -> int:
        """The oldest version from which on all can be reconstructed: 0, or that of a checkpoint."""
        start = self.latest
        while start - 1 in self.commits:
            start -= 1
        if start == 0:
            return 0
        return next((c.version for c in self.checkpoints if c.version >= start - 1), start)

    def expired(self, before_ms: int) -> list[str]:
        """Returns the files that no version newer than a time (ms since 1970) needs.

        As in Delta's log cleanup, these are the files of versions before the newest checkpoint of that age.
        """
        old = [checkpoint.version for checkpoint in self.checkpoints if checkpoint.modified_ms <= before_ms]
        if not old:
            return []
        matches = ((file.path, _VERSIONED.match(file.path)) for file in self.files)
        return [path for path, match in matches if match and int(match[1]) < old[-1]]
