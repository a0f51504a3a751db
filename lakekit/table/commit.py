"""What a write says it did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from lakekit.filestore.result import BucketResult
from lakekit.storage.actions import AddFile, RemoveFile


@dataclass(frozen=True)
class Commit:
    """The result of a write.

    Attributes:
        version: version of the table after the write; the current one if nothing had to be committed.
        operation: its name in the table's history.
        rows_inserted: rows whose key was not in the table.
        rows_updated: rows that replaced one of the same key.
        rows_deleted: rows that were removed.
        rows_late: rows ignored because the table holds a newer one by the sequence field.
        files_added: data files written.
        files_removed: data files that are no longer part of the table.
        bytes_added: size of the data files written.
        duration_ms: wall time of the write.
        skipped: True if nothing was committed (no rows, or this writer's epoch is in the table already).
    """

    version: int
    operation: str
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_late: int = 0
    files_added: int = 0
    files_removed: int = 0
    bytes_added: int = 0
    duration_ms: int = 0
    skipped: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Returns the fields by name."""
        return asdict(self)


@dataclass(frozen=True)
class Tally:
    """The sums over the tasks of one write."""

    added: tuple[AddFile, ...]
    removed: tuple[RemoveFile, ...]
    rows_inserted: int
    rows_updated: int
    rows_deleted: int
    rows_late: int

    @classmethod
    def of(cls, results: Iterable[BucketResult]) -> Tally:
        """Sums up what the tasks of a write did."""
        results = list(results)
        return cls(
            added=tuple(f for r in results for f in r.added),
            removed=tuple(f for r in results for f in r.removed),
            rows_inserted=sum(r.rows_inserted for r in results),
            rows_updated=sum(r.rows_updated for r in results),
            rows_deleted=sum(r.rows_deleted for r in results),
            rows_late=sum(r.rows_late for r in results),
        )

    @property
    def new_files(self) -> tuple[AddFile, ...]:
        """The added files that did not exist before (the others got a new deletion vector)."""
        old = {f.path for f in self.removed}
        return tuple(f for f in self.added if f.path not in old)

    @property
    def gone_files(self) -> int:
        """How many files are no longer part of the table."""
        kept = {f.path for f in self.added}
        return sum(f.path not in kept for f in self.removed)

    def commit(self, version: int, operation: str, duration_ms: int, skipped: bool = False) -> Commit:
        """Returns the result that users see."""
        return Commit(
            version=version,
            operation=operation,
            rows_inserted=self.rows_inserted,
            rows_updated=self.rows_updated,
            rows_deleted=self.rows_deleted,
            rows_late=self.rows_late,
            files_added=len(self.new_files),
            files_removed=self.gone_files,
            bytes_added=sum(f.size for f in self.new_files),
            duration_ms=duration_ms,
            skipped=skipped,
        )

    def metrics(self, duration_ms: int) -> dict[str, str]:
        """Returns the metrics stored in the commit, by Delta's names where it has one."""
        values = {
            "numInsertedRows": self.rows_inserted,
            "numUpdatedRows": self.rows_updated,
            "numDeletedRows": self.rows_deleted,
            "numAddedFiles": len(self.new_files),
            "numRemovedFiles": self.gone_files,
            "numAddedBytes": sum(f.size for f in self.new_files),
            "numOutputRows": self.rows_inserted + self.rows_updated,
            "durationMs": duration_ms,
        }
        return {name: str(value) for name, value in values.items()}
