"""Fixtures for all tests: one local Spark, and one Spark Connect server, for the whole run."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import lakekit
from lakekit.session import archive, jars, spark, versions
from lakekit.session.connect import open_remote
from lakekit.session.java import find_java

_LONGEST = (
    "crash/",
    "integration/test_tutorials",
    "logstore/test_outages",
    "browser/",
    "integration/",
    "logstore/",
)
DRIVER_MEMORY = "2g"
JVM = "SPARK_SUBMIT_OPTS"
# Tests start many JVMs that live for a minute: the second compiler would take more time than it saves, 40 % of it all.
os.environ.setdefault(JVM, "-XX:TieredStopAtLevel=1")
SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first, so that no process has one of them left when the others are done."""

    def rank(item: pytest.Item) -> int:
        name = item.nodeid.removeprefix("tests/")
        return next((i for i, start in enumerate(_LONGEST) if name.startswith(start)), len(_LONGEST))

    items.sort(key=rank)


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakekit.Lake]:
    """A Lake on a local Spark, in an empty warehouse."""
    warehouse = tmp_path_factory.mktemp("lake") / "warehouse"
    settings = {"spark.driver.memory": DRIVER_MEMORY, "spark.hadoop.fs.s3a.secret.key": "a secret"}
    with lakekit.connect(warehouse, config=settings) as opened:
        yield opened


@dataclass(frozen=True)
class ConnectServer:
    """A running Spark Connect server."""

    url: str
    warehouse: str
    log: Path


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A Spark Connect server with Delta, in a process and a folder of its own."""
    delta = jars.not_in_spark(jars.resolve(versions.delta_coordinates()))
    with _serve(tmp_path_factory.mktemp("connect"), {"spark.jars": ",".join(map(str, delta))}) as server:
        yield server


@pytest.fixture
def plain_connect_server(tmp_path: Path) -> Iterator[ConnectServer]:
    """A Spark Connect server without Delta."""
    with _serve(tmp_path, {"spark.sql.extensions": "", "spark.sql.catalog.spark_catalog": ""}) as server:
        yield server


@contextmanager
def _serve(folder: Path, config: dict[str, str]) -> Iterator[ConnectServer]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    warehouse, log = folder / "warehouse", folder / "server.log"
    warehouse.mkdir()
    memory, java = {"spark.driver.memory": DRIVER_MEMORY}, find_java()
    settings = spark.local_settings(str(warehouse), folder, memory, archive.java_options(java)) | config
    settings["spark.connect.grpc.binding.address"] = "127.0.0.1"
    settings["spark.connect.grpc.binding.port"] = str(port)
    home = jars.spark_home()
    command = [str(home / "bin" / "spark-submit"), "--class", SERVER_CLASS]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"] if value else []
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("SPARK_") or key == JVM
    }
    environment |= {
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java.home),
        "PYSPARK_PYTHON": sys.executable,
    }
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*command, "spark-internal"], cwd=folder, env=environment, stdout=out, stderr=out
        )
    try:
        _wait_for_port(port, server, log)
        yield ConnectServer(f"sc://127.0.0.1:{port}", str(warehouse), log)
    finally:
        server.terminate()
        server.wait(timeout=60)


@pytest.fixture(scope="module")
def remote_lake(connect_server: ConnectServer) -> Iterator[lakekit.Lake]:
    """A Lake on the Connect server with the warehouse of the server.

    Do not use it in a module that uses `lake`: pyspark.sql.functions makes columns of either kind.
    """
    with pytest.MonkeyPatch.context() as patch:
        # Registered first, so that it is removed at the end: pyspark decides by this variable.
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        with open_remote(connect_server.url, connect_server.warehouse, {}) as opened:
            yield opened


def _wait_for_port(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"The Spark Connect server did not start:\n{log.read_text(errors='replace')[-3000:]}")
