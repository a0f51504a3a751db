import json
import shutil
import threading
from datetime import datetime, timezone

import pytest

from lakekit.errors import CorruptLogError, TableNotFoundError, UnsupportedTableError, VersionNotFoundError
from lakekit.storage.actions import CommitInfo, Txn
from lakekit.storage.log import DeltaLog, commit_path, open_log
from lakekit.storage.store import Store
from tests.storage.tables import add, extend, metadata, new_log, protocol

HOUR = 3_600_000


def names(snapshot):
    return sorted(snapshot.files)


def test_no_table(store):
    log = DeltaLog(store)
    assert not log.exists()
    for ask in (
        log.snapshot,
        log.latest_version,
        log.earliest_version,
        log.commits,
        lambda: log.version_at(1),
    ):
        with pytest.raises(TableNotFoundError, match="orders"):
            ask()


def test_newest_and_older_states(store):
    log = new_log(store, 4)
    assert log.exists()
    assert names(log.snapshot()) == ["f1", "f2", "f3"]
    assert names(log.snapshot(1)) == ["f1"]
    assert log.snapshot(2).version == 2
    assert (log.earliest_version(), log.latest_version()) == (0, 3)


def test_commits_of_others_are_seen_at_once(store):
    log, other = new_log(store, 2), DeltaLog(store)
    assert log.snapshot().version == other.snapshot().version == 1
    extend(other, 2, 5)
    assert names(log.snapshot()) == ["f1", "f2", "f3", "f4"]
    assert log.snapshot() is log.snapshot()


def test_a_far_newer_state_is_reached(store):
    log, other = new_log(store), DeltaLog(store)
    log.snapshot()
    extend(other, 1, 130)
    assert log.snapshot().version == 129
    assert len(log.snapshot().files) == 129


def test_one_look_when_nothing_changed(disk, monkeypatch):
    log = new_log(disk, 3)
    log.snapshot()
    extend(DeltaLog(disk), 3, 4)
    monkeypatch.setattr(Store, "list", None)
    assert log.snapshot().version == 3


def test_a_commit_does_not_bring_a_dropped_table_back(disk):
    log = new_log(disk, 3)
    log.snapshot()
    shutil.rmtree(disk.root)
    with pytest.raises(TableNotFoundError):
        extend(log, 3, 4)
    assert not log.exists()


def test_a_table_made_anew_at_the_same_place(disk):
    log = new_log(disk, 3)
    assert log.snapshot().metadata.id == "t"
    shutil.rmtree(disk.root)
    assert not log.exists()
    with pytest.raises(TableNotFoundError):
        log.snapshot()
    again = DeltaLog(disk)
    assert again.write(0, [protocol(), metadata("u")], "anew")
    extend(again, 1, 5)
    assert log.snapshot().metadata.id == "u"
    assert (log.snapshot().version, names(log.snapshot(1))) == (4, ["f1"])
    assert [record.version for record in log.commits()] == [0, 1, 2, 3, 4]


def test_a_table_made_anew_with_as_many_versions(disk):
    log = new_log(disk, 3)
    log.snapshot()
    shutil.rmtree(disk.root)
    again = DeltaLog(disk)
    again.write(0, [protocol(), metadata("u")], "create")
    extend(again, 1, 3)
    assert log.snapshot().metadata.id == "u"


def test_many_threads_see_states_that_grow(disk):
    log, seen, errors = new_log(disk), [], []

    def read() -> None:
        try:
            versions = [log.snapshot().version for _ in range(50)]
            assert versions == sorted(versions)
            seen.append(versions[-1])
        except AssertionError as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    extend(DeltaLog(disk), 1, 30)
    for thread in threads:
        thread.join()
    assert not errors
    assert len(seen) == 4
    assert log.snapshot().version == 29


# -- committing


def test_one_of_two_writers_gets_a_version(store):
    one, two = new_log(store), DeltaLog(store)
    assert one.write(1, [add("a")], "one")
    assert not two.write(1, [add("b")], "two")
    assert names(two.snapshot()) == ["a"]


def test_the_commit_id_and_the_time_are_written(store):
    log = new_log(store)
    log.write(1, [add("a"), CommitInfo({"operation": "UPSERT", "timestamp": 5})], "id 1")
    first, second = log.commit_actions(1)
    assert first == CommitInfo({"operation": "UPSERT", "timestamp": 5, "txnId": "id 1"})
    assert second == add("a")
    log.write(2, [add("b")], "id 2")
    assert log.commit_actions(2)[0].fields["timestamp"] > 5


def test_our_own_times_grow_even_if_the_clock_does_not(disk):
    log = new_log(disk, 2)
    before = log.snapshot().timestamp
    log.write(2, [add("a"), CommitInfo({"timestamp": before - HOUR})], "c")
    assert log.commit_actions(2)[0].fields["timestamp"] == before + 1


def test_a_repeated_commit_is_known_as_our_own(store):
    log = new_log(store)
    assert log.write(1, [add("a")], "one")
    assert log.write(1, [add("a")], "one")
    assert names(log.snapshot()) == ["a"]


class LosesReplies(Store):
    """Fails after (or before) the file was created, or has somebody else create it."""

    def __init__(self, root, kind):
        super().__init__(root)
        self.kind = kind

    def put_if_absent(self, path, data):
        if self.kind == "late":
            super().put_if_absent(path, data)
        if self.kind == "lost race":
            super().put_if_absent(path, data.replace(b"one", b"two"))
        raise ConnectionError("no reply")


def test_a_lost_reply(disk):
    new_log(disk)
    assert DeltaLog(LosesReplies(disk.root, "late")).write(1, [add("a")], "one")
    assert not DeltaLog(LosesReplies(disk.root, "lost race")).write(2, [add("b")], "one")
    with pytest.raises(ConnectionError):
        DeltaLog(LosesReplies(disk.root, "early")).write(3, [add("c")], "one")
    assert DeltaLog(disk).latest_version() == 2


class ReplacesCommits(Store):
    """As Spark's local writer may: it looks before we write, and renames over our file."""

    def put_if_absent(self, path, data):
        created = super().put_if_absent(path, data)
        self.put(path, b'{"commitInfo":{"txnId":"spark"}}\n')
        return created


def test_a_commit_that_spark_replaced_is_lost(disk):
    new_log(disk)
    assert not DeltaLog(ReplacesCommits(disk.root)).write(1, [add("a")], "one")


# -- history


def test_what_commits_did(store):
    log = new_log(store, 2)
    file = add("f1", rows=10)
    log.write(2, [file.remove(1, data_change=True), add("g", rows=25), Txn("w", 1)], "c")
    records = log.commits()
    assert [record.version for record in records] == [0, 1, 2]
    last = records[-1]
    assert (last.n_added, last.n_removed, last.bytes_added, last.bytes_removed) == (1, 1, 100, 100)
    assert (last.rows_added, last.rows_removed) == (25, 10)
    assert last.info["txnId"] == "c"
    assert [record.version for record in log.commits(1, 1)] == [1]
    assert [record.version for record in log.commits(start=1)] == [1, 2]


def test_rows_of_files_without_statistics_are_unknown(disk):
    log = new_log(disk)
    log.write(1, [add("a", stats=None)], "c")
    assert log.commits()[-1].rows_added is None


def test_times_grow_with_versions(disk):
    log = DeltaLog(disk)
    log.write(0, [protocol(), metadata(), CommitInfo({"timestamp": 9 * HOUR})], "c0")
    for version, stamp in enumerate([10 * HOUR, 12 * HOUR, 11 * HOUR, 12 * HOUR, 15 * HOUR], 1):
        log.write(version, [CommitInfo({"timestamp": stamp})], f"c{version}")
    want = [9 * HOUR, 10 * HOUR, 12 * HOUR, 12 * HOUR + 1, 12 * HOUR + 2, 15 * HOUR]
    assert [record.timestamp for record in log.commits()] == want
    assert [DeltaLog(disk).snapshot(version).timestamp for version in range(6)] == want
    found = {
        9 * HOUR: 0,
        11 * HOUR: 1,
        12 * HOUR: 2,
        12 * HOUR + 1: 3,
        14 * HOUR: 4,
        15 * HOUR: 5,
        99 * HOUR: 5,
    }
    assert {time: log.version_at(time) for time in found} == found


def test_times_outside_the_log_tell_the_range(disk):
    log = DeltaLog(disk)
    log.write(0, [protocol(), metadata(), CommitInfo({"timestamp": 9 * HOUR})], "c0")
    with pytest.raises(VersionNotFoundError, match=r"1970-01-01T08.*from 1970-01-01T09:00:00.000\+00:00"):
        log.version_at(8 * HOUR)
    future = int(datetime(2999, 1, 1, tzinfo=timezone.utc).timestamp() * 1000)
    with pytest.raises(VersionNotFoundError, match="2999"):
        log.version_at(future)


def test_a_commit_without_a_time_has_that_of_its_file(disk):
    log = new_log(disk)
    disk.put(commit_path(1), b'{"txn":{"appId":"a","version":1}}\n')
    stamp = disk.info(commit_path(1)).modified_ms
    assert log.commits()[-1].timestamp == log.snapshot().timestamp == stamp


# -- what is missing or broken


def test_versions_outside_the_log_tell_the_range(store):
    log = new_log(store, 4)
    for version in (-1, 4, 99):
        with pytest.raises(VersionNotFoundError, match=r"orders has no version .*from 0 to 3"):
            log.snapshot(version)
    for version in (-1, 4):
        with pytest.raises(VersionNotFoundError, match="from 0 to 3"):
            log.commit_actions(version)


def test_a_missing_commit_is_named(store):
    new_log(store, 6)
    store.delete([commit_path(3)])
    log = DeltaLog(store)
    for ask in (log.snapshot, lambda: log.snapshot(4), lambda: log.commit_actions(3)):
        with pytest.raises(CorruptLogError, match=r"0003\.json"):
            ask()
    assert names(log.snapshot(2)) == ["f1", "f2"]


@pytest.mark.parametrize(
    "damage",
    [
        b'{"add":{"path":"x","part',
        b'{"add":{"size":1}}\n',
        b'{"add":3}\n',
        b"[1]\n",
        b"\xff\xfe\n",
        b"null\n",
    ],
)
def test_a_damaged_commit_is_named(store, damage):
    log = new_log(store, 2)
    log.snapshot()
    store.put(commit_path(2), b'{"commitInfo":{}}\n' + damage)
    for ask in (log.snapshot, DeltaLog(store).snapshot, log.commits):
        with pytest.raises(CorruptLogError, match=r"00000000000000000002.json .* line 2"):
            ask()
    assert names(log.snapshot(1)) == ["f1"]


def test_a_log_without_metadata(store):
    store.put(commit_path(0), b'{"commitInfo":{}}\n')
    with pytest.raises(CorruptLogError, match="no protocol or metadata"):
        DeltaLog(store).snapshot()


def test_unknown_reader_features_are_named(store):
    log = new_log(store)
    log.snapshot()
    log.write(1, [protocol("columnMapping")], "c")
    for ask in (log.snapshot, DeltaLog(store).snapshot):
        with pytest.raises(UnsupportedTableError, match=r"orders: .*columnMapping"):
            ask()


def test_names_of_tables():
    assert DeltaLog(Store("/warehouse/shop.db/orders")).name == "shop.orders"
    assert DeltaLog(Store("/warehouse/orders")).name == "orders"
    assert DeltaLog(Store("s3://bucket")).name == "bucket"


def test_one_log_for_one_place(tmp_path):
    assert open_log(str(tmp_path / "t")) is open_log(f"file:{tmp_path}/t")
    assert open_log(str(tmp_path / "t")) is not open_log(str(tmp_path / "u"))


def test_other_files_in_the_log_folder_do_not_matter(disk):
    log = new_log(disk, 3)
    for name in (
        "00000000000000000001.crc",
        ".00000000000000000002.json.crc",
        "_staged_commits/x.json",
        "00.json",
    ):
        disk.put(f"_delta_log/{name}", json.dumps({"x": 1}).encode())
    disk.put("_delta_log/00000000000000000001.00000000000000000002.compacted.json", b"broken")
    assert names(DeltaLog(disk).snapshot()) == names(log.snapshot()) == ["f1", "f2"]
