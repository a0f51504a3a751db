"""Which runs the triggers choose, and what merging them leaves."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lakekit.filestore import merge, runs
from lakekit.filestore.compaction import BASE_LEVEL, Triggers, pick, pick_all
from lakekit.storage.actions import AddFile, DeletionVector
from tests.filestore.harness import Bucket

if TYPE_CHECKING:
    import pytest

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("v", pa.int64())])


def file(run: str, size: int, level: int = 0, age: int = 0, bucket: int = 0) -> AddFile:
    return AddFile(
        path=f"_bucket={bucket}/{run}.parquet",
        partition_values={"_bucket": str(bucket)},
        size=size,
        modification_time=1000 - age,
        data_change=True,
        stats='{"numRecords": 10}',
        tags={"lake.run": run, "lake.level": str(level), "lake.sort": '["id"]'},
        deletion_vector=None,
    )


def test_few_runs_are_left_alone() -> None:
    assert pick([file("base", 100, 1, age=9), file("a", 1), file("b", 1)], Triggers()) == []


def test_many_small_runs_are_merged_without_the_base() -> None:
    files = [file("base", 10_000, 1, age=9), *[file(f"r{i}", 1, age=i) for i in range(5)]]
    (unit,) = pick(files, Triggers())
    assert {f.run_id for f in unit.files} == {f"r{i}" for i in range(5)}
    assert unit.level == 0


def test_size_amplification_merges_everything() -> None:
    files = [file("base", 10, 1, age=9), *[file(f"r{i}", 10, age=i) for i in range(4)]]
    (unit,) = pick(files, Triggers())
    assert len(unit.files) == 5
    assert unit.level == BASE_LEVEL


def test_a_bucket_with_too_many_deleted_rows_is_merged_up_to_the_run_that_has_them() -> None:
    vector = DeletionVector("u", "x", 1, 10, 6)
    worn = dataclasses.replace(file("base", 100, 1, age=9), deletion_vector=vector)
    (unit,) = pick([worn, file("a", 1)], Triggers(deleted_ratio=0.25))
    assert len(unit.files) == 2
    assert pick([worn, file("a", 1)], Triggers(deleted_ratio=0.35)) == []
    clean = [file("base", 100, 1, age=9), file("new", 10)]
    worn = dataclasses.replace(file("worn", 10, age=5), deletion_vector=vector)
    assert pick([*clean, worn], Triggers()) == []
    (unit,) = pick([*clean, worn], Triggers(deleted_ratio=0.15))
    assert {f.path for f in unit.files} == {clean[1].path, worn.path}


def test_buckets_are_chosen_independently() -> None:
    busy = [file(f"r{i}", 1, age=i) for i in range(6)]
    calm = [file("c", 1, bucket=1)]
    assert [u.bucket for u in pick(busy + calm, Triggers())] == [((), 0)]
    assert {u.bucket[1] for u in pick_all(busy + calm)} == {0, 1}
    assert pick_all([file("base", 10, 1)]) == []


def test_merged_files_are_sorted_disjoint_and_of_the_target_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "ROW_GROUP_ROWS", 100)
    monkeypatch.setattr(merge, "BATCH_ROWS", 64)
    bucket = Bucket(tmp_path, SCHEMA, ["id"])
    bucket.layout = dataclasses.replace(bucket.layout, target_file_size=2000)
    for step in range(6):
        bucket.write([{"id": (i * 7 + step) % 900, "name": f"{step}", "v": i} for i in range(400)])
    before = sorted(bucket.rows(), key=lambda r: r["id"])
    bucket.merge()
    assert sorted(bucket.rows(), key=lambda r: r["id"]) == before
    assert len(bucket.files) > 2
    assert len({f.run_id for f in bucket.files}) == 1
    assert all(
        f.deletion_vector is None and f.level == BASE_LEVEL and not f.data_change for f in bucket.files
    )
    ranges = [f.column_stats.range("id") for f in bucket.files]
    assert all(
        low is not None and high is not None and low[1] < high[0] for low, high in itertools.pairwise(ranges)
    )
    again = [r["id"] for r in bucket.rows()]
    assert again == sorted(again)
