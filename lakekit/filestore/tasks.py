"""Spark tasks that each do one job without input rows: merging runs, following moved rows, filling the log."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

T = TypeVar("T")
J = TypeVar("J")


@dataclass(frozen=True)
class NumberedTask:
    """The function handed to `mapInArrow`; its input rows are numbers of jobs, in a column `id`.

    Attributes:
        context: what all jobs need, such as the table's layout.
        work: does one job; a function of a module, as it travels by name.
        jobs: the pickled jobs, in the order of their numbers; a task unpacks only its own.
    """

    context: Any
    work: Callable[[Any, Any], Any]
    jobs: tuple[bytes, ...]

    @classmethod
    def of(cls, context: T, work: Callable[[T, J], Any], jobs: Sequence[J]) -> NumberedTask:
        """Packs the jobs."""
        return cls(context, work, tuple(pickle.dumps(job) for job in jobs))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Does each job it is given."""
        for batch in batches:
            for number in batch.column("id").to_pylist():
                result = self.work(self.context, pickle.loads(self.jobs[number]))
                yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})
