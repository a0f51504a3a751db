"""What the commits of a table did, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakekit.storage.actions import Action, AddFile, CommitInfo, RemoveFile
from lakekit.storage.stats import ColumnStats


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """What one commit did.

    `timestamp` is in ms since 1970; bytes are of data files. Rows are the live rows of files, so that
    ``rows_added - rows_removed`` is how many rows the table gained; None if the log does not say.
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

    @classmethod
    def of(cls, version: int, actions: Sequence[Action], modified: Callable[[], int]) -> CommitRecord:
        """Sums a commit up.

        Args:
            version: the version the commit made.
            actions: its actions.
            modified: gives the time of the commit file (ms since 1970), for commits that state none.
        """
        info: Mapping[str, Any] = next((a.fields for a in actions if isinstance(a, CommitInfo)), {})
        added = [action for action in actions if isinstance(action, AddFile)]
        removed = [action for action in actions if isinstance(action, RemoveFile)]
        stated = info.get("inCommitTimestamp") or info.get("timestamp")
        return cls(
            version=version,
            timestamp=int(stated) if stated else modified(),
            info=info,
            n_added=len(added),
            n_removed=len(removed),
            bytes_added=sum(file.size for file in added),
            bytes_removed=sum(file.size or 0 for file in removed),
            rows_added=_live_rows(added),
            rows_removed=_live_rows(removed),
        )


def _live_rows(files: Iterable[AddFile | RemoveFile]) -> int | None:
    total = 0
    for file in files:
        rows = ColumnStats.parse(file.stats, {}).num_records
        if rows is None:
            return None
        total += rows - (file.deletion_vector.cardinality if file.deletion_vector else 0)
    return total


def in_order(records: Iterable[CommitRecord]) -> list[CommitRecord]:
    """Returns the records, oldest first, with times that grow: one that is not later counts as 1 ms later."""
    ordered: list[CommitRecord] = []
    for record in records:
        late = bool(ordered) and record.timestamp <= ordered[-1].timestamp
        ordered.append(replace(record, timestamp=ordered[-1].timestamp + 1) if late else record)
    return ordered
