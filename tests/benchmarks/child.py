"""The process of one system: does the work of a case and writes down when each step began and ended."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from . import workload
from .systems import system_class
from .systems.base import Clusters, Gets, Settles, System, WritesAlone
from .workload import COLUMNS, Manifest

LOOKUPS_SQL = 10
GETS = 500


@dataclass(frozen=True)
class Job:
    """What the parent asks for, as JSON."""

    system: str
    kind: str
    repeats: int
    manifest: str
    place: str
    events: str
    shared: dict[str, str]


class Events:
    """A JSON line for each step: wall-clock start and end (for the memory samples) and seconds.

    Written at once, so that what was measured before a crash is kept.
    """

    def __init__(self, file: TextIO, root: Path) -> None:
        self._file = file
        self._root = root

    def write(self, step: str, **facts: Any) -> None:
        self._file.write(json.dumps({"step": step, **facts}) + "\n")
        self._file.flush()

    def time(self, step: str, work: Callable[[], Any], **facts: Any) -> None:
        """Runs and times `work`; what it returns is written as the result."""
        start, clock = time.time(), time.perf_counter()
        result = work()
        seconds = time.perf_counter() - clock
        self.write(step, start=start, end=time.time(), seconds=seconds, result=result, **facts)

    def time_write(self, step: str, work: Callable[[], Any], **facts: Any) -> None:
        """Times work that writes, and tells how many bytes the table's folder grew by."""
        before = folder_size(self._root)
        start, clock = time.time(), time.perf_counter()
        work()
        seconds = time.perf_counter() - clock
        written = folder_size(self._root) - before
        self.write(step, start=start, end=time.time(), seconds=seconds, bytes_written=written, **facts)


def folder_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def run(system: System, kind: str, repeats: int, manifest: Manifest, events: Events) -> None:
    """Does the work of a case with a started system."""
    events.write("versions", versions=system.versions())
    events.time("create", system.create)
    events.time_write("load", lambda: _load(system, manifest))
    for batch in () if system.starts_from_final else manifest.batches:
        events.time_write("upsert", partial(_upsert, system, batch.path), rows=batch.rows)
    if isinstance(system, WritesAlone):
        for batch in manifest.batches:
            work = partial(system.write_alone, Path(batch.path))
            events.time("limit", work, rows=batch.rows)
    if isinstance(system, Settles):
        events.time_write("settle", system.settle)
    if kind == "race":
        _reads(system, "before", repeats, manifest, events)
    _check(system, "before", events)
    if kind == "memory" or system.starts_from_final:
        return
    events.time_write("compact", system.compact)
    _reads(system, "after", repeats, manifest, events)
    _check(system, "after", events)
    if isinstance(system, Clusters):
        events.time_write("cluster", system.cluster)
        _keyed_reads(system, "clustered", repeats, manifest, events)
        _check(system, "clustered", events)


def _load(system: System, manifest: Manifest) -> None:
    path = manifest.final if system.starts_from_final else manifest.load
    system.load(system.spark.read.parquet(path))


def _upsert(system: System, path: str) -> None:
    system.upsert(system.spark.read.parquet(path))


def _query(system: System, sql: str) -> list[list[Any]]:
    return _plain(system.query(sql))


def _reads(system: System, stage: str, repeats: int, manifest: Manifest, events: Events) -> None:
    key = manifest.dataset.key
    queries = {
        "scan": workload.scan_sql(system.table, key),
        "aggregate": workload.aggregate_sql(system.table),
        "filter": workload.filter_sql(system.table),
    }
    for name, sql in queries.items():
        for _ in range(repeats):
            events.time(name, partial(_query, system, sql), stage=stage)
    _keyed_reads(system, stage, repeats, manifest, events)


def _keyed_reads(system: System, stage: str, repeats: int, manifest: Manifest, events: Events) -> None:
    for step, ranges in (("range", manifest.ranges), ("wide range", manifest.wide_ranges)):
        for index, ends in enumerate(ranges[: repeats + 1]):
            sql = workload.range_sql(system.table, ends)
            events.time(step, partial(_query, system, sql), stage=stage, index=index)
    for index, key in enumerate(manifest.lookups[:LOOKUPS_SQL]):
        sql = workload.lookup_sql(system.table, key, workload.day_of(manifest.dataset, key))
        events.time("lookup", partial(_query, system, sql), stage=stage, index=index)
    for _ in range(repeats):
        sql = workload.many_sql(system.table, manifest.many)
        events.time("many", partial(_query, system, sql), stage=stage)
    if isinstance(system, Gets):
        for _ in range(repeats):
            events.time("get many", partial(_get_many, system, manifest.many), stage=stage)
        for number in range(GETS):
            index = number % len(manifest.lookups)
            events.time("get", partial(_get, system, manifest.lookups[index]), stage=stage, index=index)


def _get(system: Gets, key: int | str) -> list[list[Any]]:
    row = system.get(key)
    return _plain([] if row is None else [tuple(row[column] for column in COLUMNS)])


def _get_many(system: Gets, keys: Sequence[int | str]) -> list[list[Any]]:
    rows = system.get_many(keys)
    return [[len(rows), sum(row["c0"] for row in rows), sum(len(row["s"]) for row in rows)]]


def _check(system: System, stage: str, events: Events) -> None:
    sql = workload.checksum_sql(system.table)
    events.time("checksum", partial(_query, system, sql), stage=stage)
    events.write("state", stage=stage, state=asdict(system.state()), folder=folder_size(system.root))


def _plain(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    """Rows as JSON has them; a timestamp as microseconds."""
    return [[round(v.timestamp() * 1_000_000) if isinstance(v, datetime) else v for v in row] for row in rows]


def main(path: str) -> None:
    job = Job(**json.loads(Path(path).read_text()))
    manifest = Manifest.read(Path(job.manifest))
    system = system_class(job.system)(manifest.dataset, Path(job.place), job.shared)
    with open(job.events, "w") as file:
        events = Events(file, system.root)
        events.time("start", system.start)
        try:
            run(system, job.kind, job.repeats, manifest, events)
        finally:
            system.stop()
        events.write("done")


if __name__ == "__main__":
    main(sys.argv[1])
