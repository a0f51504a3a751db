"""A log as a data source of Spark, for batches and streams, in Spark's own Python API for sources.

A task reads a piece of one topic partition. Between tasks nothing is remembered but offsets; see `ranges`.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper

from lakekit.logstore import loop
from lakekit.logstore.changes import FileChange, by_bucket, live_files, row_changes
from lakekit.logstore.emission import Target
from lakekit.logstore.ranges import Piece, PieceReader, read_piece
from lakekit.logstore.reading import LOG_FIELDS, Semantics, Startup, starts, stored_rows, to_table
from lakekit.logstore.topic import TopicEnd
from lakekit.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NAME = "lakekit-log"
_BATCH_ROWS = 10_000
_SMALL_RECORDS = 50_000
"""Records of a micro-batch up to which no task of Spark is needed to read it."""
_SMALL_BYTES = 16 << 20
"""Bytes of their values, likewise."""


@dataclass(frozen=True)
class LogScan:
    """What is read.

    Attributes:
        target: the table's log.
        startup: where the reader starts.
        semantics: what it makes of records.
        ends: where a batch ends.
        version: of the table, whose rows come first in a stream.
    """

    target: Target
    startup: Startup
    semantics: Semantics
    ends: Mapping[int, int] = field(default_factory=dict)
    version: int | None = None

    def to_option(self) -> str:
        """Returns the scan as a text for an option of the source."""
        return base64.b64encode(pickle.dumps(self)).decode()

    @staticmethod
    def from_option(text: str) -> LogScan:
        """Returns the scan of an option."""
        scan: LogScan = pickle.loads(base64.b64decode(text))
        return scan


@dataclass
class LogPartition(InputPartition):
    """Pieces of the log for one task."""

    pieces: tuple[Piece, ...]


@dataclass
class FilePartition(InputPartition):
    """Rows of a version of the table for one task."""

    changes: tuple[FileChange, ...]


class LogSource(DataSource):
    """The data source; its one option ``scan`` holds a `LogScan`."""

    @classmethod
    def name(cls) -> str:
        """Returns the name for ``format(…)``."""
        return NAME

    @property
    def scan(self) -> LogScan:
        """What is read."""
        return LogScan.from_option(self.options["scan"])

    def schema(self) -> StructType:
        """Returns the table's columns and the log's."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(_schema(self.scan.target), prefer_timestamp_ntz=True)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        """Returns the reader of a batch."""
        return LogBatchReader(self.scan)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        """Returns the reader of a stream."""
        return LogStreamReader(self.scan)


class LogBatchReader(DataSourceReader):
    """Reads from a start to an end."""

    def __init__(self, scan: LogScan) -> None:
        """Reads nothing yet."""
        self._scan = scan

    def partitions(self) -> Sequence[InputPartition]:
        """Returns one piece for each topic partition."""
        first = loop.run(starts(self._scan.target, self._scan.startup))
        done = self._scan.startup.done
        ends = self._scan.ends.items()
        return [LogPartition((Piece(p, first[p], end, first[p], done),)) for p, end in ends if p in first]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the changes of a piece."""
        return _batches(self._scan, partition)


class LogStreamReader(_SimpleStreamReaderWrapper):
    """Reads what comes.

    Small micro-batches are read here, in the process that Spark keeps for a stream, over a connection that stays open:
    that takes a third of the time of a task. Spark takes rows from that process only if the reader is of this base
    class, which PySpark has for readers that do nothing else; all its methods are replaced. Larger micro-batches are
    read by tasks, one for each topic partition.

    An offset of the stream is the version of the ``table`` that comes first, what comes ``next`` in each topic
    partition, and the stream's ``origin``: where it began, and what it had from the FileStore then. Spark hands the
    offset of a checkpoint to `partitions` only, so the first offset after a restart is without an origin. If no other
    one follows before the next restart, the reader counts as one that began with the log.
    """

    def __init__(self, scan: LogScan) -> None:
        """Reads nothing yet."""
        self._scan = scan
        self._here = PieceReader(scan.target, scan.semantics)
        self._read: list[pa.RecordBatch] | None = None
        # Of rows that come from here, Spark 4.0 cannot copy an array of numbers or dates with a null in it.
        nested = any(pa.types.is_nested(field.type) for field in scan.target.schema)
        self._most_records = 0 if nested else _SMALL_RECORDS
        self._end = TopicEnd(scan.target.connection, scan.target.topic)
        self._origin: dict[str, Any] = {}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Returns where a new stream starts."""
        first = _as_json(loop.run(starts(self._scan.target, self._scan.startup)))
        self._origin = {"starts": first, "done": dict(self._scan.startup.done)}
        offset = {"next": first, "origin": self._origin}
        return offset if self._scan.version is None else {**offset, "table": self._scan.version}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Returns where the log ends."""
        return {"next": _as_json(loop.run(self._end.offsets())), "origin": self._origin}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns one piece for each topic partition that has news."""
        self._origin = self._origin or start["origin"]
        done = self._origin.get("done", {})
        pieces = []
        for partition, stop in end["next"].items():
            # A partition that was added to the topic is read from its beginning.
            origin = self._origin.get("starts", {}).get(partition, 0)
            first = start["next"].get(partition, origin)
            if first < stop:
                pieces.append(Piece(int(partition), first, stop, origin, done))
        self._read = None
        if "table" in start:
            files = by_bucket(live_files(self._scan.target.root, start["table"])).values()
            return [*map(FilePartition, files), *(LogPartition((piece,)) for piece in pieces)]
        if 0 < sum(piece.end - piece.start for piece in pieces) <= self._most_records:
            changes = loop.run(self._here.read(pieces, _SMALL_BYTES))
            if changes is not None:
                self._read = to_table(self._scan.target, changes).to_batches(max_chunksize=_BATCH_ROWS)
                return [LogPartition(tuple(pieces))]
        return [LogPartition((piece,)) for piece in pieces]

    def getCache(self, *_: dict[str, Any]) -> Iterator[pa.RecordBatch] | None:  # type: ignore[override]  # noqa: N802
        """Returns what `partitions` has read for the same offsets, if it has."""
        read, self._read = self._read, None
        return None if read is None else iter(read)

    def commit(self, end: dict[str, Any]) -> None:
        """Forgets nothing, as nothing is kept."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the changes of a piece."""
        return _batches(self._scan, partition)

    def stop(self) -> None:
        """Ends the connections."""
        loop.run(self._here.close())
        loop.run(self._end.close())


def _as_json(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in offsets.items()}


def _schema(target: Target) -> pa.Schema:
    return pa.schema([*target.schema, *LOG_FIELDS])


def _batches(scan: LogScan, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if isinstance(partition, LogPartition):
        for piece in partition.pieces:
            changes = loop.run(read_piece(scan.target, piece, scan.semantics))
            yield from to_table(scan.target, changes).to_batches(max_chunksize=_BATCH_ROWS)
    elif isinstance(partition, FilePartition):
        target = scan.target
        for part in row_changes(Store(target.root), partition.changes, target.schema, target.key):
            yield from stored_rows(target, part.rows).to_batches(max_chunksize=_BATCH_ROWS)
