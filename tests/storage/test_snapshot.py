import json
from datetime import date

import pytest

from lakekit.storage.actions import AddFile, DeletionVector, DomainMetadata, Txn
from lakekit.storage.snapshot import Replay
from tests.storage.tables import add, metadata, protocol

V1 = DeletionVector("u", "a" * 20, 1, 34, 1)
V2 = DeletionVector("u", "a" * 20, 43, 34, 2)


def start(*files, **columns):
    replay = Replay()
    replay.commit([protocol(), metadata(**columns), *files])
    return replay.snapshot(0, 1000)


def test_adds_and_removes():
    first = start(add("a"), add("b"))
    second = first.apply(1, 2000, [first.files["a"].remove(1, data_change=True), add("c")])
    assert set(second.files) == {"b", "c"}
    assert set(first.files) == {"a", "b"}
    assert (second.version, second.timestamp) == (1, 2000)


@pytest.mark.parametrize("flip", [False, True])
def test_a_vector_change_in_any_order_of_lines(flip):
    first = start(add("a"))
    change = [first.files["a"].remove(1, data_change=True), first.files["a"].with_vector(V1)]
    second = first.apply(1, 2000, change[::-1] if flip else change)
    assert second.files["a"].deletion_vector == V1
    third = second.apply(2, 3000, [second.files["a"].with_vector(V2), second.files["a"].remove(1, True)])
    assert third.files["a"].live_records == 8


def test_a_remove_takes_only_the_file_with_its_vector():
    first = start(add("a", deletion_vector=V2))
    stale = add("a", deletion_vector=V1).remove(1, data_change=True)
    assert set(first.apply(1, 2, [stale]).files) == {"a"}
    assert set(first.apply(1, 2, [first.files["a"].remove(1, True)]).files) == set()


def test_newest_batch_of_each_application():
    first = start(Txn("w1", 5), Txn("w2", 1))
    assert first.apply(1, 2, [Txn("w1", 6)]).txns == {"w1": 6, "w2": 1}


def test_domains_come_and_go():
    first = start(DomainMetadata("d", "{}", removed=False))
    assert set(first.domains) == {"d"}
    assert not first.apply(1, 2, [DomainMetadata("d", "{}", removed=True)]).domains


def test_statistics_are_read_with_the_schema_of_their_version():
    stats = '{"numRecords":1,"minValues":{"d":"2020-01-01"},"maxValues":{"d":"2020-01-02"}}'
    first = start(add("a", stats=stats), d="string")
    second = first.apply(1, 2, [metadata(d="date")])
    assert first.files["a"].column_stats.range("d") == ("2020-01-01", "2020-01-02")
    assert second.files["a"].column_stats.range("d") == (date(2020, 1, 1), date(2020, 1, 2))


def test_what_the_properties_say():
    keyed = {"lake.primary-key": '["id","k"]', "lake.bucket": "4", "lake.sequence.field": "at"}
    snapshot = start().apply(1, 2, [metadata(configuration=keyed, id="long", k="string", _bucket="integer")])
    assert snapshot.primary_key == ("id", "k")
    assert (snapshot.buckets, snapshot.sequence_field) == (4, "at")
    assert snapshot.user_columns == ["id", "k"]
    assert snapshot.partition_columns == ("_bucket",)
    assert snapshot.schema_json == json.loads(snapshot.metadata.schema_string)
    append = start()
    assert (append.primary_key, append.buckets, append.sequence_field) == ((), None, None)


def test_a_log_without_metadata_has_no_state():
    replay = Replay()
    replay.commit([protocol(), AddFile("a", {}, 1, 1, data_change=True)])
    with pytest.raises(ValueError, match="no protocol or metadata"):
        replay.snapshot(0, 1)


def test_tombstones_of_files_that_came_back_are_gone():
    replay = Replay(keep_tombstones=True)
    replay.commit([protocol(), metadata(), add("a"), add("b")])
    replay.commit([add("a").remove(5, data_change=True), add("b").remove(5, data_change=True)])
    replay.commit([add("a")])
    assert [remove.path for remove in replay.tombstones.values()] == ["b"]
