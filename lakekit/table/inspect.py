"""Arrow tables of what a table is made of: snapshots, manifests, files, buckets, partitions.

Row counts are of rows that can be read: deleted rows are counted on their own. Key bounds are texts in JSON,
one object with a value for each key column; as statistics are, they may be a little wider than the keys
themselves.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from lakekit.errors import InvalidOptionError
from lakekit.table import contents, history

if TYPE_CHECKING:
    from lakekit.table.table import Table

Moment = dt.datetime | str

_TIME = pa.timestamp("us", tz="UTC")
_TEXTS = pa.map_(pa.string(), pa.string())


def _column(name: str, kind: pa.DataType, null: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable=null)


SNAPSHOTS_SCHEMA = pa.schema(
    [
        _column("version", pa.int64(), null=False),
        _column("committed_at", _TIME, null=False),
        _column("operation", pa.string()),
        _column("rows_inserted", pa.int64()),
        _column("rows_updated", pa.int64()),
        _column("rows_deleted", pa.int64()),
        _column("files_added", pa.int64(), null=False),
        _column("files_removed", pa.int64(), null=False),
        _column("bytes_added", pa.int64(), null=False),
        _column("rows", pa.int64()),
        _column("files", pa.int64(), null=False),
        _column("bytes", pa.int64(), null=False),
        _column("duration_ms", pa.int64()),
        _column("writer", pa.string()),
        _column("user_metadata", pa.string()),
        _column("parameters", _TEXTS),
        _column("metrics", _TEXTS),
    ]
)
"""One row for each version whose commit the log still holds, oldest first: what the commit did (rows, files
and bytes added and removed; null where its writer did not say), and the table after it (`rows`, `files`,
`bytes`)."""

MANIFESTS_SCHEMA = pa.schema(
    [
        _column("path", pa.string(), null=False),
        _column("kind", pa.string(), null=False),
        _column("version", pa.int64(), null=False),
        _column("bytes", pa.int64(), null=False),
        _column("written_at", _TIME, null=False),
        _column("files_added", pa.int64(), null=False),
        _column("files_removed", pa.int64(), null=False),
        _column("vectors_changed", pa.int64(), null=False),
        _column("rows_added", pa.int64()),
        _column("rows_removed", pa.int64()),
        _column("bytes_added", pa.int64(), null=False),
        _column("bytes_removed", pa.int64()),
        _column("key_min", pa.string()),
        _column("key_max", pa.string()),
    ]
)
"""One row for each file of the Delta log that makes up the version: the last checkpoint (`kind` is
``checkpoint``) and the commits after it (``commit``). A file with a new deletion vector counts in
`vectors_changed`, and the rows it lost in `rows_removed`. `bytes_added` and `bytes_removed` are of data
files; the key bounds are those of the added ones."""

FILES_SCHEMA = pa.schema(
    [
        _column("path", pa.string(), null=False),
        _column("partition", pa.string(), null=False),
        _column("partition_values", _TEXTS, null=False),
        _column("bucket", pa.int32()),
        _column("level", pa.int32()),
        _column("run_id", pa.string()),
        _column("rows", pa.int64(), null=False),
        _column("deleted_rows", pa.int64(), null=False),
        _column("deleted_share", pa.float64()),
        _column("bytes", pa.int64(), null=False),
        _column("modified_at", _TIME, null=False),
        _column("key_min", pa.string()),
        _column("key_max", pa.string()),
    ]
)
"""One row for each data file. `level` and `run_id` are null for files that another writer made;
`deleted_share` is the share of the file's rows that its deletion vector removes; `modified_at` is when the
file or its vector was written."""

BUCKETS_SCHEMA = pa.schema(
    [
        _column("partition", pa.string(), null=False),
        _column("bucket", pa.int32()),
        _column("rows", pa.int64(), null=False),
        _column("deleted_rows", pa.int64(), null=False),
        _column("deleted_share", pa.float64()),
        _column("files", pa.int64(), null=False),
        _column("runs", pa.int64(), null=False),
        _column("level0_runs", pa.int64(), null=False),
        _column("bytes", pa.int64(), null=False),
        _column("modified_at", _TIME, null=False),
        _column("key_min", pa.string()),
        _column("key_max", pa.string()),
    ]
)
"""One row for each bucket of each partition that has files. A file that another writer made counts as a run
of level 0, because compaction merges it like one. A table without primary key has one bucket, null, in each
partition."""

PARTITIONS_SCHEMA = pa.schema(
    [
        _column("partition", pa.string(), null=False),
        _column("partition_values", _TEXTS, null=False),
        _column("rows", pa.int64(), null=False),
        _column("deleted_rows", pa.int64(), null=False),
        _column("deleted_share", pa.float64()),
        _column("buckets", pa.int64(), null=False),
        _column("files", pa.int64(), null=False),
        _column("bytes", pa.int64(), null=False),
        _column("modified_at", _TIME, null=False),
    ]
)
"""One row for each partition that has files; a table without partitions has one, with an empty name."""


class Inspect:
    """Looks into a table; `Table.inspect` makes it.

    Each method takes a version, or a time as in `Table.snapshot()`; the newest version is the default.
    """

    def __init__(self, table: Table) -> None:
        """Reads nothing yet."""
        self._table = table

    def __repr__(self) -> str:
        return f"Inspect({str(self._table.name)!r}): snapshots, manifests, files, buckets, partitions"

    def snapshots(self, version: int | None = None, timestamp: Moment | None = None) -> pa.Table:
        """Returns what each commit up to a version did, see `SNAPSHOTS_SCHEMA`."""
        return self._run(history.snapshots, SNAPSHOTS_SCHEMA, version, timestamp)

    def manifests(self, version: int | None = None, timestamp: Moment | None = None) -> pa.Table:
        """Returns the files of the log that make up a version, see `MANIFESTS_SCHEMA`."""
        return self._run(history.manifests, MANIFESTS_SCHEMA, version, timestamp)

    def files(self, version: int | None = None, timestamp: Moment | None = None) -> pa.Table:
        """Returns the data files of a version, see `FILES_SCHEMA`."""
        return self._run(contents.files, FILES_SCHEMA, version, timestamp)

    def buckets(self, version: int | None = None, timestamp: Moment | None = None) -> pa.Table:
        """Returns the buckets of a version, see `BUCKETS_SCHEMA`."""
        return self._run(contents.buckets, BUCKETS_SCHEMA, version, timestamp)

    def partitions(self, version: int | None = None, timestamp: Moment | None = None) -> pa.Table:
        """Returns the partitions of a version, see `PARTITIONS_SCHEMA`."""
        return self._run(contents.partitions, PARTITIONS_SCHEMA, version, timestamp)

    def _run(
        self,
        look: Callable[[str, int | None], list[contents.Row]],
        schema: pa.Schema,
        version: int | None,
        timestamp: Moment | None,
    ) -> pa.Table:
        if version is not None and timestamp is not None:
            raise InvalidOptionError("Both a version and a timestamp were given.", "Give one of them.")
        if timestamp is not None:
            version = self._table.version_at(timestamp)
        if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
            raise InvalidOptionError.bad_value("version", version, "a whole number")
        rows = self._table.lake.runner.run(look, self._table.root, version)
        return pa.Table.from_pylist(rows, schema)
