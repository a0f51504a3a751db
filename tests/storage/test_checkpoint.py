import json
import os
import time
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakekit.errors import CorruptLogError, VersionNotFoundError
from lakekit.storage.actions import DeletionVector, DomainMetadata, RemoveFile, Txn, to_line
from lakekit.storage.checkpoint import last_checkpoint_version, read_checkpoint, retention_ms
from lakekit.storage.listing import Listing
from lakekit.storage.log import DeltaLog, commit_path
from tests.storage.tables import add, extend, metadata, new_log, protocol

DAY = 24 * 3_600_000
VECTOR = DeletionVector("u", "a" * 20, 43, 34, 2)


def checkpoint_path(version: int, suffix: str = "parquet") -> str:
    return f"_delta_log/{version:020d}.checkpoint.{suffix}"


def tombstones(store) -> set[str]:
    """The removed files that the newest checkpoint lists."""
    actions = read_checkpoint(store, Listing.of(store).checkpoints[-1], removes=True)
    return {action.path for action in actions if isinstance(action, RemoveFile)}


def drop_commits(store, end: int) -> None:
    store.delete(commit_path(version) for version in range(end))


@pytest.fixture
def busy(store):
    """A log with every kind of action that a checkpoint keeps."""
    log = new_log(store, 3)
    tagged = add("t%20", tags={"lake.level": "0", "lake.sort": '["id"]'}, deletion_vector=VECTOR)
    now = int(time.time() * 1000)
    log.write(3, [tagged, add("p", partition_values={"_bucket": None})], "c3")
    log.write(
        4,
        [
            add("f1").remove(now, data_change=True),
            add("f2").remove(now - 8 * DAY, data_change=True),
            Txn("w", 7, now),
            DomainMetadata("d", '{"a":1}', removed=False),
        ],
        "c4",
    )
    return log


def test_a_checkpoint_holds_the_whole_state(store, busy):
    busy.checkpoint(4)
    drop_commits(store, 5)
    before, after = busy.snapshot(4), DeltaLog(store).snapshot()
    assert set(after.files) == {"t%20", "p"}
    for path, file in after.files.items():
        was = before.files[path]
        assert file.tags == was.tags
        assert file.deletion_vector == was.deletion_vector
        assert file.partition_values == was.partition_values
        assert (file.stats, file.size, file.modification_time) == (was.stats, was.size, was.modification_time)
        assert not file.data_change
    assert (after.protocol, after.metadata) == (before.protocol, before.metadata)
    assert (after.txns, after.domains, after.version) == ({"w": 7}, before.domains, 4)


def test_tombstones_are_kept_until_they_expire(store, busy):
    busy.checkpoint(4)
    assert tombstones(store) == {"f1"}


def test_the_next_checkpoint_builds_on_the_last(store, busy):
    busy.checkpoint(4)
    drop_commits(store, 4)
    extend(busy, 5, 7)
    busy.checkpoint(6)
    drop_commits(store, 7)
    log = DeltaLog(store)
    assert set(log.snapshot().files) == {"t%20", "p", "f5", "f6"}
    assert log.snapshot().txns == {"w": 7}
    assert tombstones(store) == {"f1"}


def test_last_checkpoint_never_goes_back(store):
    log = new_log(store, 6)
    log.checkpoint(5)
    log.checkpoint(2)
    assert last_checkpoint_version(store) == 5
    fields = json.loads(store.read("_delta_log/_last_checkpoint"))
    assert (fields["size"], fields["numOfAddFiles"]) == (7, 5)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"version":"3"}', b'{"version":99}', b'{"version":3}']
)
def test_last_checkpoint_is_only_a_hint(store, content):
    new_log(store, 6)
    store.put("_delta_log/_last_checkpoint", content)
    assert len(DeltaLog(store).snapshot().files) == 5
    assert len(DeltaLog(store).snapshot(2).files) == 2


def test_a_cleaned_log(store):
    log = new_log(store, 9)
    log.checkpoint(2)
    log.checkpoint(5)
    drop_commits(store, 4)
    log = DeltaLog(store)
    assert (log.earliest_version(), log.latest_version()) == (5, 8)
    assert len(log.snapshot().files) == 8
    assert len(log.snapshot(6).files) == 6
    for ask in (log.snapshot, log.commit_actions):
        with pytest.raises(VersionNotFoundError):
            ask(3)
    assert [record.version for record in log.commits()] == [4, 5, 6, 7, 8]
    assert log.version_at(log.snapshot(6).timestamp) == 6
    with pytest.raises(VersionNotFoundError):
        log.version_at(log.snapshot(5).timestamp - 1000)


def test_only_a_checkpoint_is_left(store):
    log = new_log(store, 4)
    log.checkpoint(3)
    drop_commits(store, 4)
    log = DeltaLog(store)
    assert log.exists()
    assert (log.earliest_version(), log.latest_version(), log.commits()) == (3, 3, [])
    assert log.version_at(log.snapshot().timestamp) == 3


def test_a_damaged_checkpoint_does_no_harm_while_older_files_are_there(store):
    log = new_log(store, 9)
    log.checkpoint(3)
    log.checkpoint(6)
    store.put(checkpoint_path(6), b"PAR1 nonsense")
    assert len(DeltaLog(store).snapshot().files) == 8
    drop_commits(store, 3)
    assert len(DeltaLog(store).snapshot().files) == 8


def test_a_damaged_checkpoint_that_is_needed_is_named(store):
    log = new_log(store, 5)
    log.checkpoint(3)
    drop_commits(store, 3)
    good = store.read(checkpoint_path(3))
    for damaged in (b"", good[: len(good) // 2], b"PAR1" + b"\0" * 50 + good[54:]):
        store.put(checkpoint_path(3), damaged)
        with pytest.raises(CorruptLogError, match=r"00000000000000000003.checkpoint.parquet"):
            DeltaLog(store).snapshot()


def test_expired_files_of_the_log_are_deleted(disk):
    log = new_log(disk, 12)
    for version in (2, 4, 8):
        log.checkpoint(version)
    disk.put(commit_path(1).replace("json", "crc"), b"{}")
    old = time.time() - 31 * 24 * 3600
    for file in disk.list("_delta_log"):
        if int(Path(file.path).name[:20].replace("_last_checkpoint", "99")) <= 6:
            os.utime(disk.local_path(file.path), (old, old))
    log.checkpoint(11)
    left = Listing.of(disk)
    assert [checkpoint.version for checkpoint in left.checkpoints] == [4, 8, 11]
    assert sorted(left.commits) == list(range(4, 12))
    assert len(DeltaLog(disk).snapshot(5).files) == 5


def test_nothing_of_the_log_is_deleted_if_so_set(disk):
    log = new_log(disk, 12, **{"delta.enableExpiredLogCleanup": "false"})
    log.checkpoint(4)
    old = time.time() - 31 * 24 * 3600
    for file in disk.list("_delta_log"):
        os.utime(disk.local_path(file.path), (old, old))
    log.checkpoint(11)
    assert sorted(Listing.of(disk).commits) == list(range(12))


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("interval 30 days", 30),
        ("interval 1 week", 7),
        ("INTERVAL 2 weeks 1 day", 15),
        ("interval 48 hours", 2),
        ("interval 1 month", 7),
        ("nonsense", 7),
        ("", 7),
    ],
)
def test_retention(text, days):
    assert retention_ms({"delta.deletedFileRetentionDuration": text}) == days * DAY


# -- what others write


def test_a_checkpoint_of_many_parts(store):
    log = new_log(store, 4)
    log.checkpoint(3)
    whole = pq.read_table(pa.BufferReader(store.read(checkpoint_path(3))))
    store.delete([checkpoint_path(3)])
    drop_commits(store, 4)
    for part in (1, 2):
        sink = pa.BufferOutputStream()
        pq.write_table(whole.slice(0, 3) if part == 1 else whole.slice(3), sink)
        store.put(checkpoint_path(3, f"{part:010d}.{2:010d}.parquet"), bytes(sink.getvalue()))
        if part == 1:
            assert Listing.of(store).checkpoints == []
    assert set(DeltaLog(store).snapshot().files) == {"f1", "f2", "f3"}


@pytest.mark.parametrize("in_folder", [False, True])
def test_a_v2_checkpoint_with_sidecars(store, in_folder):
    log = new_log(store, 4)
    log.checkpoint(3)
    store.put("_delta_log/_sidecars/side.parquet", store.read(checkpoint_path(3)))
    store.delete([checkpoint_path(3)])
    drop_commits(store, 4)
    name = "_delta_log/_sidecars/side.parquet" if in_folder else "side.parquet"
    lines = [
        '{"checkpointMetadata":{"version":3}}',
        json.dumps({"sidecar": {"path": name, "sizeInBytes": 1, "modificationTime": 1}}),
        to_line(protocol("v2Checkpoint")),
        to_line(metadata()),
        to_line(Txn("line\u2028separator", 2)),
    ]
    path = checkpoint_path(3, "3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json")
    store.put(path, "\n".join(lines).encode())
    snapshot = DeltaLog(store).snapshot()
    assert set(snapshot.files) == {"f1", "f2", "f3"}
    assert snapshot.txns == {"line\u2028separator": 2}
    store.delete(["_delta_log/_sidecars/side.parquet"])
    with pytest.raises(CorruptLogError, match=r"_sidecars/side\.parquet"):
        DeltaLog(store).snapshot()


def test_statistics_that_are_only_in_structs(store):
    value = {
        "id": 3,
        "d": date(2020, 1, 2),
        "t": datetime(2020, 1, 2, 3, 4, 5, 678000, tzinfo=timezone.utc),
        "dec": Decimal("1.50"),
        "f": float("nan"),
    }
    stats = {"numRecords": 7, "minValues": value, "maxValues": value, "nullCount": {"id": 1}}
    types = {"id": "long", "d": "date", "t": "timestamp", "dec": "decimal(4,2)", "f": "double"}
    log = DeltaLog(store)
    log.write(0, [protocol(), metadata(**types), add("a")], "c0")
    log.checkpoint(0)
    rows = pq.read_table(pa.BufferReader(store.read(checkpoint_path(0))))
    adds = rows["add"].combine_chunks()
    kept = {field.name: adds.field(field.name) for field in adds.type if field.name != "stats"}
    kept["stats_parsed"] = pa.array([stats] * len(adds))
    changed = pa.StructArray.from_arrays(list(kept.values()), list(kept), mask=adds.is_null())
    sink = pa.BufferOutputStream()
    pq.write_table(rows.set_column(rows.schema.get_field_index("add"), "add", changed), sink)
    store.put(checkpoint_path(0), bytes(sink.getvalue()))
    drop_commits(store, 1)
    found = DeltaLog(store).snapshot().files["a"].column_stats
    assert found.num_records == 7
    assert found.range("id") == (3, 3)
    assert found.range("d") == (date(2020, 1, 2),) * 2
    assert found.range("dec") == (Decimal("1.50"),) * 2
    assert found.range("t")[0] == value["t"]
    assert found.range("f") is None
    assert found.null_count("id") == 1
