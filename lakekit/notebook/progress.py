"""How far Spark is with a statement: a bar that gives way to the result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython
from IPython.display import display

if TYPE_CHECKING:
    from IPython.display import DisplayHandle
    from pyspark.sql import SparkSession

PATIENCE_S = 0.7
"""A statement that takes no longer shows no bar."""


@dataclass(frozen=True)
class Tasks:
    """Spark's tasks of a statement, as far as Spark knows them.

    Attributes:
        done: how many have ended.
        known: how many there are; jobs that follow are not known yet.
    """

    done: int
    known: int


class ClassicTasks:
    """Counts the tasks of one job group of a local session."""

    def __init__(self, spark: SparkSession, group: str) -> None:
        """Counts nothing yet."""
        self._tracker = spark.sparkContext.statusTracker()
        self._group = group

    def count(self) -> Tasks:
        """Asks Spark; stages that it has forgotten already count for nothing."""
        jobs = [self._tracker.getJobInfo(job) for job in self._tracker.getJobIdsForGroup(self._group)]
        numbers = sorted({stage for job in jobs if job is not None for stage in job.stageIds})
        stages = [stage for stage in map(self._tracker.getStageInfo, numbers) if stage is not None]
        return Tasks(sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages))

    def close(self) -> None:
        """Nothing to end."""


class RemoteTasks:
    """Keeps what a Spark Connect server tells about the operations of its session."""

    def __init__(self, spark: SparkSession) -> None:
        """Listens from now on."""
        self._spark = spark
        self._tasks = Tasks(0, 0)
        spark.registerProgressHandler(self._hear)

    def _hear(self, stages: Sequence[Any] | None, **_: Any) -> None:
        told = stages or ()
        self._tasks = Tasks(sum(s.num_completed_tasks for s in told), sum(s.num_tasks for s in told))

    def count(self) -> Tasks:
        """What was heard last."""
        return self._tasks

    def close(self) -> None:
        """Listens no more."""
        self._spark.removeProgressHandler(self._hear)


@dataclass
class Progress:
    """A place in the cell's output that first shows a bar, if it takes long, and then the result.

    The result takes the bar's place, so that a saved notebook holds no trace of it. In a terminal, where nothing can be
    replaced, there is no bar.
    """

    _started: float = field(default_factory=time.monotonic)
    _handle: DisplayHandle | None = None

    def show(self, tasks: Tasks) -> None:
        """Draws the bar anew, once the statement has taken a while."""
        seconds = time.monotonic() - self._started
        if seconds < PATIENCE_S or not hasattr(get_ipython(), "kernel"):
            return
        bar = Bar(tasks, seconds)
        if self._handle is None:
            self._handle = display(bar, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(bar)  # type: ignore[no-untyped-call]

    def end(self, result: object) -> None:
        """Shows the result, in the bar's place if there is one."""
        if self._handle is None:
            display(result)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(result)  # type: ignore[no-untyped-call]
            self._handle = None

    def fail(self) -> None:
        """Takes the bar away."""
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Bar:
    """One picture of the bar."""

    tasks: Tasks
    seconds: float

    def __repr__(self) -> str:
        if not self.tasks.known:
            return f"Spark plans the statement · {self.seconds:.0f} s"
        return f"Spark: {self.tasks.done:,} of {self.tasks.known:,} tasks · {self.seconds:.0f} s"

    def _repr_html_(self) -> str:
        amount = f' value="{self.tasks.done}" max="{self.tasks.known}"' if self.tasks.known else ""
        return (
            f'<div class="lakekit-progress" style="font-size:85%;opacity:.85"><progress{amount}'
            f' aria-label="Progress of the statement" style="width:18em;vertical-align:middle"></progress>'
            f" {self!r}</div>"
        )
