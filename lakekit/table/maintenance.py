"""Compaction and vacuum of a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from lakekit.errors import ConcurrentWriteError, InvalidOptionError
from lakekit.filestore.commit import Proposal
from lakekit.filestore.compaction import Triggers, Unit, pick_all
from lakekit.filestore.conflicts import BucketId, Footprint, Isolation, Verdict, is_live
from lakekit.filestore.follow import catch_up, new_files, overtaken
from lakekit.filestore.layout import BucketLayout
from lakekit.filestore.merge import merge_in_turn, merge_unit
from lakekit.filestore.result import BucketResult
from lakekit.filestore.tasks import NumberedTask
from lakekit.storage.actions import AddFile
from lakekit.storage.protocol import check_writable
from lakekit.table.commit import Commit, Tally
from lakekit.table.write import MAX_ATTEMPTS, run_numbered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.properties import TableOptions
    from lakekit.storage.snapshot import Snapshot
    from lakekit.table.table import Table

Chooser = Callable[[Iterable[AddFile]], Sequence[Unit]]

SMALL_BYTES = 4 << 20
"""Files of up to this size in all are merged without a Spark job, which would take longer to start than to merge."""

_OVERTAKEN_AT_MOST = 3
"""How often writes may overtake a compaction before they are held back."""

SAFE_RETENTION_HOURS = 168
"""Hours that removed files are kept by default, as in Delta: readers and time travel may still need them."""


def compact(table: Table, choose: Chooser = pick_all, at_once: int | None = None) -> Commit:
    """Merges sorted runs, drops deletion vectors, and commits without changing what readers see.

    A concurrent upsert wins: the rows that it supersedes are marked in the output too. Where it removed a whole file,
    that bucket is merged again. After being overtaken a few times, new writes of this session wait for the commit.

    Args:
        table: a keyed table.
        choose: picks the units to merge from live files; by default all that is not one clean run.
        at_once: how many buckets are merged at the same time; by default as many as there are cores.

    Raises:
        ConcurrentWriteError: if writers touched the same buckets every time.
    """
    with ExitStack() as until_done:
        return _compact(table, choose, at_once, until_done)


def _compact(table: Table, choose: Chooser, at_once: int | None, until_done: ExitStack) -> Commit:
    started = time.monotonic()
    merged: dict[BucketId, BucketResult] = {}
    snapshot = table.snapshot()
    for attempt in range(MAX_ATTEMPTS):
        if attempt == _OVERTAKEN_AT_MOST:
            until_done.enter_context(table.lake.background_compaction.holding_back(str(table.name)))
        before, snapshot = snapshot, table.snapshot()
        check_writable(snapshot.protocol, snapshot.configuration, str(table.name))
        merged = _caught_up(table, before, snapshot, merged, at_once)
        units = [u for u in choose(snapshot.files.values()) if u.bucket not in merged]
        for result in merge_units(table, snapshot, units, at_once):
            merged.update(dict.fromkeys(result.touched, result))
        tally = Tally.of(merged.values())
        duration = int((time.monotonic() - started) * 1000)
        if not merged:
            return tally.commit(snapshot.version, "COMPACT", duration, skipped=True)
        footprint = Footprint(Isolation.FILES, frozenset(merged), frozenset(f.path for f in tally.removed))
        parameters = {"buckets": str(len(merged))}
        outcome = table.commit(
            Proposal(
                snapshot.version,
                [*tally.removed, *tally.added],
                footprint,
                "COMPACT",
                parameters,
                tally.metrics(duration),
            )
        )
        if outcome.verdict is Verdict.GO_ON:
            return tally.commit(outcome.version, "COMPACT", duration)
    raise ConcurrentWriteError(
        f"Compaction of table {table.name} met a newer commit in the same buckets {MAX_ATTEMPTS} times.",
        "The table is unchanged; compact when fewer writers are at work.",
    )


def _caught_up(
    table: Table,
    before: Snapshot,
    snapshot: Snapshot,
    merged: Mapping[BucketId, BucketResult],
    at_once: int | None,
) -> dict[BucketId, BucketResult]:
    """Returns what was merged, with the rows marked that writes have superseded from one snapshot to the other."""
    live = {b: r for b, r in merged.items() if all(is_live(f, snapshot.files) for f in r.removed)}
    new = new_files(before.files, snapshot.files)
    found = [overtaken(r, new, snapshot.files) for b, r in merged.items() if b not in live]
    jobs = [job for job in found if job is not None]
    layout = BucketLayout.of(table.root, snapshot, table.options_of(snapshot).target_file_size)
    task = NumberedTask.of(layout, catch_up, jobs)
    for result in run_numbered(table, task, at_once):
        live.update(dict.fromkeys(result.touched, result))  # none, where rows were not found
    return live


def merge_units(
    table: Table, snapshot: Snapshot, units: Sequence[Unit], at_once: int | None = None
) -> list[BucketResult]:
    """Merges units into files with the columns of `snapshot`: as one Spark job, unless they are small."""
    if not units:
        return []
    layout = BucketLayout.of(table.root, snapshot, table.options_of(snapshot).target_file_size)
    if sum(file.size for unit in units for file in unit.files) <= SMALL_BYTES:
        return table.lake.runner.run(merge_in_turn, layout, units)
    # Large buckets first, so that no core waits for one at the end; tasks of several units get some of each size.
    ordered = sorted(units, key=lambda u: -sum(f.size for f in u.files))
    tasks = min(len(ordered), at_once or len(ordered))
    dealt = [unit for first in range(tasks) for unit in ordered[first::tasks]]
    return run_numbered(table, NumberedTask.of(layout, merge_unit, dealt), tasks)


def triggers_of(options: TableOptions) -> Triggers:
    """Returns a table's compaction triggers."""
    return Triggers(
        num_runs=options.compaction_num_runs,
        size_amplification_percent=options.compaction_size_amplification_percent,
        size_ratio_percent=options.compaction_size_ratio,
        deleted_ratio=options.compaction_deleted_ratio,
    )


def vacuum(table: Table, retain_hours: float, dry_run: bool, force: bool) -> DataFrame:
    """Deletes files that no version within the retention needs, with Delta's own VACUUM.

    Raises:
        InvalidOptionError: for a retention under `SAFE_RETENTION_HOURS` without `force`.
    """
    if not retain_hours >= 0:
        raise InvalidOptionError.bad_value("retain_hours", retain_hours, "a number of hours, 0 or more")
    if retain_hours < SAFE_RETENTION_HOURS and not (force or dry_run):
        raise InvalidOptionError(
            f"Vacuum of table {table.name} with {retain_hours} hours could delete files that readers or writers "
            f"need (the safe minimum is {SAFE_RETENTION_HOURS}).",
            "Try it with dry_run=True first; pass force=True if nobody else uses the table.",
        )
    spark = table.lake.spark
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    before = spark.conf.get(check, None)
    statement = f"VACUUM {table.relation()} RETAIN {float(retain_hours)} HOURS"
    try:
        spark.conf.set(check, "false")
        rows = spark.sql(f"{statement} DRY RUN" if dry_run else statement).collect()
    finally:
        spark.conf.unset(check) if before is None else spark.conf.set(check, before)
    return spark.createDataFrame([(row[0],) for row in rows], "path string")
