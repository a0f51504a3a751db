"""Starts and ends the Spark of this process."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import shlex
import site
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakekit.errors import InvalidOptionError, SessionError
from lakekit.logstore.connection import PREFIX as LOG_PREFIX
from lakekit.session import archive, jars, scratch, versions
from lakekit.session.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
CHECKPOINT_FILES = "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
_RESERVED = {"spark.sql.warehouse.dir": "warehouse=", "spark.remote": "remote="}
# Settings of which both the user's part and lakekit's part must be there, and what stands between them.
JOINED = {"spark.sql.extensions": ",", "spark.jars": ",", "spark.driver.extraJavaOptions": " "}
# What the JVM must know when it starts. The rest follows over a socket: everybody can read a command line, and
# settings may be secrets.
_AT_LAUNCH = ("spark.driver.", "spark.jars", "spark.local.dir", "spark.master", "spark.submit.")
_CGROUP = Path("/sys/fs/cgroup")
_GIB = 1 << 30


def check_config(config: Mapping[str, object] | None) -> dict[str, str]:
    """Returns the user's Spark settings as texts; those of the LogStore are left out.

    Raises:
        InvalidOptionError: for a key that is no Spark setting, or one that has its own argument.
    """
    settings = {}
    for key, value in (config or {}).items():
        if key.startswith(LOG_PREFIX):
            continue
        if key in _RESERVED:
            raise InvalidOptionError(
                f"'{key}' cannot be set in config.", f"Pass it as connect({_RESERVED[key]}…)."
            )
        if not key.startswith("spark."):
            raise InvalidOptionError(
                f"'{key}' is no Spark setting.", f"Keys in config start with 'spark.' or '{LOG_PREFIX}'."
            )
        settings[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return settings


def cores() -> int:
    """Returns how many cores this process may use: those of the machine, or of its container."""
    allowed = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):  # no such file, or "max" in it
        quota, period = map(int, (_CGROUP / "cpu.max").read_text().split())
        allowed = min(allowed, max(1, math.ceil(quota / period)))
    return allowed


def memory() -> int:
    """Returns the memory in bytes that this process may use: that of the machine, or of its container."""
    limits = []
    try:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        limits.append(8 * _GIB)  # Windows tells it only through its own API
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            limits.append(int((_CGROUP / name).read_text()))
    return min(limits)


def driver_memory(available: int) -> int:
    """Returns the JVM's heap in MiB: 40 % of the memory, within 1 and 16 GiB.

    The rest is for the Python workers, which hold Arrow batches, and for the file cache.
    """
    return int(min(max(available * 0.4, _GIB), 16 * _GIB)) >> 20


def local_settings(
    warehouse: str, folder: Path, config: Mapping[str, str], java_options: str = ""
) -> dict[str, str]:
    """Returns the settings of a local session: lakekit's, with more options of the JVM, overridden by the user's."""
    number = cores()
    log4j = (Path(__file__).parent / "log4j2.properties").as_uri()
    settings = {
        "spark.master": f"local[{number}]",
        "spark.app.name": "lakekit",
        "spark.driver.memory": f"{driver_memory(memory())}m",
        # Loopback only: starts without a network, and opens no port to others.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder),
        # The JVM resolves relative paths against user.dir; Spark 4.0 would put a folder `artifacts` there.
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j} "
        + f"{shlex.quote(f'-Duser.dir={folder}')} {java_options}".rstrip(),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": warehouse,
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": str(2 * number),
        # VACUUM lists folders in this many tasks; Spark's default of 10,000 takes minutes on a laptop.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(4 * number),
        # Spark's default starts programs such as chmod and readlink, 100 ms for each micro-batch of a stream.
        "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_FILES,
        # A stream without news asks its source this often; Spark's 10 ms take a core from the other streams.
        "spark.sql.streaming.pollingDelay": "50ms",
        # A compaction in the background shares the cores instead of holding up the queue.
        "spark.scheduler.mode": "FAIR",
        # The same query shows the same times on every machine, and those that other Delta readers show.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
    }
    if python_path := _python_path():
        settings["spark.executorEnv.PYTHONPATH"] = python_path
    for key, value in config.items():
        joint = JOINED.get(key)
        keep = joint and key in settings and settings[key] not in value.split(joint)
        settings[key] = f"{settings[key]}{joint}{value}" if keep else value
    return settings


def start_local(warehouse: str, config: Mapping[str, str]) -> tuple[SparkSession, Path]:
    """Starts a local Spark with Delta; returns the session and its temporary folder with `spark.log`.

    Raises:
        SetupError: if Java, jars or packages are missing.
        SessionError: if Spark does not start.
    """
    versions.check_packages()
    java = find_java()
    delta_jars = jars.not_in_spark(jars.resolve(versions.delta_coordinates()))
    folder = scratch.make()
    every_jar = [*filter(None, config.get("spark.jars", "").split(",")), *map(str, delta_jars)]
    asked = {**config, "spark.jars": ",".join(map(_absolute, every_jar))}
    # Workers must be this very interpreter: another one may lack pyarrow, or be of another version.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet_python_logs()
    end_jvm()
    try:
        settings = local_settings(warehouse, folder, asked, archive.java_options(java))
        return _launch(settings, folder / "spark.log"), folder
    except BaseException as error:
        reason = _last_problem(folder / "spark.log") or str(error).partition("\n")[0]
        end_jvm()
        scratch.remove(folder)
        if not isinstance(error, Exception):
            raise
        raise SessionError(
            f"Spark did not start: {reason}", "Check the settings in config=, and the memory of this machine."
        ) from error


def _launch(settings: Mapping[str, str], log: Path) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    at_launch = [(key, value) for key, value in settings.items() if key.startswith(_AT_LAUNCH)]
    with log.open("ab") as stderr:
        gateway = launch_gateway(SparkConf(loadDefaults=False).setAll(at_launch), {"stderr": stderr})
    # Hadoop, which reads user.dir anew, gets the user's folder back: relative paths in SQL mean that one.
    gateway.jvm.java.lang.System.setProperty("user.dir", os.getcwd())
    gateway.jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    context = SparkContext(conf=conf, gateway=gateway)
    return SparkSession.builder.config(conf=context.getConf()).getOrCreate()


def end_jvm(patience: float = 20) -> None:
    """Ends the JVM that pyspark keeps after `stop()`: the next start may want other jars and memory.

    Args:
        patience: seconds after which it is killed.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway: Any = SparkContext._gateway
    if gateway is None:
        return
    with contextlib.suppress(OSError):  # it may be gone already
        gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()
        try:
            process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            process.kill()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def is_running(session: SparkSession) -> bool:
    """Tells whether a session can still be used."""
    try:
        session.conf.get("spark.sql.session.timeZone")
    except Exception:
        return False
    return True


def quiet_python_logs() -> None:
    """Stops PySpark from printing each SQL error as JSON beside the exception it raises."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _python_path() -> str:
    """The folder of the package for the workers, when it is imported from a source tree."""
    root = str(Path(__file__).resolve().parents[2])
    installed = {*site.getsitepackages(), site.getusersitepackages(), sysconfig.get_path("purelib")}
    return "" if root in {str(Path(path).resolve()) for path in installed} else root


def _absolute(jar: str) -> str:
    return jar if "://" in jar else os.path.abspath(jar)


def _last_problem(log: Path) -> str:
    if not log.exists():
        return ""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    problems = [line for line in lines if "Exception" in line or "rror" in line]
    return (problems or lines or [""])[0][:500]
