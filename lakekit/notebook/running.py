"""Runs Spark work so that the stop button ends it at once and the session stays usable."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

_POLL_SECONDS = 0.1
_PATIENCE_SECONDS = 15


class QueryInterrupted(KeyboardInterrupt):
    """The user interrupted a statement; a KeyboardInterrupt, so that 'run all cells' stops too."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def run_cancellable(spark: SparkSession, work: Callable[[], T]) -> T:
    """Runs `work` and returns its result; a KeyboardInterrupt cancels its Spark jobs.

    The work runs in a thread of its own, because an interrupt in the middle of a reply from the JVM breaks
    that thread's connection, and with it the tags by which jobs are found.

    Raises:
        QueryInterrupted: after the jobs were cancelled.
    """
    task = _Task(spark, work)
    task.start()
    try:
        # A wait without a timeout could not be interrupted on every platform.
        while not task.done.wait(_POLL_SECONDS):
            pass
    except KeyboardInterrupt:
        task.cancel()
        raise QueryInterrupted(task.epitaph()) from None
    return task.result()


class _Task(Generic[T]):
    def __init__(self, spark: SparkSession, work: Callable[[], T]) -> None:
        from pyspark.util import inheritable_thread_target

        self._spark = spark
        self._work = work
        self._tag = f"lakekit-{uuid.uuid4().hex}"
        self._value: T | None = None
        self._error: BaseException | None = None
        self._classic = not type(spark).__module__.startswith("pyspark.sql.connect")
        self.done = threading.Event()
        # Job groups and tags of the cell go with it; PySpark returns the session where threads share them anyway.
        inherit = inheritable_thread_target(spark)
        target = inherit(self._run) if callable(inherit) else self._run
        self._thread = threading.Thread(target=target, name=self._tag, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            if self._classic:
                self._spark.sparkContext.addJobTag(self._tag)
            else:
                self._spark.addTag(self._tag)
            self._value = self._work()
        except BaseException as error:
            self._error = error
        finally:
            self.done.set()

    def cancel(self) -> None:
        """Cancels until the work has ended: it may be between two jobs."""
        rounds = int(_PATIENCE_SECONDS / _POLL_SECONDS)
        while rounds and not self.done.is_set():
            if self._classic:
                # SparkSession.interruptTag knows only the tags of the calling thread.
                self._spark.sparkContext.cancelJobsWithTag(self._tag)
            else:
                self._spark.interruptTag(self._tag)
            rounds -= 1
            self.done.wait(_POLL_SECONDS)

    def epitaph(self) -> str:
        """Says how far the work came."""
        if not self.done.is_set():
            return "Interrupted. Spark was told to stop and has not answered yet."
        if self._error is None:
            return "Interrupted, but the statement had already finished."
        return "Interrupted: the statement was cancelled."

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]
