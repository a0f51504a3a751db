"""What the Spark tasks of writes and compactions return to the driver."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakekit.errors import LakeError
from lakekit.filestore.conflicts import BucketId
from lakekit.storage.actions import AddFile, RemoveFile

RESULT_SCHEMA = "result binary"
"""What the Spark tasks return: one pickled `BucketResult` each."""


@dataclass
class BucketResult:
    """What one task did to its bucket.

    Attributes:
        added: new data files, and touched files with their new deletion vector.
        removed: touched files as they were.
        touched: (partition, bucket) pairs that were written to or probed.
        null_keys, null_key_example: rows refused because their key holds a null.
        null_columns: for each NOT NULL column that held nulls, how many.
        lost_rows: rows that were to be marked are not where they should be; the work must be done again.
        error: an error that the rows caused; nothing may be committed.
    """

    added: list[AddFile] = field(default_factory=list)
    removed: list[RemoveFile] = field(default_factory=list)
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_late: int = 0
    touched: set[BucketId] = field(default_factory=set)
    null_keys: int = 0
    null_key_example: str = ""
    null_columns: dict[str, int] = field(default_factory=dict)
    lost_rows: bool = False
    error: LakeError | None = None

    @property
    def refused(self) -> bool:
        """Whether the rows break a rule, so that nothing may be committed."""
        return bool(self.null_keys or self.null_columns or self.error)
