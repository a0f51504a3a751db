"""Spark tasks that each work on one bucket without input rows: merging runs, following moved rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakekit.filestore.layout import BucketLayout
from lakekit.filestore.result import BucketResult


@dataclass(frozen=True)
class NumberedTask:
    """The function handed to `mapInArrow`; its input rows are numbers of jobs, in a column `id`.

    Attributes:
        layout: the table.
        work: does one job; a function of a module, as it travels by name.
        jobs: the pickled jobs, in the order of their numbers; a task unpacks only its own.
    """

    layout: BucketLayout
    work: Callable[[BucketLayout, Any], BucketResult]
    jobs: tuple[bytes, ...]

    @classmethod
    def of(
        cls, layout: BucketLayout, work: Callable[[BucketLayout, Any], BucketResult], jobs: Sequence[Any]
    ) -> NumberedTask:
        """Packs the jobs."""
        return cls(layout, work, tuple(pickle.dumps(job) for job in jobs))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Does each job it is given."""
        for batch in batches:
            for number in batch.column("id").to_pylist():
                result = self.work(self.layout, pickle.loads(self.jobs[number]))
                yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})
