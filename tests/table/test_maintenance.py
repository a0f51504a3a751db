"""Compaction, background compaction, vacuum and the changelog."""

from __future__ import annotations

import itertools
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

import lakekit
from lakekit.errors import InvalidOptionError, VersionNotFoundError
from lakekit.filestore import compaction
from lakekit.table import maintenance
from lakekit.table.table import Table
from tests.waiting import wait_until

_numbers = itertools.count()


def make(lake: lakekit.Lake, auto: bool = False, buckets: int = 2) -> Table:
    return lake.create_table(
        f"maintained_{next(_numbers)}",
        "id BIGINT, v BIGINT",
        primary_key=["id"],
        buckets=buckets,
        properties={"compaction.auto": str(auto).lower()},
    )


def contents(table: Table, version: int | None = None) -> dict[int, int]:
    return {r["id"]: r["v"] for r in table.to_df(version=version).collect()}


def test_compaction_leaves_one_clean_run_a_bucket_and_every_version_readable(lake: lakekit.Lake) -> None:
    table = make(lake)
    states = {0: {}}
    model: dict[int, int] = {}
    for step in range(4):
        rows = [{"id": (i * 3 + step) % 50, "v": step} for i in range(20)]
        model = model | {r["id"]: r["v"] for r in rows}
        states[table.upsert(rows).version] = model
    before = len(table.snapshot().files)
    done = table.compact()
    assert (done.files_added, done.files_removed) == (2, before)
    files = list(table.snapshot().files.values())
    assert all(f.deletion_vector is None and f.level == 1 for f in files)
    assert table.compact().skipped
    for version, state in {**states, done.version: model}.items():
        assert contents(table, version) == state
    assert table.changes(since=done.version).count() == 0


@pytest.mark.parametrize("at_once", [None, 1, 3])
def test_every_bucket_is_compacted_however_many_at_once(
    lake: lakekit.Lake, at_once: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "SMALL_BYTES", 0)  # by Spark tasks, as large tables are
    table = make(lake, buckets=5)
    for step in range(3):
        table.upsert([{"id": i, "v": step} for i in range(step * 10, 60)])
    done = maintenance.compact(table, at_once=at_once)
    assert done.files_added == 5
    assert all(f.deletion_vector is None and f.level == 1 for f in table.snapshot().files.values())
    assert contents(table) == {i: min(i // 10, 2) for i in range(60)}


def test_writes_during_a_compaction_do_not_make_it_start_again(
    lake: lakekit.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, model = make(lake), dict.fromkeys(range(100), 0)
    table.upsert([{"id": i, "v": 0} for i in range(100)])
    table.upsert([{"id": i, "v": 1} for i in range(0, 100, 2)])
    model.update(dict.fromkeys(range(0, 100, 2), 1))
    merged, writes = [], iter([range(0, 100, 3), range(0, 100, 5)])
    real_merge, real_follow = maintenance.merge_units, maintenance._caught_up

    def write_in_between() -> None:
        keys = next(writes, range(0))
        if keys:
            table.upsert([{"id": i, "v": 2} for i in keys])
            table.delete([{"id": keys[1]}])
            model.update(dict.fromkeys(keys, 2))
            del model[keys[1]]

    def merge(*arguments: Any) -> Any:
        done = real_merge(*arguments)
        merged.extend(done)
        write_in_between()
        return done

    def follow(*arguments: Any) -> Any:
        done = real_follow(*arguments)
        if merged:
            write_in_between()  # it is overtaken a second time while it catches up
        return done

    monkeypatch.setattr(maintenance, "merge_units", merge)
    monkeypatch.setattr(maintenance, "_caught_up", follow)
    done = table.compact()
    assert len(merged) == 2  # each bucket once
    assert not done.skipped
    assert contents(table) == model
    assert contents(table, done.version - 1) == model
    assert table.changes(since=done.version, until=done.version).count() == 0
    table.upsert([{"id": i, "v": 3} for i in range(50)])
    assert contents(table) == model | dict.fromkeys(range(50), 3)


def test_a_compaction_that_is_overtaken_again_and_again_holds_writes_back(
    lake: lakekit.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(lake, buckets=1)
    table.upsert([{"id": i, "v": 0} for i in range(100)])
    table.upsert([{"id": i, "v": 1} for i in range(0, 100, 2)])
    real, writes = maintenance._caught_up, list[Future[Any]]()

    def overtake(*arguments: Any) -> Any:
        done = real(*arguments)
        writes.append(writer.submit(table.upsert, [{"id": len(writes), "v": 2}]))
        wait(writes, timeout=5)  # one that is held back does not end before the compaction
        return done

    monkeypatch.setattr(maintenance, "_caught_up", overtake)
    with ThreadPoolExecutor(1) as writer:
        assert not table.compact().skipped
    assert [write.exception() for write in writes] == [None] * len(writes)
    assert 1 < len(writes) < maintenance.MAX_ATTEMPTS
    assert contents(table) == {i: 2 if i < len(writes) else 1 - i % 2 for i in range(100)}


def test_compaction_in_the_background_follows_commits(lake: lakekit.Lake) -> None:
    table = make(lake, auto=True)
    for step in range(6):
        table.upsert([{"id": i, "v": step} for i in range(step * 10, step * 10 + 10)])
    lake.background_compaction.wait()
    assert lake.background_compaction.last_error is None
    operations = [c.info["operation"] for c in _commits(table)]
    assert "COMPACT" in operations
    assert len(contents(table)) == 60


def test_compaction_in_the_background_waits_for_writes_until_it_is_urgent(lake: lakekit.Lake) -> None:
    table = make(lake, auto=True)

    def is_compacted() -> bool:
        return "COMPACT" in [c.info["operation"] for c in _commits(table)]

    with lake.background_compaction.writing(str(table.name)):
        for step in range(6):
            table.upsert([{"id": i, "v": step} for i in range(step * 10, step * 10 + 10)])
        assert not is_compacted()
        for step in range(6, 12):
            table.upsert([{"id": i, "v": step} for i in range(step * 10, step * 10 + 10)])
        wait_until(is_compacted)
    first = table.version
    for step in range(6):
        table.upsert([{"id": i, "v": -step} for i in range(step * 10, step * 10 + 10)])
    wait_until(lambda: "COMPACT" in [c.info["operation"] for c in _commits(table) if c.version > first])
    assert len(contents(table)) == 120


def test_compaction_beside_writes_commits_part_by_part(
    lake: lakekit.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "TURN_BYTES", 1)
    table = make(lake, auto=True, buckets=4)
    at_once = max((lake.cores or 0) - 1, 1)

    def compacted() -> list[int]:
        done = [c.info for c in _commits(table) if c.info["operation"] == "COMPACT"]
        return [int(info["operationParameters"]["buckets"]) for info in done]

    with lake.background_compaction.writing(str(table.name)):
        for step in range(11):
            table.upsert([{"id": i, "v": i} for i in range(step * 40, step * 40 + 40)])
        wait_until(lambda: sum(compacted()) >= 4)
    assert max(compacted()) <= at_once
    assert contents(table) == {i: i for i in range(440)}


def test_background_compaction_can_be_turned_off(lake: lakekit.Lake) -> None:
    table = make(lake, auto=False)
    for step in range(6):
        table.upsert([{"id": 1, "v": step}])
    lake.background_compaction.wait()
    assert "COMPACT" not in [c.info["operation"] for c in _commits(table)]


def test_vacuum_is_safe_by_default(lake: lakekit.Lake) -> None:
    table = make(lake)
    table.upsert([{"id": i, "v": 0} for i in range(10)])
    table.upsert([{"id": i, "v": 1} for i in range(10)])
    table.compact()
    before = _data_files(table)
    table.vacuum()
    assert _data_files(table) == before
    assert contents(table, 1) == dict.fromkeys(range(10), 0)
    with pytest.raises(InvalidOptionError, match="168"):
        table.vacuum(1)
    listed = table.vacuum(0, dry_run=True).count()
    assert listed > 0
    assert _data_files(table) == before
    table.vacuum(0, force=True)
    assert len(_data_files(table)) < len(before)
    assert contents(table) == dict.fromkeys(range(10), 1)


def test_changes_replay_to_every_version(lake: lakekit.Lake) -> None:
    table = make(lake)
    table.upsert([{"id": i, "v": 0} for i in range(6)])
    table.upsert([{"id": i, "v": 1} for i in range(4, 9)])
    table.delete("id < 2")
    table.compact()
    table.upsert([{"id": 1, "v": 7}])
    state: dict[int, int] = {}
    by_version: dict[int, list[Any]] = defaultdict(list)
    for row in table.changes().collect():
        by_version[row["_version"]].append(row)
    for version in range(table.version + 1):
        for row in sorted(
            by_version[version], key=lambda r: ["-D", "-U", "+U", "+I"].index(r["_change_kind"])
        ):
            if row["_change_kind"] in ("-D", "-U"):
                assert state.pop(row["id"]) == row["v"]
            else:
                assert row["id"] not in state
                state[row["id"]] = row["v"]
        assert state == contents(table, version)
    kinds = [r["_change_kind"] for r in by_version[2]]
    assert sorted(kinds) == ["+I"] * 3 + ["+U"] * 2 + ["-U"] * 2
    with pytest.raises(VersionNotFoundError, match="from 0 to 5"):
        table.changes(since=9)


def test_the_changelog_as_a_stream_pairs_updates(lake: lakekit.Lake, tmp_path: Path) -> None:
    table = make(lake)
    table.upsert([{"id": i, "v": 0} for i in range(5)])

    def run(name: str) -> list[tuple[int, int, str]]:
        stream = table.read_stream(changelog=True)
        query = (
            stream.writeStream.format("memory")
            .queryName(name)
            .option("checkpointLocation", str(tmp_path / name))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sorted(
            (r["id"], r["v"], r["_change_kind"]) for r in lake.spark.sql(f"SELECT * FROM {name}").collect()
        )

    assert run("first_changes") == [(i, 0, "+I") for i in range(5)]
    table.upsert([{"id": 4, "v": 1}, {"id": 9, "v": 1}])
    table.delete([{"id": 0}])
    stream = table.read_stream(changelog=True, since=2)
    query = stream.writeStream.format("memory").queryName("later_changes").trigger(availableNow=True).start()
    query.awaitTermination()
    found = {
        (r["id"], r["v"], r["_change_kind"]) for r in lake.spark.sql("SELECT * FROM later_changes").collect()
    }
    assert found == {(4, 0, "-U"), (4, 1, "+U"), (9, 1, "+I"), (0, 0, "-D")}


def _commits(table: Table) -> Any:
    from lakekit.storage.log import open_log

    return open_log(table.root).commits()


def _data_files(table: Table) -> list[str]:
    return sorted(str(p) for p in Path(table.root).rglob("part-*.parquet"))
