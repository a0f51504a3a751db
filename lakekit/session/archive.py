"""An archive of Spark's classes, ready to run: with it a JVM starts in half the time.

That is the JVM's own class data sharing (JEP 350, "Dynamic CDS Archives"). `python -m lakekit.session` makes the
archive once, by running a small session; every later JVM on the same Java and the same jars maps it. The JVM itself
checks that they are the same, and does without where they are not.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lakekit.errors import SetupError
from lakekit.session.jars import cache_dir, spark_home
from lakekit.session.java import Java

OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable from which Spark's launcher takes options of the JVM."""
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_UNUSED_S = 30 * 24 * 3600
_TIMEOUT_S = 600


def archive_of(java: Java) -> Path:
    """Returns where the archive for a Java and the installed Spark is, or would be."""
    jars = [(jar, jar.stat()) for jar in sorted((spark_home() / "jars").glob("*.jar"))]
    # What the JVM itself compares; images of containers keep no more than whole seconds.
    facts = [str(java.home), *(f"{jar} {found.st_size} {int(found.st_mtime)}" for jar, found in jars)]
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return cache_dir() / "classes" / f"{key}.jsa"


def java_options(java: Java) -> str:
    """Returns the options with which a JVM uses the archive; empty if it has not been made."""
    archive = archive_of(java)
    if not archive.is_file():
        return ""
    with contextlib.suppress(OSError):
        os.utime(archive)  # archives that nobody uses are removed one day
    return f'"-XX:SharedArchiveFile={archive.as_posix()}" {_QUIET}'


def make(java: Java) -> Path:
    """Makes the archive, if it is not there; takes about a minute, and 180 MB in the cache.

    Raises:
        SetupError: if this Java makes none, or the cache cannot be written.
    """
    archive = archive_of(java)
    if archive.is_file():
        return archive
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        _drop_unused(archive.parent)
        with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
            made = Path(folder) / archive.name
            _run_session(made, Path(folder) / "warehouse")
            made.replace(archive)
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupError(
            f"{java.executable} made no archive of Spark's classes: {_reason(error)}.",
            "Everything works without it; sessions start more slowly.",
        ) from error
    return archive


def _drop_unused(folder: Path) -> None:
    for old in folder.glob("*.jsa"):
        with contextlib.suppress(OSError):
            if old.stat().st_mtime < time.time() - _UNUSED_S:
                old.unlink()


def _run_session(archive: Path, warehouse: Path) -> None:
    """Runs a session whose JVM writes the classes that it has loaded when it ends."""
    options = f'{os.environ.get(OPTIONS, "")} "-XX:ArchiveClassesAtExit={archive.as_posix()}" {_QUIET}'
    subprocess.run(
        [sys.executable, "-m", __name__, str(warehouse)],
        env={**os.environ, OPTIONS: options},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=_TIMEOUT_S,
        check=True,
    )


def _reason(error: Exception) -> str:
    lines = str(getattr(error, "stderr", "") or error).strip().splitlines()
    return lines[-1] if lines else str(error)


def _use_everything(warehouse: str) -> None:
    """Does what sessions usually do, so that the archive has its classes."""
    import lakekit
    from lakekit.session import spark

    lake = lakekit.connect(warehouse)
    table = lake.create_table("warm", "id BIGINT, name STRING", primary_key=["id"])
    table.upsert([{"id": 1, "name": "one"}])
    table.upsert(lake.spark.range(50_000).selectExpr("id", "concat('row ', id) AS name"))
    lake.sql("DELETE FROM warm WHERE id = 7")
    lake.sql("UPDATE warm SET name = 'x' WHERE id = 8")
    lake.sql("SELECT name, count(*) FROM warm GROUP BY name ORDER BY 2 LIMIT 3").collect()
    lake.sql("SELECT * FROM warm a JOIN warm b USING (id) WHERE a.id < 5").toArrow()
    table.compact()
    spark.end_jvm(patience=_TIMEOUT_S)  # it writes the archive while it ends


if __name__ == "__main__":
    _use_everything(sys.argv[1])
