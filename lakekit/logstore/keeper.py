"""The keeper: a process that runs the embedded Kafka as long as a kernel uses it.

`lakekit.logstore.broker` starts it as a script of the standard library only, in the folder of the broker:
``python -I keeper.py java classpath``. It lives by three locks, which the operating system takes from a
process that is gone, however it went:

* `keeper.lock` is the keeper's own: while it is held, a keeper lives.
* `kafka.lock` is inherited by Kafka: while it is held, no other Kafka may open the same data.
* `users.lock` is shared by the kernels: when the keeper gets it for itself, all of them are gone.

Kafka in turn hangs on a pipe from the keeper. When that closes, be it because the keeper closes it or because
the keeper is gone, a shell beside Kafka stops it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

if sys.platform != "win32":
    import fcntl

HEAP_MB = 512
LOG_BYTES = 1 << 20
STARTED = b"Kafka Server started"
# Systems take the ports of outgoing connections from above these.
PORTS = range(20_000, 32_000)
# A kernel that looks whether a keeper lives holds the lock for a moment.
_RACE_S = 2
_END_S = 30

# Descriptor 3 is free: in the keeper it is that of `keeper.lock`, which is not inherited.
_RUN = """
exec 3<&0
"$@" </dev/null &
kafka=$!
{
  read -r line <&3
  kill $kafka
  tries=0
  while [ $tries -lt 200 ] && kill -0 $kafka; do /bin/sleep 0.1; tries=$((tries + 1)); done
  kill -9 $kafka
} </dev/null >/dev/null 2>&1 &
guard=$!
wait $kafka
code=$?
kill $guard
exit $code
"""


def main(java: str, classpath: str) -> int:
    """Runs Kafka in the current folder until no kernel uses it; returns the exit code."""
    if _locked("keeper.lock", _RACE_S) is None:
        return 0  # the keeper that another kernel started was faster
    _new_log()
    lock = _locked("kafka.lock", _END_S)
    if lock is None:
        sys.stderr.write("Error: the Kafka of the keeper before does not end.\n")
        return 1
    client, controller = _ports()
    _configure(client, controller)
    if code := _format(java, classpath):
        return code
    kafka = subprocess.Popen(
        ["/bin/sh", "-c", _RUN, "kafka", *_command(java, classpath, "kafka.Kafka", "server.properties")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[lock],
    )
    threading.Thread(target=_end_when_alone, args=(kafka,), daemon=True).start()
    _follow(kafka, f"127.0.0.1:{client}")
    code = kafka.wait()
    Path("address").unlink(missing_ok=True)
    return code


def _locked(name: str, patience: float) -> int | None:
    """Returns the descriptor of a file that is locked from now to the end, or None if it is not to be had."""
    handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return None
            time.sleep(0.02)
        else:
            return handle


def _new_log() -> None:
    """Sends what this process prints to a new `broker.log`, beside the one before."""
    with contextlib.suppress(FileNotFoundError):
        os.replace("broker.log", "broker.log.1")
    log = os.open("broker.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def _ports() -> list[int]:
    """Returns ports for clients and controller: those of the last time, or others where these are taken."""
    try:
        wanted = [int(port) for port in json.loads(Path("ports.json").read_text())]
    except (OSError, ValueError):
        wanted = [secrets.choice(PORTS), secrets.choice(PORTS)]
    found: list[int] = []
    for each in wanted:
        port = each
        while port in found or not _is_free(port):
            port = secrets.choice(PORTS)
        found.append(port)
    _write("ports.json", json.dumps(found))
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Java does: connections of the last run that are still being closed do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _configure(client: int, controller: int) -> None:
    """Writes Kafka's settings; paths in them are relative, so a warehouse may have any name and be moved."""
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{client}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": "data",
        "auto.create.topics.enable": "false",
        # One node is all there is.
        "default.replication.factor": 1,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        # Small, for a laptop.
        "num.network.threads": 2,
        "num.io.threads": 4,
        "log.segment.bytes": 64 << 20,
        "log.index.size.max.bytes": 1 << 20,
        "log.cleaner.dedupe.buffer.size": 16 << 20,
        # Without it, the log of the controller grows twice a second though nothing happens.
        "metadata.max.idle.interval.ms": 0,
    }
    _write("server.properties", "".join(f"{name}={value}\n" for name, value in settings.items()))


def _format(java: str, classpath: str) -> int:
    """Gives the data folder its identity, the first time; returns the exit code."""
    if Path("data", "meta.properties").exists():
        return 0
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # One word with its option: it may begin with a minus.
    tool = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "--config=server.properties"]
    command = _command(java, classpath, *tool)
    command.insert(1, "-XX:TieredStopAtLevel=1")  # it is over before better code pays
    return subprocess.run(command, check=False).returncode


def _command(java: str, classpath: str, *program: str) -> list[str]:
    log4j = (Path(__file__).parent / "log4j2.properties").as_uri()
    options = [f"-Xmx{HEAP_MB}m", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={log4j}"]
    return [java, *options, "-cp", classpath, *program]


def _end_when_alone(kafka: subprocess.Popen[bytes]) -> None:
    """Stops Kafka when the last kernel is gone."""
    users = os.open("users.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(users, fcntl.LOCK_EX)  # kept to the end: a new kernel waits until Kafka is gone
    Path("address").unlink(missing_ok=True)
    assert kafka.stdin is not None  # noqa: S101 (for the type checker)
    kafka.stdin.close()
    try:
        kafka.wait(_END_S)
    except subprocess.TimeoutExpired:
        os.killpg(0, signal.SIGKILL)


def _follow(kafka: subprocess.Popen[bytes], address: str) -> None:
    """Writes what Kafka says to the log until it ends, and the address to its file when it is ready."""
    assert kafka.stdout is not None  # noqa: S101 (for the type checker)
    written = 0
    for line in kafka.stdout:
        with contextlib.suppress(OSError):  # better a log with gaps than no Kafka
            if written > LOG_BYTES:
                _new_log()
                written = 0
            written += os.write(1, line)
        if STARTED in line:
            _write("address", address)


def _write(name: str, text: str) -> None:
    """Replaces a file as a whole."""
    new = Path(f"{name}.new")
    new.write_text(text)
    new.replace(name)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
