"""The embedded broker as its users see it: one for all kernels, and none left behind."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import psutil
import pytest

from lakekit.errors import LogStoreError, SetupError
from lakekit.logstore.broker import FOLDER, EmbeddedBroker
from lakekit.logstore.connection import Connection
from lakekit.logstore.topic import end_offsets, ensure_topic
from lakekit.session import java
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is none on Windows")

KERNEL = """
import sys
from lakekit.logstore.broker import EmbeddedBroker
broker = EmbeddedBroker(sys.argv[1])
print(broker.address(), flush=True)
{more}
sys.stdin.read()
"""


@pytest.fixture
def warehouse(tmp_path):
    """A warehouse whose name is as awkward as names may be; at its end no process of it is left."""
    place = tmp_path / "ware, house=ä"
    yield str(place)
    wait_until(lambda: not processes(place))


@pytest.fixture
def here(warehouse):
    """The broker of this process."""
    broker = EmbeddedBroker(warehouse)
    yield broker
    broker.leave()


def processes(warehouse):
    """Keeper, shell and Kafka of a warehouse: what works in the folder of the broker."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == os.path.join(warehouse, FOLDER) and process.status() != "zombie":
                found.append(process)
        except psutil.Error:
            continue
    return found


def keeper(warehouse):
    (found,) = [p for p in processes(warehouse) if any(arg.endswith("keeper.py") for arg in p.cmdline())]
    return found


def kafka(warehouse):
    (found,) = [p for p in processes(warehouse) if p.cmdline()[0].endswith("java")]
    return found


@contextmanager
def kernel(warehouse, more=""):
    """Another process that uses the broker, until its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", KERNEL.format(more=more), warehouse],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()


def told(process):
    return process.stdout.readline().strip()


def answers(address):
    try:
        socket.create_connection(("127.0.0.1", int(address.partition(":")[2])), timeout=1).close()
    except OSError:
        return False
    return True


def write(address):
    """Adds a record, and returns how many there are."""

    async def work():
        from aiokafka import AIOKafkaProducer

        connection = Connection.of(address, {})
        await ensure_topic(connection, "t", 1)
        async with AIOKafkaProducer(**connection.for_aiokafka(), acks="all") as producer:
            await producer.send_and_wait("t", b"x")
        return (await end_offsets(connection, "t"))[0]

    return asyncio.run(work())


def test_kernels_share_one_broker_which_ends_with_the_last(warehouse):
    with kernel(warehouse) as one:
        with kernel(warehouse) as other:
            address = told(one)
            assert told(other) == address
            assert write(address) == 1
        assert write(address) == 2
    wait_until(lambda: not answers(address))
    wait_until(lambda: not processes(warehouse))
    with kernel(warehouse) as again:
        assert told(again) == address
        assert write(address) == 3


def test_a_kernel_that_is_killed_takes_the_broker_with_it(warehouse):
    with kernel(warehouse) as process:
        address = told(process)
        process.kill()
        wait_until(lambda: not answers(address))
        wait_until(lambda: not processes(warehouse))


def test_a_kernel_that_is_killed_while_kafka_starts(warehouse):
    with kernel(warehouse) as process:
        wait_until(lambda: processes(warehouse))
        process.kill()
        wait_until(lambda: not processes(warehouse))
        assert told(process) == ""


def test_a_keeper_that_is_killed_takes_kafka_with_it_and_the_next_call_starts_it_again(warehouse, here):
    address = here.address()
    assert write(address) == 1
    old, end = kafka(warehouse), keeper(warehouse)
    end.kill()
    end.wait()
    assert here.address() == address
    assert not old.is_running()
    assert write(address) == 2


def test_a_kernel_and_its_keeper_are_killed(warehouse):
    with kernel(warehouse) as process:
        address = told(process)
        end = keeper(warehouse)
        process.kill()
        end.kill()
        wait_until(lambda: not answers(address))
        wait_until(lambda: not processes(warehouse))


def test_kafka_is_killed_and_the_next_call_starts_it_again(warehouse, here):
    address = here.address()
    assert write(address) == 1
    end = kafka(warehouse)
    end.kill()
    end.wait()
    assert here.address() == address
    assert write(address) == 2


def test_an_interrupt_is_not_the_brokers(warehouse):
    wait = """
import time
try:
    while True:
        time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with kernel(warehouse, wait) as process:
        address = told(process)
        before = {p.pid for p in processes(warehouse)}
        os.killpg(process.pid, signal.SIGINT)
        assert told(process) == "interrupted"
        assert answers(address)
        assert {p.pid for p in processes(warehouse)} == before


def test_children_of_a_kernel_have_no_share(warehouse):
    more = """
import os, subprocess
program = subprocess.Popen(["sleep", "100"], close_fds=False)
child = os.fork()
if child == 0:
    os.read(0, 1)
    os._exit(0)
broker.leave()
print(program.pid, child, flush=True)
sys.stdin.read()
program.kill()
program.wait()
os.wait()
"""
    with kernel(warehouse, more) as process:
        address = told(process)
        program, child = map(int, told(process).split())
        wait_until(lambda: not answers(address))
        wait_until(lambda: not processes(warehouse))
        assert psutil.pid_exists(program)
        assert psutil.pid_exists(child)


def test_a_port_that_is_taken(warehouse, here):
    address = here.address()
    assert write(address) == 1
    here.leave()
    wait_until(lambda: not processes(warehouse))
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", int(address.partition(":")[2])))
        other.listen()
        elsewhere = here.address()
        assert elsewhere != address
        assert write(elsewhere) == 2


def test_leaving_and_coming_back_waits_for_the_end(warehouse, here):
    address = here.address()
    assert write(address) == 1
    here.leave()
    here.leave()
    assert here.address() == address
    assert write(address) == 2


def test_no_java(warehouse, here, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(java, "_USUAL_FOLDERS", {})
    monkeypatch.setattr(java, "_EVERYWHERE", ())
    with pytest.raises(SetupError, match="needs Java"):
        here.address()
    assert not processes(warehouse)


def test_a_start_that_fails_says_why_and_leaves_nothing(warehouse, here):
    data = here.folder / "data"
    data.mkdir(parents=True)
    (data / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=bGFrZWtpdC10ZXN0cy0wMQ\n")
    with pytest.raises(LogStoreError) as raised:
        here.address()
    assert "did not start: " in raised.value.message
    assert "node" in raised.value.message
    assert str(here.folder / "broker.log") in raised.value.hint
    wait_until(lambda: not processes(warehouse))


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / FOLDER).touch()
    with pytest.raises(LogStoreError, match=r"cannot use its folder .*log-store: File exists"):
        EmbeddedBroker(str(tmp_path)).address()


def test_a_warehouse_that_is_no_folder():
    with pytest.raises(LogStoreError, match=r"s3a://bucket/lake.*'log-store\.address' = 'host:port'"):
        EmbeddedBroker("s3a://bucket/lake")


def test_windows(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(LogStoreError, match="does not run on Windows"):
        EmbeddedBroker(str(tmp_path))


def test_its_files_are_few_and_small(warehouse, here):
    here.address()
    names = {path.name for path in here.folder.iterdir()}
    assert {"data", "broker.log", "address"} <= names
    assert all(path.stat().st_size < 100_000 for path in here.folder.iterdir() if path.is_file())
    assert len(json.loads((here.folder / "ports.json").read_text())) == 2
