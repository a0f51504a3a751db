"""Kafka is away, slow, or ends in the middle of something: nothing is lost or doubled, and errors are clear."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import threading
import time
import uuid

import pytest

from lakekit.errors import LogStoreError
from lakekit.logstore import keeper, loop, producer
from lakekit.logstore.broker import _program
from lakekit.logstore.topic import end_offsets
from lakekit.table import table as table_module
from lakekit.table.log import TableLog
from tests.crash import readers
from tests.crash.source import Source
from tests.crash.writer import ROW, SOURCE
from tests.logstore.conftest import _free_ports
from tests.logstore.proxy import Mode, Proxy
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Kafka's scripts are for POSIX here")

OUTAGE_S = 4
SHORT_MS = 1_500
"""A time for deliveries that an outage outlasts."""

_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{proxy}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=data
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
log.segment.bytes=1048576
log.index.size.max.bytes=65536
"""


class OwnKafka:
    """A Kafka that clients reach through a proxy alone, with its data in the folder `data` of `folder`."""

    def __init__(self, folder):
        self.folder = folder
        client, controller = _free_ports(2)
        self.proxy = Proxy(client)
        settings = _SETTINGS.format(client=client, controller=controller, proxy=self.proxy.port)
        (folder / "server.properties").write_text(settings)
        self._program = _program()
        self._log = folder / "log"
        self.process = None
        tool = [
            "kafka.tools.StorageTool", "format", "-t", "bGFrZWtpdC10ZXN0cy0wMQ", "-c", "server.properties",
        ]  # fmt: skip
        command = keeper._command(*self._program, *tool)
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    def start(self):
        with self._log.open("wb") as out:
            command = keeper._command(*self._program, "kafka.Kafka", "server.properties")
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=out)
        wait_until(lambda: keeper.STARTED in self._log.read_bytes() or self.died, "Kafka starts")
        assert not self.died, self._log.read_text()[-3000:]

    @property
    def died(self):
        return self.process.poll() is not None

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=60)

    def end(self):
        if self.process and not self.died:
            self.stop()
        self.proxy.__exit__()


@pytest.fixture(scope="module")
def own_kafka(tmp_path_factory):
    kafka = OwnKafka(tmp_path_factory.mktemp("kafka"))
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.end()


@pytest.fixture
def kafka(own_kafka):
    yield own_kafka
    own_kafka.proxy.mode = Mode.PASS


@pytest.fixture
def table(lake, kafka):
    return new_table(lake, kafka)


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path / "source", random.Random(5))


def new_table(lake, kafka):
    lake.create_database("outages", if_not_exists=True)
    name = f"outages.t{uuid.uuid4().hex[:8]}"
    properties = {
        "log-store.enabled": True,
        "log-store.address": kafka.proxy.address,
        "log-store.topic": name.replace(".", "-"),
    }
    return lake.create_table(name, ROW, primary_key=["id"], buckets=2, properties=properties)


@contextlib.contextmanager
def ingesting(table, kafka, source, **options):
    """A stream from the source into the table; at its end Kafka is there."""
    rows = table.lake.spark.readStream.schema(SOURCE).option("maxFilesPerTrigger", 1).json(str(source.folder))
    ingestion = table.write_stream(rows, interval=0.5, **options)
    try:
        yield ingestion
    finally:
        kafka.proxy.mode = Mode.PASS
        ingestion.stop()


@contextlib.contextmanager
def following(table):
    tail = readers.TailFollower(table).start()
    try:
        yield tail
    finally:
        tail.end()


def drain(ingestion):
    ingestion._query.processAllAvailable()
    ingestion.flush()
    assert ingestion.status.state == "running", ingestion.status


def flown(ingestion, source):
    """Lets a stream begin: from here on both stores are in use."""
    source.add()
    drain(ingestion)


def outage(seconds=OUTAGE_S):
    """Lasts: an outage is one by its length."""
    time.sleep(seconds)


def agree(table, rows, tail=None):
    assert readers.by_key(readers.stored(table.root)) == rows
    assert readers.from_earliest(table) == rows
    if tail is not None:
        target = TableLog.of(table).target
        assert tail.rows_at(loop.run(end_offsets(target.connection, target.topic))) == rows


OUTAGES = [
    *((mode, None) for mode in (Mode.REFUSE, Mode.CUT, Mode.DEAF, Mode.SLOW, Mode.HANG)),
    *((mode, SHORT_MS) for mode in (Mode.REFUSE, Mode.DEAF, Mode.HANG)),
]


@pytest.mark.parametrize(("mode", "delivery_ms"), OUTAGES)
def test_ingestion_waits_through_an_outage_and_goes_on(table, kafka, source, mode, delivery_ms, monkeypatch):
    if delivery_ms:
        monkeypatch.setattr(producer, "DELIVERY_MS", delivery_ms)
    with following(table) as tail, ingesting(table, kafka, source) as ingestion:
        flown(ingestion, source)
        asked = kafka.proxy.requests
        kafka.proxy.mode = mode
        for _ in range(3):
            source.add()
        if mode is not Mode.REFUSE:
            wait_until(lambda: kafka.proxy.requests > asked, "somebody notices")
        outage()
        assert ingestion.status.state == "running"
        kafka.proxy.mode = Mode.PASS
        drain(ingestion)
        agree(table, source.rows, tail)


def test_ingestion_that_is_out_of_patience_stops_with_a_clear_error_and_can_be_started_again(
    table, kafka, source
):
    with following(table) as tail, ingesting(table, kafka, source, patience=1) as ingestion:
        flown(ingestion, source)
        kafka.proxy.mode = Mode.REFUSE
        source.add()
        with pytest.raises(LogStoreError, match=r"Kafka at 127\.0\.0\.1:\d+ cannot be reached"):
            ingestion.wait(60)
        assert ingestion.status.state == "failed"
        assert "cannot be reached" in ingestion.status.error
        kafka.proxy.mode = Mode.PASS
        ingestion.start()
        drain(ingestion)
        agree(table, source.rows, tail)


def test_what_was_sent_in_part_is_taken_back_when_ingestion_is_started_again(
    table, kafka, source, monkeypatch
):
    monkeypatch.setattr(producer, "DELIVERY_MS", SHORT_MS)
    with following(table) as tail, ingesting(table, kafka, source, patience=1) as ingestion:
        flown(ingestion, source)
        kafka.proxy.mode = Mode.DEAF  # what is sent arrives, and nobody knows
        source.add()
        with pytest.raises(LogStoreError):
            ingestion.wait(60)
        kafka.proxy.mode = Mode.PASS
        ingestion.start()
        drain(ingestion)
        agree(table, source.rows, tail)


def test_stopping_in_an_outage_does_not_wait_for_its_end(table, kafka, source):
    with ingesting(table, kafka, source, patience=600) as ingestion:
        flown(ingestion, source)
        kafka.proxy.mode = Mode.REFUSE
        source.add()
        outage(2)

        def stop():
            with contextlib.suppress(LogStoreError):
                ingestion.stop()

        stopping = threading.Thread(target=stop, daemon=True)
        stopping.start()
        stopping.join(30)
        stopped = not stopping.is_alive()
        kafka.proxy.mode = Mode.PASS
        stopping.join(60)
        assert stopped


@pytest.mark.parametrize("mode", [Mode.REFUSE, Mode.HANG, Mode.CUT, Mode.DEAF])
def test_a_write_in_an_outage_fails_soon_and_changes_nothing(table, kafka, mode):
    table.upsert([row(1), row(2)])
    version, files = table.version, data_files(table)
    kafka.proxy.mode = mode
    started = time.monotonic()
    with pytest.raises(LogStoreError, match=r"Kafka at 127\.0\.0\.1:\d+ cannot be reached"):
        table.upsert([row(2, n=5), row(3)])
    assert time.monotonic() - started < 12
    kafka.proxy.mode = Mode.PASS
    assert table.version == version
    assert data_files(table) == files
    table.upsert([row(2, n=5), row(3)])
    agree(table, {1: row(1), 2: row(2, n=5), 3: row(3)})


def test_a_write_over_a_slow_network_succeeds(table, kafka):
    kafka.proxy.mode = Mode.SLOW
    table.upsert([row(1), row(2)])
    kafka.proxy.mode = Mode.PASS
    agree(table, {1: row(1), 2: row(2)})


@pytest.mark.parametrize("mode", [Mode.REFUSE, Mode.DEAF])
@pytest.mark.parametrize("then", ["the same again", "another"])
def test_an_outage_after_the_commit(table, kafka, mode, then, monkeypatch):
    table.upsert([row(1)], writer_id="w", epoch=1)
    with monkeypatch.context() as patch:
        patch.setattr(producer, "DELIVERY_MS", SHORT_MS)
        patch.setattr(table_module, "commit", before_outage(table_module.commit, kafka.proxy, mode))
        with pytest.raises(LogStoreError, match="The rows are in the table as version") as raised:
            table.upsert([row(1, n=7), row(2)], writer_id="w", epoch=2)
    kafka.proxy.mode = Mode.PASS
    assert f"version {table.version}" in raised.value.message
    rows = {1: row(1, n=7), 2: row(2)}
    if then == "another":
        table.upsert([row(3)], writer_id="w", epoch=3)
        rows[3] = row(3)
    else:
        assert table.upsert([row(1, n=7), row(2)], writer_id="w", epoch=2).skipped
    agree(table, rows)


def before_outage(commit, proxy, mode):
    def committed(*args):
        outcome = commit(*args)
        proxy.mode = mode
        return outcome

    return committed


@pytest.mark.parametrize("end", [OwnKafka.stop, OwnKafka.kill])
def test_kafka_is_restarted(table, kafka, source, end):
    with following(table) as tail, ingesting(table, kafka, source) as ingestion:
        flown(ingestion, source)
        end(kafka)
        for _ in range(2):
            source.add()
        outage(2)
        kafka.start()
        drain(ingestion)
        agree(table, source.rows, tail)


def test_a_full_disk(lake, tmp_path, source):
    """Kafka gives up when it cannot write; with more room, and started again, it goes on where it was."""
    place = tmp_path / "kafka"
    with small_disk(place / "data", "12m"):
        kafka = OwnKafka(place)
        try:
            kafka.start()
            table = new_table(lake, kafka)
            with ingesting(table, kafka, source) as ingestion:
                flown(ingestion, source)
                fill(place / "data")
                for _ in range(2):
                    source.add(rows=200)
                outage()
                if not kafka.died:
                    kafka.kill()
                assert ingestion.status.state == "running"
                (place / "data" / "filler").unlink()
                kafka.start()
                drain(ingestion)
                agree(table, source.rows)
        finally:
            kafka.end()


@contextlib.contextmanager
def small_disk(folder, size):
    folder.mkdir(parents=True)
    mount, umount = shutil.which("mount"), shutil.which("umount")
    command = [mount or "mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() or not mount or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        yield
    finally:
        subprocess.run([umount, "-l", str(folder)], check=True)


def fill(folder):
    with contextlib.suppress(OSError), (folder / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))


def row(key, n=0):
    return {"id": key, "n": n, "text": f"{key}, {n}"}


def data_files(table):
    return sorted(
        name for folder, _, names in os.walk(table.root) for name in names if "_delta_log" not in folder
    )
