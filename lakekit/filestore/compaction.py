"""Which sorted runs of a bucket to merge: universal compaction. Plain data in, a choice out.

The rules and defaults are Paimon's (5 runs, 200 % size amplification, 1 % size ratio), which are RocksDB's universal
style. One thing is simpler here: superseded rows are marked when written, so any runs can be merged in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from lakekit.filestore.conflicts import BucketId, bucket_id
from lakekit.storage.actions import AddFile

BASE_LEVEL = 1
"""Level of the run that a full compaction of a bucket writes; newer runs are of level 0."""

TURN_BYTES = 256 << 20
"""About how much is merged between two commits beside writes."""


@dataclass(frozen=True)
class Triggers:
    """When a bucket is compacted.

    Attributes:
        num_runs: merge when a bucket has this many sorted runs.
        size_amplification_percent: merge all when the newer runs' size exceeds this share of the base run's.
        size_ratio_percent: a run joins the merge while it is at most this much larger than those before it.
        deleted_ratio: merge when this share (0 to 1) of a bucket's rows is deleted.
    """

    num_runs: int = 5
    size_amplification_percent: int = 200
    size_ratio_percent: int = 1
    deleted_ratio: float = 0.3

    def doubled(self) -> Triggers:
        """Returns triggers that fire at twice the runs, the amplification, and the rows to read for each live one."""
        return replace(
            self,
            num_runs=2 * self.num_runs,
            size_amplification_percent=2 * self.size_amplification_percent,
            deleted_ratio=1 - (1 - self.deleted_ratio) / 2,
        )


@dataclass(frozen=True)
class Unit:
    """Files of one bucket to merge into one sorted run of the given level."""

    bucket: BucketId
    files: tuple[AddFile, ...]
    level: int


@dataclass(frozen=True)
class _Run:
    files: tuple[AddFile, ...]
    created: int

    @property
    def size(self) -> int:
        return sum(_live_size(f) for f in self.files)


def pick(files: Iterable[AddFile], triggers: Triggers) -> list[Unit]:
    """Returns what the triggers ask to merge, at most one unit for each bucket."""
    units = []
    for bucket, bucket_files in _buckets(files).items():
        runs = _runs(bucket_files)
        count = max(_runs_to_merge(runs, triggers), _runs_with_deletes(runs, triggers))
        if count:
            merged = tuple(f for run in runs[:count] for f in run.files)
            units.append(Unit(bucket, merged, BASE_LEVEL if count == len(runs) else 0))
    return units


def pick_all(files: Iterable[AddFile]) -> list[Unit]:
    """Returns a full compaction: every bucket that is not yet one sorted run without deleted rows."""
    units = []
    for bucket, bucket_files in _buckets(files).items():
        runs = _runs(bucket_files)
        clean = all(f.deletion_vector is None and f.sort_columns for f in bucket_files)
        if len(runs) > 1 or not clean or any(f.level != BASE_LEVEL for f in bucket_files):
            units.append(Unit(bucket, tuple(bucket_files), BASE_LEVEL))
    return units


def every_file(files: Iterable[AddFile]) -> list[Unit]:
    """Returns units that rewrite every file, as a change of a column's type needs."""
    return [Unit(bucket, tuple(found), BASE_LEVEL) for bucket, found in _buckets(files).items()]


def in_turn(units: Sequence[Unit], at_least: int) -> Sequence[Unit]:
    """Returns the units to merge and commit first beside writes: `at_least` so many, and more where they are small.

    The shorter a compaction is, the fewer writes overtake it.
    """
    sizes = accumulate(sum(file.size for file in unit.files) for unit in units)
    return units[: max(at_least, sum(size <= TURN_BYTES for size in sizes))]


def _buckets(files: Iterable[AddFile]) -> dict[BucketId, list[AddFile]]:
    buckets: dict[BucketId, list[AddFile]] = {}
    for file in files:
        buckets.setdefault(bucket_id(file), []).append(file)
    return buckets


def _runs(files: Sequence[AddFile]) -> list[_Run]:
    """Returns the bucket's sorted runs, newest first; the base run is last."""
    by_id: dict[str, list[AddFile]] = {}
    for file in files:
        by_id.setdefault(file.run_id or file.path, []).append(file)
    runs = [_Run(tuple(f), max(x.modification_time for x in f)) for f in by_id.values()]
    return sorted(runs, key=lambda run: (run.files[0].level == BASE_LEVEL, -run.created))


def _live_size(file: AddFile) -> int:
    if not file.num_records or file.live_records is None:
        return file.size
    return file.size * file.live_records // file.num_records


def _runs_to_merge(runs: Sequence[_Run], triggers: Triggers) -> int:
    """Returns how many of the newest runs to merge; 0 for none."""
    if len(runs) < 2:
        return 0
    sizes = [run.size for run in runs]
    if len(runs) >= triggers.num_runs:
        if sum(sizes[:-1]) * 100 >= triggers.size_amplification_percent * sizes[-1]:
            return len(runs)
        joined, count = sizes[0], 1
        while count < len(runs) and joined * (100 + triggers.size_ratio_percent) >= sizes[count] * 100:
            joined += sizes[count]
            count += 1
        return max(count, len(runs) - triggers.num_runs + 2)
    return 0


def _runs_with_deletes(runs: Sequence[_Run], triggers: Triggers) -> int:
    """Returns the number of runs up to the oldest with too many deleted rows, if the bucket has too many."""
    if not _has_too_many_deleted([f for run in runs for f in run.files], triggers):
        return 0
    return max(i for i, run in enumerate(runs, 1) if _has_too_many_deleted(run.files, triggers))


def _has_too_many_deleted(files: Sequence[AddFile], triggers: Triggers) -> bool:
    rows = sum(f.num_records or 0 for f in files)
    dead = rows - sum(f.live_records or 0 for f in files)
    return dead > triggers.deleted_ratio * rows
