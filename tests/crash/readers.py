"""Readers of a table's log that live through the crashes of its writers, or begin after them."""

from __future__ import annotations

import asyncio
import threading

from deltalake import DeltaTable, QueryBuilder

from lakekit.logstore import loop
from lakekit.logstore.positions import resumption
from lakekit.logstore.reading import LogReader, Semantics, Startup, read, to_table
from lakekit.logstore.topic import start_offsets
from lakekit.table.log import TableLog
from lakekit.table.log_reads import _after
from tests.crash.changelog import Replay
from tests.waiting import wait_until

COLUMNS = ("id", "n", "text")


def stored(root, version=None):
    """Returns the rows of the files, as a reader sees them that is neither Spark nor lakekit."""
    files = DeltaTable(root, version=version)
    found = QueryBuilder().register("t", files).execute("SELECT id, n, text FROM t").read_all()
    return [
        dict(zip(COLUMNS, row, strict=True))
        for row in zip(*(c.to_pylist() for c in found.columns), strict=True)
    ]


def by_key(rows):
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows), "a key is there twice"
    return found


class Follower:
    """A reader in a thread of its own that replays what it gets."""

    def __init__(self, name, replay):
        self.name = name
        self.replay = replay
        self.error = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def end(self):
        self._stop.set()
        self._thread.join(30)

    def rows_at(self, ends):
        """Waits until it has read up to some offsets; returns its rows then."""
        wait_until(lambda: self.error or self._has(ends), f"{self.name} reads up to {ends}")
        if self.error:
            raise AssertionError(f"{self.name}: {self.error}") from self.error
        return self.replay.ended()

    def _has(self, ends):
        positions = self.positions
        return positions is not None and all(positions.get(p, -1) >= end for p, end in ends.items())

    def _run(self):
        try:
            asyncio.run(self._follow())
        except BaseException as error:
            self.error = error


class TailFollower(Follower):
    """`Table.tail()` from the log's beginning."""

    def __init__(self, table):
        super().__init__("tail", Replay())
        self._tail = table.tail("earliest", guarantee=True)
        self.positions = None

    async def _follow(self):
        async with self._tail as tail:
            while not self._stop.is_set():
                # What tail() does for each step, but without waiting for a change to come.
                for change in tail._rows(await tail._poll()):
                    where = change.partition, change.offset
                    self.replay.feed(change.kind, dict(change.row), where)
                self.positions = tail.positions


class HybridFollower(Follower):
    """The files at the newest version, then the log from there on."""

    def __init__(self, table, name):
        log = TableLog.of(table)
        begin = resumption(table.root, None)
        super().__init__(
            f"hybrid from {name}, version {begin.version}", Replay(stored(table.root, begin.version))
        )
        self._target = log.target
        self._startup = _after(log, begin)
        self.positions = None

    async def _follow(self):
        async with LogReader(self._target, self._startup, Semantics()) as reader:
            while not self._stop.is_set():
                changes = await reader.poll()
                _feed(self.replay, self._target, changes)
                self.positions = dict(reader.positions)


def from_earliest(table, strict=True):
    """Returns the rows that a reader has which starts now, at the log's beginning."""
    target = TableLog.of(table).target
    assert not any(loop.run(start_offsets(target.connection, target.topic)).values())
    replay = Replay(strict=strict)
    _feed(replay, target, loop.run(read(target, Startup("earliest"), Semantics())))
    return replay.ended()


def _feed(replay, target, changes):
    if changes:
        rows = to_table(target, changes).select(list(COLUMNS)).to_pylist()
        for change, row in zip(changes, rows, strict=True):
            replay.feed(change.change.kind.value, row, (change.record.partition, change.record.offset))


# With Spark


def from_read_log(table):
    replay = Replay()
    _feed_spark(replay, table.read_log(guarantee=True).collect())
    return replay.ended()


class SparkFollower:
    """A stream of Spark over the log, whose micro-batches end wherever the log happens to end then."""

    def __init__(self, table, checkpoint, startup):
        self.name = f"Spark stream, {startup}"
        self.replay = Replay()
        self.error = None
        changes = table.read_stream("log", startup=startup, changelog=True)
        writer = changes.writeStream.foreachBatch(self._take).option("checkpointLocation", str(checkpoint))
        self._query = _started(writer.trigger(processingTime="2 seconds"))

    def rows(self):
        """Waits until it has read the log to its end; returns its rows then."""
        if self.error is None:
            self._query.processAllAvailable()
        if self.error:
            raise AssertionError(f"{self.name}: {self.error}") from self.error
        return self.replay.ended()

    def end(self):
        self._query.stop()

    def _take(self, rows, _number):
        try:
            _feed_spark(self.replay, rows.collect())
        except BaseException as error:
            self.error = self.error or error
            raise


def _started(writer, attempts=5):
    """Returns the query once it reads: Spark gives up a Python process that has not started after 10 s."""
    query = writer.start()
    wait_until(lambda: query.exception() or "Initializing" not in query.status["message"], "a stream starts")
    error = query.exception()
    if error is None:
        return query
    if attempts > 1 and "failed to connect back" in str(error):
        return _started(writer, attempts - 1)
    raise error


def _feed_spark(replay, rows):
    found = [row.asDict() for row in rows]
    # Rows of the files come first; a partition's changes stand in their order already.
    found.sort(key=lambda row: (row["_log_partition"] is not None, row["_log_partition"] or 0))
    for row in found:
        where = row["_log_partition"], row["_log_offset"]
        replay.feed(row["_change_kind"], {name: row[name] for name in COLUMNS}, where)
