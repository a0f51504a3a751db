"""`lakekit.connect()`: a Lake over a local Spark or a Spark Connect server."""

from __future__ import annotations

import atexit
import os
import re
import socket
import sys
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakekit.errors import InvalidOptionError, SessionError
from lakekit.lake import Lake
from lakekit.logstore.connection import log_settings
from lakekit.session import scratch, versions
from lakekit.session import spark as local
from lakekit.session.runner import ClusterRunner, LocalRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_WAREHOUSE = "./warehouse"
_NO_TABLE = "/lakekit/no-such-table"
_REACH_S = 15
_LOCK = threading.RLock()
_open: list[Lake] = []  # one at most


def connect(
    warehouse: str | os.PathLike[str] | None = None,
    remote: str | None = None,
    config: Mapping[str, object] | None = None,
) -> Lake:
    """Opens a lake; called again with the same warehouse, it returns the same Lake.

    Without `remote`, Spark runs on this machine and is sized to it: all cores, 40 % of the memory for its
    heap. Its time zone is UTC unless `config` says otherwise. An active Spark session is used as it is, if it
    has Delta and the same warehouse. Credentials of object stores are never passed here: lakekit's own reads
    and writes take them from the environment, like other tools of each cloud.

    Args:
        warehouse: folder or URI (``s3a://…``) of the tables. Left out, it is that of the open Lake, or
            of the active session, or ``./warehouse``; a remote session then uses the catalog of its server.
        remote: URL of a Spark Connect server, ``sc://host:15002``; left out, `SPARK_REMOTE` if that is set.
        config: Spark settings, which override those of lakekit, and settings ``lake.log.…`` for the Kafka of
            tables with a log.

    Returns:
        The open Lake.

    Raises:
        SetupError: if Java, jars or packages are missing or do not fit.
        SessionError: if a session cannot be made, or the active one does not fit.
        InvalidOptionError: if an argument cannot be used.
    """
    remote = remote or os.environ.get("SPARK_REMOTE")
    settings = local.check_config(config)
    place = normalise(warehouse, remote)
    with _LOCK:
        lake = current()
        for_log = log_settings(config or {}, lake.log_settings if lake is not None else None)
        if lake is not None:
            _check_same(lake, place, remote)
            apply(lake.spark, settings)
            lake.log_settings.update(for_log)
            return lake
        versions.check_packages()
        if remote or _active_remote() is not None:
            _check_no_classic(remote)
            lake = open_remote(remote, place, settings)
        else:
            lake = open_local(place, settings)
        lake.log_settings.update(for_log)
        _open[:] = [lake]
        return lake


def current() -> Lake | None:
    """Returns the Lake that is open in this process, if any."""
    with _LOCK:
        _open[:] = [lake for lake in _open if not lake.stopped and local.is_running(lake.spark)]
        return _open[0] if _open else None


def open_lake() -> Lake:
    """Returns the Lake that is open in this process; without one, opens that of the warehouse ``./warehouse``."""
    return current() or connect()


def normalise(warehouse: str | os.PathLike[str] | None, remote: str | None) -> str | None:
    """Returns the warehouse as an absolute path or a URI, without a slash at its end.

    Raises:
        InvalidOptionError: for an empty text, or a relative path on a remote server.
    """
    if warehouse is None:
        return None
    text = os.fspath(warehouse)
    if not text.strip():
        raise InvalidOptionError.bad_value("warehouse", text, "a folder or a URI")
    if text.startswith("file:"):
        text = urllib.request.url2pathname(urllib.parse.urlsplit(text).path)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text):
        return text.rstrip("/")
    if not remote:
        return os.path.abspath(os.path.expanduser(text))
    if not text.startswith("/"):
        raise InvalidOptionError.bad_value("warehouse", text, "on a remote server, an absolute path or a URI")
    return text.rstrip("/") or "/"


def open_local(warehouse: str | None, config: Mapping[str, str]) -> Lake:
    """Opens a lake on the active session if there is one, else on a new local one."""
    session = _active_session()
    if session is not None:
        place = _check_active(session, warehouse)
        apply(session, config)
        local.quiet_python_logs()
        return _ready(Lake(session, place, LocalRunner()))
    place = warehouse or os.path.abspath(DEFAULT_WAREHOUSE)
    _make_folder(place)
    session, folder = local.start_local(place, config)
    lake = Lake(session, place, LocalRunner(), log_file=folder / "spark.log")
    lake.before_stop(lambda: _end(session, folder))
    atexit.register(lake.stop)
    return _ready(lake)


def open_remote(url: str | None, warehouse: str | None, config: Mapping[str, str]) -> Lake:
    """Opens a lake on a Spark Connect server, or on the active Connect session if `url` is None or names its server."""
    host = server_name(url) if url else None
    active = _active_remote()
    if active is not None and host in (None, active.client._builder.endpoint):
        return _lake_on(active, active.client._builder.endpoint, warehouse, config, [])
    assert url is not None and host is not None  # noqa: S101, PT018 (for the type checker)
    _reach(host)
    try:
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as error:
        raise SessionError(
            f"Spark Connect cannot be used here: {error}.",
            'Install its packages with: pip install "pyspark[connect]".',
        ) from error
    try:
        session = ConnectSession.builder.remote(url).create()
        session.conf.get("spark.sql.session.timeZone")
    except Exception as error:
        raise _unusable(host, next(filter(None, map(str.strip, str(error).splitlines())), "")) from error
    # As pyspark's own builder does: pyspark.sql.functions then makes columns for Connect.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    return _lake_on(session, host, warehouse, config, [lambda: _end_remote(session)])


def _lake_on(
    session: Any,
    host: str,
    warehouse: str | None,
    config: Mapping[str, str],
    at_end: list[Callable[[], object]],
) -> Lake:
    """Checks a Connect session and opens a lake on it."""
    local.quiet_python_logs()
    try:
        _check_delta(f"The Spark Connect server {host}", session)
        apply(session, config)
        lake = Lake(session, warehouse, ClusterRunner(session), remote=host)
    except BaseException:
        for end in at_end:
            end()
        raise
    for end in at_end:
        lake.before_stop(end)
    return _ready(lake)


def server_name(url: str) -> str:
    """Returns ``host:port`` of a Connect URL; its parameters may hold a token, so nothing else is ever shown.

    Raises:
        InvalidOptionError: if the URL is none of Spark Connect.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "sc" or not parts.hostname:
        raise InvalidOptionError(
            "remote= is not the address of a Spark Connect server.", "Write it as sc://host:15002."
        )
    return f"{parts.hostname}:{parts.port or 15002}"


def _reach(host: str) -> None:
    """Fails at once where nobody listens: gRPC would go on trying for ten minutes."""
    if any(os.environ.get(name) for name in ("grpc_proxy", "https_proxy", "http_proxy")):
        return  # gRPC goes through the proxy, and only that may have a way to the server
    name, _, port = host.rpartition(":")
    try:
        socket.create_connection((name, int(port)), timeout=_REACH_S).close()
    except OSError as error:
        raise _unusable(host, error.strerror or str(error)) from error


def _unusable(host: str, reason: str) -> SessionError:
    return SessionError(
        f"The Spark Connect server {host} cannot be used: {reason[:300]}.",
        "Check the address, and that the server runs.",
    )


def apply(session: SparkSession, config: Mapping[str, str]) -> None:
    """Sets what can be set on a running session.

    Raises:
        SessionError: for settings that have another value and can only be given at the start.
    """
    differing = {key: value for key, value in config.items() if not _has(session, key, value)}
    fixed = [key for key in differing if not session.conf.isModifiable(key)]
    if fixed:
        raise SessionError(
            f"The active Spark session was started with other values for {', '.join(fixed)}.",
            "Stop that session first, or leave these settings out.",
        )
    for key, value in differing.items():
        session.conf.set(key, value)


def _has(session: SparkSession, key: str, value: str) -> bool:
    now = _setting(session, key)
    separator = local.JOINED.get(key)
    return value == now or (
        separator is not None and set(value.split(separator)) <= set(now.split(separator))
    )


def _setting(session: SparkSession, key: str) -> str:
    """The value of a setting, Spark's default included, and an empty text for one that Spark does not know."""
    from pyspark.errors import SparkNoSuchElementException

    try:
        return session.conf.get(key) or ""
    except SparkNoSuchElementException:
        return ""


def _ready(lake: Lake) -> Lake:
    """Lets plain Spark SQL see the tables that the warehouse has."""
    try:
        lake.catalog.register_all()
    except BaseException:
        lake.stop()
        raise
    return lake


def _check_same(lake: Lake, warehouse: str | None, remote: str | None) -> None:
    if (server_name(remote) if remote else None) != lake.remote:
        where = f"the server {lake.remote}" if lake.remote else "a local Spark"
        raise SessionError(f"A Lake on {where} is open in this process.", "Call its stop() first.")
    if warehouse is not None and warehouse != lake.warehouse:
        raise SessionError(
            f"A Lake with the warehouse {lake.warehouse} is open here, and you asked for {warehouse}.",
            "Call its stop() first: one process works on one warehouse.",
        )


def _check_no_classic(remote: str | None) -> None:
    from pyspark import SparkContext

    if remote and SparkContext._active_spark_context is not None:
        raise SessionError(
            "A local Spark session is active in this process, and pyspark has only one kind at a time.",
            "Stop it with spark.stop(), or restart the kernel.",
        )


def _active_session() -> SparkSession | None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None:
        return None
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession or SparkSession(context)
    return session if local.is_running(session) else None


def _active_remote() -> Any:
    """The Connect session of this process, if there is one; importing Connect just to look would be dear."""
    module = sys.modules.get("pyspark.sql.connect.session")
    if module is None:
        return None
    session = module.SparkSession.getActiveSession() or module.SparkSession._get_default_session()
    return session if session is not None and not session.is_stopped else None


def _check_active(session: SparkSession, warehouse: str | None) -> str:
    _check_delta("The active Spark session", session)
    place = normalise(session.conf.get("spark.sql.warehouse.dir"), None)
    assert place is not None  # noqa: S101 (for the type checker: Spark always has this setting)
    if warehouse is not None and place != warehouse:
        raise SessionError(
            f"The active Spark session has the warehouse {place}, and you asked for {warehouse}.",
            "Stop it with spark.stop(), or leave warehouse= out to work in its own.",
        )
    return place


def _check_delta(who: str, session: SparkSession) -> None:
    missing = []
    if local.DELTA_EXTENSION not in _setting(session, "spark.sql.extensions"):
        missing.append(f"spark.sql.extensions={local.DELTA_EXTENSION}")
    if _setting(session, "spark.sql.catalog.spark_catalog") != local.DELTA_CATALOG:
        missing.append(f"spark.sql.catalog.spark_catalog={local.DELTA_CATALOG}")
    if not missing and not _loads_delta(session):
        # Spark only logs it when the classes that are configured are not there.
        missing.append("the jar")
    if missing:
        raise SessionError(
            f"{who} was started without Delta: it lacks {' and '.join(missing)}.",
            f"Start it with these settings and spark.jars.packages={versions.delta_coordinates()[0]}, "
            "or stop it and let lakekit start its own.",
        )


def _loads_delta(session: SparkSession) -> bool:
    try:
        session.read.format("delta").load(_NO_TABLE).schema  # noqa: B018 (on Connect, the schema is what asks)
    except Exception as error:
        return "DATA_SOURCE_NOT_FOUND" not in str(error)
    return True


def _make_folder(warehouse: str) -> None:
    if "://" in warehouse:
        return
    try:
        Path(warehouse).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SessionError(
            f"The warehouse folder {warehouse} cannot be made: {error.strerror}.", "Choose another folder."
        ) from error


def _end(session: SparkSession, folder: Path) -> None:
    try:
        session.stop()
    finally:
        local.end_jvm()
        scratch.remove(folder)


def _end_remote(session: Any) -> None:
    session.stop()
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
