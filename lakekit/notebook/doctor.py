"""``%lake doctor``: checks what lakekit needs on this machine, and says what to do about what is missing."""

from __future__ import annotations

import importlib.util
import os
import shutil
import site
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lakekit.errors import LakeError
from lakekit.notebook.listing import lake_tables

if TYPE_CHECKING:
    from lakekit.lake import Lake

State = Literal["ok", "warning", "missing"]

_EXTENSION = Path("share") / "jupyter" / "labextensions" / "lakekit-lab"
_LITTLE_DISK = 2 << 30
_LITTLE_MEMORY = 4 << 30


@dataclass(frozen=True)
class Check:
    """What was found about one thing.

    Attributes:
        name: the thing.
        state: "ok", "warning" for what works badly or is only sometimes wanted, "missing" for what must be there.
        found: what was found.
        fix: what to do about it; empty if there is nothing to do.
    """

    name: str
    state: State
    found: str
    fix: str = ""


def examine(lake: Lake | None) -> list[Check]:
    """Checks Java, packages, jars, memory, disk, the lake and the logs of its tables; starts and downloads nothing.

    Args:
        lake: the lake that is open, if any.
    """
    checks: dict[str, Callable[[], Iterator[Check]]] = {
        "Java": _java,
        "Packages": _packages,
        "Jars": _jars,
        "Memory": _memory,
        "Notebook": _notebook,
    }
    if lake is not None:
        checks |= {"Lake": lambda: _lake(lake), "Logs": lambda: _logs(lake)}
    found: list[Check] = []
    for name, check in checks.items():
        try:
            found += check()
        except LakeError as error:
            found.append(Check(name, "missing", error.message, error.hint))
    return found


def _java() -> Iterator[Check]:
    from lakekit.session.java import find_java

    java = find_java()
    yield Check("Java", "ok", f"Java {java.version} in {java.home}")


def _packages() -> Iterator[Check]:
    from lakekit.session import versions

    versions.check_packages()
    yield Check("Packages", "ok", ", ".join(f"{name} {versions.installed(name)}" for name in versions.TESTED))


def _jars() -> Iterator[Check]:
    from lakekit.session import archive, jars, versions
    from lakekit.session.java import find_java

    fetch = "They are downloaded on first use; beforehand: python -m lakekit.session"
    for name, wanted in (("Delta's jars", versions.delta_coordinates()), ("Kafka's jars", _kafka())):
        if not wanted:
            continue
        if found := jars.cached(wanted):
            yield Check(name, "ok", f"{len(found)} in {jars.cache_dir()}")
        else:
            yield Check(name, "warning", f"not yet in {jars.cache_dir()}", fetch)
    if not archive.archive_of(find_java()).is_file():
        missing = "none, so sessions start more slowly than they could"
        yield Check("Archive of classes", "warning", missing, "Make it: python -m lakekit.session")


def _kafka() -> list[str]:
    from lakekit.session import versions

    return versions.kafka_coordinates() if importlib.util.find_spec("aiokafka") else []


def _memory() -> Iterator[Check]:
    from lakekit.session.spark import cores, driver_memory, memory
    from lakekit.units import format_bytes

    total = memory()
    heap = f"{driver_memory(total) / 1024:.1f} GiB for Spark's heap"
    found = f"{format_bytes(total)}, {cores()} cores: {heap} unless connect(config=…) says otherwise"
    if total < _LITTLE_MEMORY:
        yield Check(
            "Memory", "warning", found, "Spark wants 4 GiB and more; read less, or use connect(remote=…)."
        )
    else:
        yield Check("Memory", "ok", found)


def _notebook() -> Iterator[Check]:
    wanted = {"plotly": "figures", "ipywidgets": "widgets", "aiokafka": "logs"}
    for name, purpose in wanted.items():
        if importlib.util.find_spec(name) is None:
            extra = "log" if name == "aiokafka" else "notebook"
            fix = f'pip install "lakekit[{extra}]"'
            yield Check(f"Package {name}", "warning", f"not installed, so there are no {purpose}", fix)
    if importlib.util.find_spec("jupyterlab") is not None:
        if any(
            (Path(prefix) / _EXTENSION / "package.json").exists()
            for prefix in (sys.prefix, site.getuserbase())
        ):
            yield Check("JupyterLab extension", "ok", "lakekit-lab is installed")
        else:
            fix = 'pip install "lakekit[lab]", then reload the page'
            yield Check("JupyterLab extension", "warning", "lakekit-lab is not installed", fix)


def _lake(lake: Lake) -> Iterator[Check]:
    version = lake.spark.version
    if not lake.runner.is_local:
        yield Check("Lake", "ok", f"{lake.warehouse} over a remote Spark {version}")
        return
    yield Check("Lake", "ok", f"{lake.warehouse} over a local Spark {version}")
    warehouse = str(lake.warehouse)
    if "://" in warehouse:
        return
    if not os.access(warehouse, os.W_OK):
        yield Check("Warehouse", "missing", f"{warehouse} cannot be written", "Change its permissions.")
        return
    from lakekit.units import format_bytes

    free = shutil.disk_usage(warehouse).free
    fix = "Run vacuum() on tables with many old versions, or make room." if free < _LITTLE_DISK else ""
    yield Check("Warehouse", "warning" if fix else "ok", f"{format_bytes(free)} free on its disk", fix)


def _logs(lake: Lake) -> Iterator[Check]:
    """Tries to reach the topic of each table that has a log; the embedded Kafka is not started for it."""
    if importlib.util.find_spec("aiokafka") is None:
        return
    from lakekit.logstore import loop
    from lakekit.logstore.broker import EmbeddedBroker
    from lakekit.logstore.clients import EMBEDDED
    from lakekit.logstore.topic import end_offsets

    for table in lake_tables(lake):
        options = table.options
        if not options.log_store_enabled:
            continue
        what, address = f"Log of {table.name}", str(options.log_store_address)
        if address == EMBEDDED and EmbeddedBroker(str(lake.warehouse)).running() is None:
            yield Check(what, "ok", "the embedded Kafka does not run now; it starts on first use")
            continue
        try:
            connection = lake.log_clients.connection(address)
            loop.run(end_offsets(connection, str(options.log_store_topic)))
        except LakeError as error:
            yield Check(what, "missing", error.message, error.hint)
        else:
            yield Check(what, "ok", f"topic {options.log_store_topic} at {address} answers")
