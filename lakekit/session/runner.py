"""Where code that reads and writes files of the lake runs: in this process, or on the cluster."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from lakekit.errors import LakeError, SessionError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

P = ParamSpec("P")
T = TypeVar("T")

_CHUNK = 8 << 20  # bytes of a pickled result in one row; Connect's messages are limited
_NEEDED = ("lakekit", "pyarrow", "numpy", "pyroaring", "obstore")


class Runner(Protocol):
    """Runs a function where the files are reachable."""

    is_local: bool

    def run(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns ``func(*args, **kwargs)``, and raises what it raises."""


class LocalRunner:
    """Runs functions in this process."""

    is_local = True

    def run(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns ``func(*args, **kwargs)``."""
        return func(*args, **kwargs)


class ClusterRunner:
    """Runs functions in a Spark task of one row, so that this process needs no access to the storage.

    Arguments and result travel by cloudpickle; lakekit itself is shipped with the session's artifacts.
    """

    is_local = False

    def __init__(self, spark: SparkSession) -> None:
        """Ships lakekit to the cluster and checks that its Python has what storage code needs.

        Raises:
            SessionError: naming the packages that are missing there, or a Python of another version.
        """
        self._spark = spark
        ship_package(spark)
        missing = self._missing_there()
        if missing:
            raise SessionError(
                f"The Python of the Spark server lacks {', '.join(missing)}.",
                f"Install there: pip install {' '.join(missing)}.",
            )

    def run(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns ``func(*args, **kwargs)`` as run on the cluster; errors come back as themselves.

        Raises:
            SessionError: if the task itself fails, for example because a worker died.
        """
        from pyspark import cloudpickle

        payload = cloudpickle.dumps((func, args, kwargs))

        def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from lakekit.session.runner import answer

            return answer(batches, payload)

        ok, result = pickle.loads(self._collect(task))
        if not ok:
            raise result
        return result

    def _missing_there(self) -> list[str]:
        """Packages that the workers cannot import; the task may not refer to lakekit, which may be one."""
        names = _NEEDED

        def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import importlib.util
            import pickle

            import pyarrow as pa

            for _ in batches:
                pass
            missing = [name for name in names if importlib.util.find_spec(name) is None]
            yield pa.RecordBatch.from_pydict({"part": [0], "data": [pickle.dumps(missing)]})

        return pickle.loads(self._collect(_by_value(task)))

    def _collect(self, task: Callable[..., Any]) -> bytes:
        try:
            rows = self._spark.range(0, 1, 1, 1).mapInArrow(task, "part bigint, data binary").collect()
        except LakeError:
            raise
        except Exception as error:
            raise _task_failed(error) from error
        return b"".join(bytes(row.data) for row in sorted(rows, key=lambda row: int(row.part)))


def answer(batches: Iterable[pa.RecordBatch], payload: bytes) -> Iterator[pa.RecordBatch]:
    """Runs a pickled call inside a Spark task; yields the pickled result in pieces."""
    import pyarrow as pa
    from pyspark import cloudpickle

    for _ in batches:
        pass
    try:
        func, args, kwargs = cloudpickle.loads(payload)
        result = cloudpickle.dumps((True, func(*args, **kwargs)))
    except Exception as error:
        result = cloudpickle.dumps((False, _portable(error)))
    for part, start in enumerate(range(0, len(result), _CHUNK)):
        piece = result[start : start + _CHUNK]
        yield pa.RecordBatch.from_pydict({"part": [part], "data": [piece]})


def ship_package(spark: SparkSession) -> None:
    """Adds the running lakekit to the session's artifacts, so that the workers run exactly this code."""
    package = Path(__file__).resolve().parents[1]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as out:
        for path in sorted(package.rglob("*.py")):
            # Without times: the same code gives the same archive.
            entry = zipfile.ZipInfo(path.relative_to(package.parent).as_posix())
            out.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    # A session takes each artifact's name once, and takes it again only with the same content.
    digest = hashlib.sha256(content.getvalue()).hexdigest()[:12]
    with tempfile.TemporaryDirectory(prefix="lakekit-") as folder:
        archive = os.path.join(folder, f"lakekit-{digest}.zip")
        Path(archive).write_bytes(content.getvalue())
        spark.addArtifacts(archive, pyfile=True)


def _by_value(func: Callable[..., Any]) -> Callable[..., Any]:
    """Makes cloudpickle send the function's code instead of the name of its module."""
    func.__module__ = "__main__"
    return func


def _portable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return LakeError(f"{type(error).__name__}: {error}")
    return error


def _task_failed(error: Exception) -> SessionError:
    text = str(error)
    if "PYTHON_VERSION_MISMATCH" in text:
        here = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return SessionError(
            f"The Spark server runs another Python than this one ({here}).",
            f"Use Python {here} on both sides.",
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if "Error" in line and not line.startswith("at ")]
    return SessionError(
        f"A task on the Spark server failed: {(causes or lines or [type(error).__name__])[-1][:500]}",
        "The server's log has the details.",
    )
