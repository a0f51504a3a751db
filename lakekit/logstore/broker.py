"""The embedded broker: a real Kafka of one node for a warehouse, shared by all kernels that use it.

Each kernel holds a share of a lock beside the broker's data. A small process of its own, the *keeper*, runs
Kafka and ends it, its data in place, when the last share is gone: given back, or lost with a kernel that died.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import IO

from lakekit.errors import LogStoreError
from lakekit.session import jars, versions
from lakekit.session.java import find_java

if sys.platform != "win32":
    import fcntl

FOLDER = ".log-store"
"""Folder of the broker in a warehouse; hidden, so that it is no database."""

_KEEPER = Path(__file__).with_name("keeper.py")
_OWN_KAFKA = "Give the table the address of a Kafka with 'log-store.address' = 'host:port'."
_START_S = 60
_STOP_S = 40


class EmbeddedBroker:
    """The share of this process in the broker of a warehouse; safe to use from many threads.

    Args:
        warehouse: a folder of this machine.

    Raises:
        LogStoreError: if the warehouse is none, or the system is Windows.
    """

    def __init__(self, warehouse: str) -> None:
        if sys.platform == "win32":
            raise LogStoreError("The embedded Kafka does not run on Windows.", _OWN_KAFKA)
        if "://" in warehouse:
            raise LogStoreError(f"The embedded Kafka cannot keep its data in {warehouse}.", _OWN_KAFKA)
        self.folder = Path(warehouse).absolute() / FOLDER
        self._share: IO[bytes] | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        _brokers.add(self)

    def __repr__(self) -> str:
        return f"EmbeddedBroker({str(self.folder.parent)!r})"

    def address(self) -> str:
        """Returns ``127.0.0.1:port`` of the broker, and starts it first if it does not run.

        Raises:
            SetupError: if Java or Kafka's jars are missing.
            LogStoreError: if the folder cannot be written, or Kafka does not start.
        """
        with self._lock:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._join()
                return self._reach()
            except OSError as error:
                raise LogStoreError(
                    f"The embedded Kafka cannot use its folder {self.folder}: {error.strerror or error}.",
                    "Make the warehouse writable, or give the table the address of another Kafka.",
                ) from error

    def running(self) -> str | None:
        """Returns its address if it runs; starts nothing."""
        return _answering(self.folder / "address")

    def leave(self) -> None:
        """Gives up the share; with the last one the broker stops."""
        with self._lock:
            if self._share is not None:
                self._share.close()
                self._share = None

    def _join(self) -> None:
        """Takes a share; waits where a keeper that found itself alone is stopping Kafka."""
        if self._share is not None:
            return
        share = _open(self.folder / "users.lock")
        deadline = time.monotonic() + _STOP_S
        while not _take_share(share):
            if time.monotonic() > deadline:
                share.close()
                raise LogStoreError("The embedded Kafka is being stopped, and does not end.", self._hint())
            time.sleep(0.05)
        self._share = share

    def _reach(self) -> str:
        keeper = None
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if self._keeper_lives():
                if address := _answering(self.folder / "address"):
                    return address
            elif keeper is None:
                command = [sys.executable, "-I", str(_KEEPER), *_program()]
                keeper = self._keeper = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # an interrupted cell must not stop it
                )
                deadline = time.monotonic() + _START_S  # jars may have had to be downloaded
            elif keeper.poll() is not None:
                break
            time.sleep(0.05)
        problem = _last_problem(self.folder / "broker.log") or f"no answer within {_START_S} s"
        raise LogStoreError(f"The embedded Kafka did not start: {problem}.", self._hint())

    def _keeper_lives(self) -> bool:
        """Tells whether a keeper holds its lock; the address that a dead one left behind is removed."""
        with _open(self.folder / "keeper.lock") as probe:
            if not _take_share(probe):
                return True
            (self.folder / "address").unlink(missing_ok=True)
        return False

    def _hint(self) -> str:
        return f"Its log is {self.folder / 'broker.log'}."

    def _forget(self) -> None:
        """In a forked child: the share is the parent's alone."""
        self._lock = threading.Lock()
        if self._share is not None:
            self._share.close()
            self._share = None


_brokers: weakref.WeakSet[EmbeddedBroker] = weakref.WeakSet()


def _forget_all() -> None:
    for broker in _brokers:
        broker._forget()


if sys.platform != "win32":
    # A share lives as long as any process has its file open; programs that are started never do.
    os.register_at_fork(after_in_child=_forget_all)


def _open(path: Path) -> IO[bytes]:
    return path.open("ab", buffering=0)


def _take_share(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _program() -> list[str]:
    """Java and Kafka's classpath."""
    java = str(find_java().executable)
    return [java, os.pathsep.join(map(str, jars.resolve(versions.kafka_coordinates())))]


def _answering(file: Path) -> str | None:
    """Returns the address in the file, if somebody listens there."""
    try:
        address = file.read_text()
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=1).close()
    except (OSError, ValueError):
        return None
    return address


def _last_problem(log: Path) -> str:
    """Returns the line of Kafka's log that says why it ended: the last cause, or else the last line."""
    if not log.exists():
        return ""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    causes = [line for line in lines if re.match(r"(Caused by: )?[\w.$]+(Exception|Error)\b", line)]
    return (causes or lines or [""])[-1][:300].rstrip(".")
