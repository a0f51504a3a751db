"""A write whose files a compaction replaced before its commit, against a dict."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakekit.filestore import merge, runs
from lakekit.filestore.follow import catch_up, follow, moved, new_files, overtaken
from lakekit.filestore.result import BucketResult
from lakekit.storage.actions import AddFile
from tests.filestore.harness import Bucket

KEYS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "bigint": (pa.int64(), lambda i: i - 40),
    "text": (pa.string(), lambda i: f"key-{i:03d}"),
    "double": (pa.float64(), lambda i: float("nan") if i == 7 else i - 0.5),
}


def followed(bucket: Bucket, result: BucketResult, before: Sequence[AddFile]) -> BucketResult:
    now = {f.path: f for f in bucket.files}
    job = moved(result, new_files({f.path: f for f in before}, now), now)
    return result if job is None else follow(bucket.layout, job)


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("sequence", [None, "v"])
def test_rows_that_a_compaction_moved_are_marked_in_its_output(
    name: str, sequence: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "ROW_GROUP_ROWS", 8)
    monkeypatch.setattr(merge, "BATCH_ROWS", 8)
    kind, key = KEYS[name]
    rng = random.Random(5)
    bucket = Bucket(tmp_path, pa.schema([("id", kind), ("v", pa.int64())]), ["id"], sequence=sequence)
    model: dict[str, int] = {}
    for step in range(25):
        new = {rng.randrange(80): step for _ in range(rng.randrange(1, 30))}
        gone = {rng.randrange(80) for _ in range(rng.randrange(8))} - set(new)
        before = list(bucket.files)
        rows = [{"id": key(i), "v": v} for i, v in new.items()]
        result = bucket.attempt(rows, [{"id": key(i), "v": step} for i in gone])
        if bucket.files:
            bucket.merge(only=bucket.files[: rng.randrange(1, len(bucket.files) + 1)], level=0)
            if rng.random() < 0.3:  # as another engine's OPTIMIZE leaves them
                bucket.files = [replace(f, tags={}) for f in bucket.files]
        done = followed(bucket, result, before)
        assert not done.lost_rows
        bucket.apply(done)
        model = {**model, **{str(key(i)): v for i, v in new.items()}}
        model = {k: v for k, v in model.items() if k not in {str(key(i)) for i in gone}}
        rows_now = [(str(row["id"]), row["v"]) for row in bucket.rows()]
        assert len(rows_now) == len(dict(rows_now)), "a key is live twice"
        assert dict(rows_now) == model


@pytest.mark.parametrize("name", KEYS)
def test_rows_that_writes_superseded_during_a_compaction_are_marked_in_its_output(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "ROW_GROUP_ROWS", 8)
    monkeypatch.setattr(merge, "BATCH_ROWS", 8)
    kind, key = KEYS[name]
    rng = random.Random(6)
    bucket = Bucket(tmp_path, pa.schema([("id", kind), ("v", pa.int64())]), ["id"])
    model: dict[str, int] = {}

    def write(step: int) -> None:
        new = {rng.randrange(80) for _ in range(rng.randrange(1, 30))}
        gone = {rng.randrange(80) for _ in range(rng.randrange(8))} - new
        bucket.write([{"id": key(i), "v": step} for i in new], [{"id": key(i), "v": step} for i in gone])
        model.update({str(key(i)): step for i in new})
        for i in gone:
            model.pop(str(key(i)), None)

    caught = 0
    for step in range(40):
        write(step)
        before = list(bucket.files)
        result = bucket.merge()
        bucket.files = before  # not committed yet
        for _ in range(2):  # and overtaken again while it caught up
            known = {f.path: f for f in bucket.files}
            write(step)
            now = {f.path: f for f in bucket.files}
            job = overtaken(result, new_files(known, now), now)
            if job is None:
                break
            result = catch_up(bucket.layout, job)
        else:
            assert not result.lost_rows
            bucket.apply(result)
            caught += 1
        found = [(str(row["id"]), row["v"]) for row in bucket.rows()]
        assert len(found) == len(dict(found)), "a key is live twice"
        assert dict(found) == model
    assert caught > 20


def test_a_row_that_cannot_be_found_again_is_told(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path, pa.schema([("id", pa.int64()), ("v", pa.int64())]), ["id"])
    bucket.write([{"id": i, "v": 0} for i in range(10)])
    before = list(bucket.files)
    result = bucket.attempt([{"id": 3, "v": 1}])
    bucket.write([], deletes=[{"id": 3, "v": None}])  # no compaction: the row is gone
    bucket.merge()
    assert followed(bucket, result, before).lost_rows


def test_a_second_row_of_a_key_from_another_program_supersedes_nothing(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path, pa.schema([("id", pa.int64()), ("v", pa.int64())]), ["id"])
    bucket.write([{"id": i, "v": 0} for i in range(10)])
    before = list(bucket.files)
    merged = bucket.merge()
    bucket.files = list(before)  # not committed yet
    inserted = next(f for f in bucket.attempt([{"id": 3, "v": 1}]).added if f.deletion_vector is None)
    bucket.files.append(replace(inserted, tags={}))
    bucket.write([], deletes=[{"id": 5, "v": None}])  # as many rows marked as there are new ones
    now = {f.path: f for f in bucket.files}
    job = overtaken(merged, new_files({f.path: f for f in before}, now), now)
    assert job is not None
    bucket.apply(catch_up(bucket.layout, job))
    found = sorted((row["id"], row["v"]) for row in bucket.rows())
    assert found == [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (4, 0), *((i, 0) for i in range(6, 10))]
