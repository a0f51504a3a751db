"""Runs Spark work so that the stop button or a time limit ends it at once and the session stays usable."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from lakekit.errors import QueryError
from lakekit.notebook.progress import ClassicTasks, RemoteTasks, Tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

_POLL_SECONDS = 0.1
_TELL_SECONDS = 0.5
_PATIENCE_SECONDS = 15
_GROUP = "spark.jobGroup.id"


class QueryInterrupted(KeyboardInterrupt):
    """The user interrupted a statement; a KeyboardInterrupt, so that 'run all cells' stops too."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def run_cancellable(
    spark: SparkSession,
    work: Callable[[], T],
    *,
    timeout: float | None = None,
    tell: Callable[[Tasks], None] | None = None,
) -> T:
    """Runs `work` and returns its result; a KeyboardInterrupt cancels its Spark jobs.

    The work runs in a thread of its own, because an interrupt in the middle of a reply from the JVM breaks
    that thread's connection, and with it the tags by which jobs are found.

    Args:
        spark: the session that does the work.
        work: what to run.
        timeout: seconds after which the jobs are cancelled.
        tell: is called about twice a second with the tasks of the work.

    Raises:
        QueryInterrupted: after the jobs were cancelled.
        QueryError: if the time was up.
    """
    task = Task(spark, work)
    task.start()
    deadline = None if timeout is None else time.monotonic() + timeout
    try:
        if not _wait(task, deadline, tell):
            task.cancel()
            raise QueryError(
                f"The statement was cancelled: it had not ended after {timeout:g} s.",
                "Give it more time with --timeout, or read less; --explain shows what it reads.",
            )
    except KeyboardInterrupt:
        task.cancel()
        raise QueryInterrupted(task.epitaph()) from None
    finally:
        task.close()
    return task.result()


def _wait(task: Task[T], deadline: float | None, tell: Callable[[Tasks], None] | None) -> bool:
    """Waits for the end of a task; False if the deadline passes before."""
    told = time.monotonic()
    # A wait without a timeout could not be interrupted on every platform.
    while not task.done.wait(_POLL_SECONDS):
        now = time.monotonic()
        if deadline is not None and now > deadline:
            return False
        if tell is not None and now - told > _TELL_SECONDS:
            told = now
            tell(task.tasks())
    return True


class Task(Generic[T]):
    """Spark work in a thread of its own, which can be cancelled."""

    def __init__(self, spark: SparkSession, work: Callable[[], T]) -> None:
        from pyspark.util import inheritable_thread_target

        self._spark = spark
        self._work = work
        self._tag = f"lakekit-{uuid.uuid4().hex}"
        self._value: T | None = None
        self._error: BaseException | None = None
        self._classic = not type(spark).__module__.startswith("pyspark.sql.connect")
        self._counter: ClassicTasks | RemoteTasks | None = None
        self.done = threading.Event()
        # Job groups and tags of the cell go with it; PySpark returns the session where threads share them anyway.
        inherit = inheritable_thread_target(spark)
        target = inherit(self._run) if callable(inherit) else self._run
        self._thread = threading.Thread(target=target, name=self._tag, daemon=True)

    def start(self) -> None:
        """Begins; `done` is set at the end."""
        if not self._classic:
            self._counter = RemoteTasks(self._spark)
        self._thread.start()

    def _run(self) -> None:
        try:
            if self._classic:
                self._spark.sparkContext.addJobTag(self._tag)
                self._counter = ClassicTasks(self._spark, self._group())
            else:
                self._spark.addTag(self._tag)
            self._value = self._work()
        except BaseException as error:
            self._error = error
        finally:
            self.done.set()

    def _group(self) -> str:
        """Returns the job group of this thread: that of the cell, or one of its own."""
        context = self._spark.sparkContext
        group = context.getLocalProperty(_GROUP)
        if group is None:
            context.setLocalProperty(_GROUP, self._tag)
        return group or self._tag

    def tasks(self) -> Tasks:
        """Returns how many of Spark's tasks are done."""
        return Tasks(0, 0) if self._counter is None else self._counter.count()

    def close(self) -> None:
        """Stops to count."""
        if self._counter is not None:
            self._counter.close()

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
        """Returns what the work returned, or raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]
