"""`lakekit.connect()`: a Lake over a local Spark or a Spark Connect server."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import threading
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lakekit.errors import InvalidOptionError, SessionError
from lakekit.session import spark as local
from lakekit.session import versions
from lakekit.session.runner import ClusterRunner, LocalRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakekit.lake import Lake

DEFAULT_WAREHOUSE = "./warehouse"
_LOCK = threading.RLock()
_current: Lake | None = None


def connect(
    warehouse: str | os.PathLike[str] | None = None,
    remote: str | None = None,
    config: Mapping[str, object] | None = None,
) -> Lake:
    """Opens a lake; called again with the same warehouse, it returns the same Lake.

    Without `remote`, Spark runs on this machine and is sized to it: all cores, 40 % of the memory for its heap.
    The session's time zone is UTC unless `config` says otherwise. An active Spark session is used if it has Delta
    and the same warehouse.

    Args:
        warehouse: folder or URI (``s3a://…``) of the tables. A local session defaults to the Lake that is open, then
            to ``./warehouse``; a remote session without it uses the catalog of the server.
        remote: URL of a Spark Connect server, ``sc://host:15002``; `SPARK_REMOTE` is its default.
        config: Spark settings, which override those of lakekit.

    Returns:
        The open Lake.

    Raises:
        SetupError: if Java, jars or packages are missing or do not fit.
        SessionError: if a session cannot be made, or the active one does not fit.
        InvalidOptionError: if an argument cannot be used.
    """
    global _current
    remote = remote or os.environ.get("SPARK_REMOTE")
    settings = local.check_config(config)
    place = normalise(warehouse, remote)
    with _LOCK:
        if _current is not None and local.is_running(_current.spark):
            _reuse(_current, place, remote, settings)
            return _current
        _current = open_remote(remote, place, settings) if remote else open_local(place, settings)
        return _current


def current() -> Lake | None:
    """Returns the Lake that is open in this process, if any."""
    return _current


def normalise(warehouse: str | os.PathLike[str] | None, remote: str | None) -> str | None:
    """Returns the warehouse as an absolute path or a URI without a slash at its end.

    Raises:
        InvalidOptionError: for an empty text, or a relative path on a remote server.
    """
    if warehouse is None:
        return None
    text = os.fspath(warehouse)
    if not text.strip():
        raise InvalidOptionError.bad_value("warehouse", text, "a folder or a URI")
    if re.match(r"file:", text):
        text = urllib.request.url2pathname(urllib.parse.urlsplit(text).path)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text):
        return text.rstrip("/")
    if remote and not text.startswith("/"):
        raise InvalidOptionError.bad_value("warehouse", text, "on a remote server, an absolute path or a URI")
    return text.rstrip("/") or "/" if remote else os.path.abspath(os.path.expanduser(text))


def open_local(warehouse: str | None, config: Mapping[str, str]) -> Lake:
    """Opens a lake on the active session if there is one, else on a new local one."""
    from lakekit.lake import Lake

    versions.check_packages()
    session = _active_session()
    if session is not None:
        place = _check_active(session, warehouse)
        _apply(session, config)
        local.quiet_python_logs()
        return Lake(session, place, LocalRunner())
    place = warehouse or os.path.abspath(DEFAULT_WAREHOUSE)
    _make_folder(place)
    session, folder = local.start_local(place, config)
    lake = Lake(session, place, LocalRunner(), log_file=folder / "spark.log")
    lake._close_hooks.append(lambda: _stop_local(session, folder))
    atexit.register(lake.stop)
    return lake


def open_remote(url: str, warehouse: str | None, config: Mapping[str, str]) -> Lake:
    """Opens a lake on a Spark Connect server."""
    from lakekit.lake import Lake

    versions.check_packages()
    host = server_name(url)
    try:
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as error:
        raise SessionError(
            f"Spark Connect cannot be used here: {error}.", 'Install its packages: pip install "pyspark[connect]".'
        ) from error
    try:
        session = ConnectSession.builder.remote(url).config(map=dict(config)).getOrCreate()
        extensions = session.conf.get("spark.sql.extensions", "") or ""
    except Exception as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise SessionError(
            f"The Spark Connect server {host} cannot be used: {reason[:300]}",
            "Check the address, and that the server runs.",
        ) from error
    # What pyspark's own builder does: functions of pyspark.sql then build Connect columns.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    local.quiet_python_logs()
    _check_delta(f"The Spark Connect server {host}", extensions, session.conf.get("spark.sql.catalog.spark_catalog", ""))
    lake = Lake(session, warehouse, ClusterRunner(session), remote=host)
    lake._close_hooks.append(session.stop)
    return lake


def server_name(url: str) -> str:
    """Returns ``host:port`` of a Connect URL: its parameters may hold a token.

    Raises:
        InvalidOptionError: if the URL is none of Spark Connect.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "sc" or not parts.hostname:
        raise InvalidOptionError(
            "remote= is not the address of a Spark Connect server.", "Write it as sc://host:15002."
        )
    return f"{parts.hostname}:{parts.port or 15002}"


def _reuse(lake: Lake, warehouse: str | None, remote: str | None, config: Mapping[str, str]) -> None:
    if remote != lake.remote and (remote is None or server_name(remote) != lake.remote):
        where = lake.remote or "a local Spark"
        raise SessionError(f"A Lake on {where} is open in this process.", "Call its stop() first.")
    if warehouse is not None and warehouse != lake.warehouse:
        raise SessionError(
            f"A Lake with the warehouse {lake.warehouse} is open in this process, and you asked for {warehouse}.",
            "Call its stop() first: one process works on one warehouse.",
        )
    _apply(lake.spark, config)


def _apply(session: SparkSession, config: Mapping[str, str]) -> None:
    """Sets what can be set on a running session, and refuses what would be ignored."""
    differing = {key: value for key, value in config.items() if session.conf.get(key, None) != value}
    fixed = [key for key in differing if not session.conf.isModifiable(key)]
    if fixed:
        raise SessionError(
            f"The active Spark session was started with other values for {', '.join(fixed)}.",
            "Stop that session first, or leave these settings out.",
        )
    for key, value in differing.items():
        session.conf.set(key, value)


def _active_session() -> SparkSession | None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None or not local.is_running(session):
        return None
    return session


def _check_active(session: SparkSession, warehouse: str | None) -> str:
    conf = session.conf
    _check_delta(
        "The active Spark session",
        conf.get("spark.sql.extensions", "") or "",
        conf.get("spark.sql.catalog.spark_catalog", "") or "",
    )
    place = normalise(conf.get("spark.sql.warehouse.dir"), None) or ""
    if warehouse is not None and place != warehouse:
        raise SessionError(
            f"The active Spark session has the warehouse {place}, and you asked for {warehouse}.",
            "Stop it with spark.stop(), or leave out warehouse= to work on its own.",
        )
    return place


def _check_delta(who: str, extensions: str | None, catalog: str | None) -> None:
    missing = []
    if local.DELTA_EXTENSION not in (extensions or ""):
        missing.append(f"spark.sql.extensions={local.DELTA_EXTENSION}")
    if catalog != local.DELTA_CATALOG:
        missing.append(f"spark.sql.catalog.spark_catalog={local.DELTA_CATALOG}")
    if missing:
        jar = versions.delta_coordinates()[0]
        raise SessionError(
            f"{who} was started without Delta: it lacks {' and '.join(missing)}.",
            f"Start it with these settings and spark.jars.packages={jar}, or stop it and let lakekit start its own.",
        )


def _make_folder(warehouse: str) -> None:
    if "://" in warehouse:
        return
    try:
        Path(warehouse).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SessionError(
            f"The warehouse folder {warehouse} cannot be made: {error.strerror}.", "Choose another folder."
        ) from error


def _stop_local(session: SparkSession, folder: Path) -> None:
    try:
        session.stop()
    finally:
        local.end_jvm()
        shutil.rmtree(folder, ignore_errors=True)
