"""Writers are killed at every step of the protocol, again and again, and both stores agree each time.

`LAKEKIT_CRASH_KILLS` sets how many are killed, `LAKEKIT_CRASH_SEED` what happens to them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lakekit.logstore import loop
from lakekit.logstore.topic import end_offsets
from lakekit.table.log import TableLog
from tests.crash import points, readers
from tests.crash.harness import Writer
from tests.crash.source import KEYS, Script, Source

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no embedded broker on Windows")

KILLS = int(os.environ.get("LAKEKIT_CRASH_KILLS", "20"))
SEED = int(os.environ.get("LAKEKIT_CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
SPARK_EVERY = 5
"""Checks of which one asks Spark, too."""
HYBRIDS = 4
"""Readers that began between a crash and the next start, and still live."""
INTERVAL_S = 0.5


@dataclass(frozen=True)
class Kill:
    """When a writer is to die.

    Attributes:
        phase: "stream", "recovery" or "batch".
        point: see `points`.
        hit: which pass of the point.
        many: whether few rows count as many, so that Spark's tasks write and send them.
        leaves: whether the files get little, so that the next start finds much in the log.
    """

    phase: str
    point: str
    hit: int = 1
    many: bool = False
    leaves: bool = False


def plan(rng):
    """Yields kills that take up every point before any of them for the second time.

    Those in recovery follow one of a stream that left something to recover.
    """
    every = [
        [("stream", point) for point in (*points.STREAM, points.RANDOM)],
        [("recovery", point) for point in (*points.RECOVERY, points.RANDOM)],
        [("batch", point) for point in (*points.BATCH, points.RANDOM)],
    ]
    decks = [[] for _ in every]
    while True:
        order = rng.choice([(0, 1), (0, 2), (2,), (0, 1, 1)])
        for number in order:
            if not decks[number]:
                decks[number] = rng.sample(every[number], len(every[number]))
            phase, point = decks[number].pop()
            hit = rng.choice({"stream": [1, 1, 2, 3, 5], "recovery": [1], "batch": [1, 1, 2]}[phase])
            leaves = phase == "stream" and 1 in order
            if leaves and point.partition(" ")[2] in ("take", "deliver", "send Change"):
                hit = rng.randint(2, 5)
            yield Kill(phase, point, hit, not leaves and rng.random() < 0.2, leaves)


@dataclass
class Stage:
    """A table, its writers and its readers."""

    lake: object
    folder: object
    rng: random.Random
    source: Source = None
    script: Script = None
    mine: Script = None
    standby: Writer = None
    unconfirmed: dict = None
    followers: list = field(default_factory=list)
    hybrids: list = field(default_factory=list)
    started: int = 0
    checks: int = 0

    def __post_init__(self):
        self.name = f"killed.t{uuid.uuid4().hex[:8]}"
        self.lake.create_database("killed", if_not_exists=True)
        self.table = self.lake.create_table(
            self.name,
            "id BIGINT, n BIGINT, text STRING",
            primary_key=["id"],
            buckets=3,
            properties={
                "log-store.enabled": True,
                "log-store.address": "embedded",
                "log-store.topic": self.name.replace(".", "-"),
                "log-store.consistency-guarantee.enabled": True,
            },
        )
        self.source = Source(self.folder / "source", self.rng)
        self.script, self.mine = Script(self.rng, 1_000), Script(self.rng, 2_000)
        self.log = TableLog.of(self.table)  # and with it a share in the broker, which outlives the writers
        self.tail = readers.TailFollower(self.table).start()
        self.stream = readers.SparkFollower(self.table, self.folder / "checkpoint", "earliest")
        self.standby = self._new_writer()

    def end(self):
        for follower in [self.tail, *self.hybrids]:
            follower.end()
        self.stream.end()
        if self.standby:
            self.standby.end()

    # Writers

    def _new_writer(self):
        self.started += 1
        return Writer(
            self.lake.warehouse, self.name, self.source.folder, self.folder / f"writer-{self.started}.log"
        )

    def next_writer(self, more):
        """Returns a writer that is ready; the one after it gets ready meanwhile."""
        writer, self.standby = self.standby, self._new_writer() if more else None
        return writer

    def started_writer(self, more=True):
        """Returns one that has done what there was to do, and commits to the files when it is told to."""
        writer = self.next_writer(more)
        assert writer.request("stream", interval=3_600)
        assert writer.request("drain")
        return writer

    def kill(self, writer, kill):
        """Lets a writer work until it dies; returns whether it did."""
        limits = (20, 10) if kill.many else (50_000, 20_000)
        interval = 3_600 if kill.leaves else INTERVAL_S
        writer.request("limits", batch=limits[0], changes=limits[1])
        arm = {"point": kill.point, "hit": kill.hit, "after": self.rng.uniform(0, 3)}
        if kill.phase == "recovery":
            return not (
                writer.request("arm", **arm)
                and writer.request("stream", interval=INTERVAL_S)
                and writer.request("drain")
            )
        assert writer.request("stream", interval=interval)
        assert self.complete(writer)
        self.check(f"before {kill}")
        writer.request("arm", **arm)
        for number in range(12):
            for _ in range(2):
                self.source.add(rows=self.rng.choice([5, 60, 200]))
            if kill.phase == "batch" and not self.write(writer, self.script.next()):
                return True
            if not writer.request("take_all" if kill.leaves and number < 3 else "drain"):
                return True
        return False

    def complete(self, writer):
        """Lets a writer do what is left."""
        if self.unconfirmed is not None and not self.write(writer, self.unconfirmed):
            return False
        return writer.request("drain")

    def write(self, writer, command):
        self.unconfirmed = command
        if not writer.request("write", **command):
            return False
        self.unconfirmed = None
        return True

    def write_here(self):
        """Writes from this process, beside the stream that may be down."""
        command = self.mine.next()
        if command["upserts"]:
            self.table.upsert(command["upserts"])
        else:
            self.table.delete(f"id IN ({', '.join(map(str, command['deletes']))})")

    # Readers

    def look_between(self, name):
        """Starts a reader while the writer is dead."""
        self.hybrids.append(readers.HybridFollower(self.table, name).start())
        if len(self.hybrids) > HYBRIDS:
            self.hybrids.pop(0).end()

    def check(self, where, with_spark=False):
        """Compares both stores, and all readers, with what was written."""
        self.checks += 1
        expected = {**self.source.rows, **self.script.rows, **self.mine.rows}
        files = readers.by_key(readers.stored(self.table.root))
        assert files == expected, self.story(files, expected, where)
        target = self.log.target
        ends = loop.run(end_offsets(target.connection, target.topic))
        for follower in [self.tail, *self.hybrids]:
            assert follower.rows_at(ends) == expected, f"{follower.name}, {where}"
        assert readers.from_earliest(self.table) == expected, f"from earliest, {where}"
        if with_spark or self.checks % SPARK_EVERY == 0:
            assert self.stream.rows() == expected, f"{self.stream.name}, {where}"
            assert readers.from_read_log(self.table) == expected, f"read_log, {where}"
            fresh = self.table.freshest().collect()
            assert readers.by_key([row.asDict() for row in fresh]) == expected, f"freshest, {where}"

    def story(self, files, expected, where):
        """Tells what is known of rows that the files lack: are they in the log, and what does Spark think?"""
        wrong = [key for key in {*files, *expected} if files.get(key) != expected.get(key)]
        log = readers.from_earliest(self.table, strict=False)
        in_log = sum(log.get(key) == expected.get(key) for key in wrong)
        places = {
            path.parent.name: max(
                int(p.name.split(".")[0]) for p in path.parent.iterdir() if p.name[0].isdigit()
            )
            for path in Path(self.table.root, "_streams").rglob("[0-9]*")
            if path.is_file()
        }
        return (
            f"files, {where}: {len(wrong)} keys are wrong, {in_log} of them right in the log; rows"
            f" {sorted(expected[k]['n'] for k in wrong if k in expected)}, {self.source.files} files of the source;"
            f" last of each in the checkpoint: {places}; epochs in the table: {self.table.snapshot().txns}"
        )


@pytest.fixture
def stage(lake, tmp_path):
    print(f"\nLAKEKIT_CRASH_SEED={SEED}")  # noqa: T201 (pytest shows it when the test fails)
    made = Stage(lake, tmp_path, random.Random(SEED))
    yield made
    made.end()


def test_a_writer_is_killed_again_and_again(stage):
    stage.source.add()
    # Not all come by: what a recovery does depends on what the writer before it left.
    kills = list(itertools.islice(plan(stage.rng), 2 * KILLS))
    died = {}
    for number, kill in enumerate(kills):
        if sum(died.values()) == KILLS:
            break
        started = time.monotonic()
        writer = stage.next_writer(more=True)
        try:
            dead = stage.kill(writer, kill)
        finally:
            writer.end()
        if dead:
            died[kill.phase, kill.point] = died.get((kill.phase, kill.point), 0) + 1
            stage.look_between(f"kill {number} ({kill})")
            if stage.rng.random() < 0.3:
                stage.write_here()
        seconds = time.monotonic() - started
        print(f"{number} {kill}: {'died' if dead else 'did not come by'}, {seconds:.1f} s", flush=True)  # noqa: T201
    writer = stage.next_writer(more=False)
    try:
        assert writer.request("stream", interval=INTERVAL_S)
        assert stage.complete(writer)
        stage.check("at the end", with_spark=True)
        hybrid = readers.SparkFollower(stage.table, stage.folder / "hybrid", "full")
        stage.source.add()
        stage.write(writer, stage.script.next())
        assert writer.request("drain")
        stage.check("after the end", with_spark=True)
        assert hybrid.rows() == stage.stream.rows()
        hybrid.end()
    finally:
        writer.end()
    print(f"{sum(died.values())} died: {died}")  # noqa: T201
    assert sum(died.values()) == KILLS


SETTLING = (
    None,
    "after commit STREAM",
    "after flip",
    "torn send Change",
    "after correct",
    "before mark",
)
"""Points at which a stream dies that has to correct the log, as somebody else wrote rows of its keys."""
FEW_SETTLING = (None, "after flip")


def test_a_stream_dies_while_another_writer_changes_its_rows(stage):
    """Who commits to the files last has the last word; the log says the same in the end."""
    stage.tail.end()
    stage.stream.end()
    stage.source.add()
    writer, wrong = stage.started_writer(), {}
    steps = SETTLING if KILLS > 100 else FEW_SETTLING
    try:
        for number, point in enumerate(steps):
            before = set(stage.source.rows)
            stage.source.add()
            assert writer.request("take_all")
            stage.table.upsert([{"id": k, "n": -number, "text": "other"} for k in range(0, KEYS, 3)])
            both_delete = before - set(stage.source.rows)
            stage.table.delete([{"id": k} for k in {*range(3, KEYS, 6), *both_delete}])
            later = stage.source.prepare()
            writer.request("meanwhile", point="after write", names=later)
            writer.request("arm", point=point)
            assert writer.request("drain") is (point is None)
            with contextlib.suppress(FileNotFoundError):
                os.rename(*later)
            if point is not None:
                writer.end()
                writer = stage.started_writer(more=point != steps[-1])
            if found := differences(stage):
                wrong[point] = found
    finally:
        writer.end()
    assert not wrong


def differences(stage):
    """Returns where the log's last word is not that of the files, and what the files lack of the stream's own rows."""
    files = readers.by_key(readers.stored(stage.table.root))
    log = readers.from_earliest(stage.table, strict=False)
    source = stage.source.rows
    found = [f"log {log.get(k)}, files {files.get(k)}" for k in {*log, *files} if log.get(k) != files.get(k)]
    own = [key for key in range(KEYS) if key % 3]
    found += [f"source {source.get(k)}, files {files.get(k)}" for k in own if source.get(k) != files.get(k)]
    return [f"{len(found)} of {len(files)}", *found[:3]] if found else []
