"""`Table.write_stream`: one stream into both stores."""

from __future__ import annotations

import itertools
import json

import pytest

from lakekit import InvalidOptionError, LakeError, PrimaryKeyError
from lakekit.ingest import sink
from tests.logstore.replay import logged, replay, stored
from tests.waiting import wait_until

SCHEMA = "id BIGINT NOT NULL, v STRING"


@pytest.fixture(scope="module", autouse=True)
def database(lake):
    lake.create_database("streams")
    yield
    lake.drop_database("streams", cascade=True)


class Feed:
    """A folder of JSON files that a stream reads."""

    def __init__(self, lake, folder, schema):
        self.folder, self._names = folder, itertools.count()
        folder.mkdir()
        self.rows = lake.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder))

    def put(self, *rows):
        hidden = self.folder / f".{next(self._names)}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        hidden.rename(self.folder / f"{hidden.name[1:]:0>6}.json")


@pytest.fixture
def feed(lake, tmp_path):
    return Feed(lake, tmp_path / "feed", "id BIGINT, v STRING")


@pytest.fixture
def table(lake, request):
    name = request.node.name.split("[")[0].removeprefix("test_")[:60]
    properties = {
        "log-store.enabled": True,
        "log-store.address": "embedded",
        "log-store.topic": f"streams.{name}",
        "log-store.consistency-guarantee.enabled": True,
    }
    made = lake.create_table(f"streams.{name}", SCHEMA, primary_key=["id"], buckets=2, properties=properties)
    yield made
    lake.drop_table(str(made.name), if_exists=True)


def rows(ids, value):
    return [{"id": i, "v": value} for i in ids]


def wait_for_rows(ingestion, count):
    wait_until(lambda: ingestion.status.state != "running" or ingestion.status.rows_in >= count)
    assert ingestion.status.error is None
    assert ingestion.status.rows_in == count


def ending(table):
    """Returns the values of v that a reader ends with which takes changes as upserts and deletes by key."""
    end = {}
    for kind, row in logged(table):
        end.pop(row["id"], None) if kind in ("-D", "-U") else end.__setitem__(row["id"], row["v"])
    return end


def test_rows_are_in_the_log_at_once_and_in_the_files_after_the_interval(table, feed):
    feed.put(*rows(range(10), "a"))
    ingestion = table.write_stream(feed.rows, interval=1000)
    wait_for_rows(ingestion, 10)
    assert len(logged(table)) == 10
    assert table.to_df().count() == 0
    assert table.freshest().count() == 10
    assert (ingestion.status.pending_rows, ingestion.status.changes_out) == (10, 10)
    assert ingestion.status.file_lag_s > 0
    feed.put(*rows(range(5, 15), "b"))
    wait_for_rows(ingestion, 20)
    commit = ingestion.flush()
    assert (commit.rows_inserted, commit.rows_updated) == (15, 0)
    assert ingestion.status.pending_rows == ingestion.status.file_lag_s == 0
    feed.put(*rows([0], "c"))
    wait_for_rows(ingestion, 21)
    ingestion.stop()
    assert replay(logged(table)) == stored(table)
    assert stored(table)[0,]["v"] == "c"
    assert [kind for kind, row in logged(table) if row["id"] == 7] == ["+I", "-U", "+U"]
    assert [c.operation for c in ingestion.status.commits] == ["STREAM", "STREAM"]
    assert len(ingestion.status.log_latency_ms) == 3


def test_the_files_follow_by_themselves(table, feed):
    feed.put(*rows(range(3), "a"))
    with_interval = table.write_stream(feed.rows, interval=0.2)
    wait_until(lambda: table.to_df().count() == 3)
    assert with_interval.status.state == "running"
    with_interval.stop()


def test_a_stream_goes_on_where_it_stopped(table, feed):
    feed.put(*rows(range(3), "a"))
    first = table.write_stream(feed.rows, available_now=True)
    assert first.wait(120)
    assert first.status.state == "stopped"
    feed.put(*rows(range(2, 5), "b"))
    second = table.write_stream(feed.rows, available_now=True)
    second.wait(120)
    assert second.status.rows_in == 3
    assert second.writer_id == first.writer_id
    assert replay(logged(table)) == stored(table)
    assert {key: row["v"] for (key,), row in stored(table).items()} == {
        0: "a",
        1: "a",
        2: "b",
        3: "b",
        4: "b",
    }


def test_pause_and_go_on(table, feed):
    ingestion = table.write_stream(feed.rows, interval=1000)
    feed.put(*rows(range(3), "a"))
    wait_for_rows(ingestion, 3)
    ingestion.pause()
    assert ingestion.status.state == "paused"
    assert table.to_df().count() == 3
    feed.put(*rows(range(3), "b"))
    ingestion.resume()
    wait_for_rows(ingestion, 6)
    ingestion.stop()
    assert replay(logged(table)) == stored(table)


def test_another_writer_of_the_same_keys_in_between(table, feed):
    table.upsert(rows([1], "old"))
    ingestion = table.write_stream(feed.rows, interval=1000)
    feed.put(*rows([1, 2], "stream"))
    wait_for_rows(ingestion, 2)
    table.upsert(rows([1, 3], "batch"))
    feed.put(*rows([4], "later"))
    wait_for_rows(ingestion, 3)
    ingestion.stop()
    assert table.get(id=1)["v"] == "stream"  # its commit came last
    assert ending(table) == {row["id"]: row["v"] for row in stored(table).values()}


def test_another_writer_deletes_the_same_keys_in_between(lake, table, tmp_path):
    changes = Feed(lake, tmp_path / "changes", "id BIGINT, v STRING, _change_kind STRING")
    table.upsert(rows([1, 2, 3], "old"))
    ingestion = table.write_stream(changes.rows, interval=1000)
    changes.put(
        {"id": 1, "v": "old", "_change_kind": "-D"},
        {"id": 2, "v": "stream", "_change_kind": "+U"},
        {"id": 3, "v": "old", "_change_kind": "-D"},
    )
    wait_for_rows(ingestion, 3)
    table.delete([{"id": 1}, {"id": 2}])
    ingestion.stop()
    assert ending(table) == {row["id"]: row["v"] for row in stored(table).values()} == {2: "stream"}


def test_a_newer_row_by_the_sequence_field_in_between(lake, tmp_path):
    table = late_table(lake, "newer")
    table.upsert([{"id": i, "at": 5, "v": "old"} for i in range(3)])
    feed = Feed(lake, tmp_path / "newer", "id BIGINT, at BIGINT, v STRING")
    ingestion = table.write_stream(feed.rows, interval=1000)
    feed.put(*[{"id": i, "at": 7, "v": "stream"} for i in range(4)])
    wait_for_rows(ingestion, 4)
    table.upsert(
        [{"id": 0, "at": 9, "v": "batch"}, {"id": 1, "at": 6, "v": "batch"}, {"id": 3, "at": 9, "v": "batch"}]
    )
    ingestion.stop()
    expected = {0: "batch", 1: "stream", 2: "stream", 3: "batch"}
    assert ending(table) == {row["id"]: row["v"] for row in stored(table).values()} == expected


def test_another_writer_of_other_keys_in_between_changes_nothing(table, feed):
    ingestion = table.write_stream(feed.rows, interval=1000)
    feed.put(*rows([1, 2], "stream"))
    wait_for_rows(ingestion, 2)
    table.upsert(rows([3], "batch"))
    ingestion.stop()
    assert [kind for kind, _ in logged(table)].count("+I") == 3
    assert replay(logged(table)) == stored(table)


def test_two_streams_into_one_table(lake, table, feed, tmp_path):
    other = Feed(lake, tmp_path / "other", "id BIGINT, v STRING")
    feed.put(*rows(range(10), "one"))
    other.put(*rows(range(10, 20), "two"))
    one = table.write_stream(feed.rows, "one", interval=0.3)
    two = table.write_stream(other.rows, "two", interval=0.3)
    feed.put(*rows(range(5), "one more"))
    other.put(*rows(range(10, 15), "two more"))
    wait_for_rows(one, 15)
    wait_for_rows(two, 15)
    one.stop()
    two.stop()
    assert replay(logged(table)) == stored(table)
    assert len(stored(table)) == 20


def test_a_changelog_as_the_source(lake, table, tmp_path):
    changes = Feed(lake, tmp_path / "changes", "id BIGINT, v STRING, _change_kind STRING")
    changes.put(
        {"id": 1, "v": "a", "_change_kind": "+I"},
        {"id": 2, "v": "a", "_change_kind": "+I"},
        {"id": 1, "v": "a", "_change_kind": "-U"},
        {"id": 1, "v": "b", "_change_kind": "+U"},
        {"id": 2, "v": "a", "_change_kind": "-D"},
    )
    table.write_stream(changes.rows, available_now=True).wait(120)
    assert [(row["id"], row["v"]) for row in stored(table).values()] == [(1, "b")]
    assert replay(logged(table)) == stored(table)


def test_a_changelog_into_a_table_without_a_log(lake, tmp_path):
    source, copy = (
        lake.create_table(f"changelog_{name}", "id BIGINT, v STRING", primary_key=["id"])
        for name in ("from", "to")
    )
    source.upsert([{"id": i, "v": "a"} for i in range(4)])
    place = str(tmp_path / "checkpoint")
    for _ in range(2):
        changes = source.read_stream(changelog=True)
        copy.write_stream(changes, checkpoint=place, available_now=True).wait(120)
        assert stored(copy) == stored(source)
        source.upsert([{"id": 1, "v": "b"}, {"id": 9, "v": "b"}])
        source.delete([{"id": 2}])
    assert len(stored(copy)) == 4


def late_table(lake, name):
    return lake.create_table(
        f"streams.{name}",
        "id BIGINT NOT NULL, at BIGINT, v STRING",
        primary_key=["id"],
        properties={
            "sequence.field": "at",
            "log-store.enabled": True,
            "log-store.address": "embedded",
            "log-store.topic": f"streams.{name}",
            "log-store.consistency-guarantee.enabled": True,
        },
    )


def test_late_rows_by_the_sequence_field(lake, tmp_path):
    table = late_table(lake, "late")
    table.upsert([{"id": 1, "at": 5, "v": "five"}, {"id": 2, "at": 5, "v": "five"}])
    feed = Feed(lake, tmp_path / "late", "id BIGINT, at BIGINT, v STRING")
    feed.put(
        {"id": 1, "at": 4, "v": "four"}, {"id": 2, "at": 7, "v": "seven"}, {"id": 2, "at": 6, "v": "six"}
    )
    table.write_stream(feed.rows, available_now=True).wait(120)
    assert {row["v"] for row in stored(table).values()} == {"five", "seven"}
    assert replay(logged(table)) == stored(table)


def test_bad_rows_stop_the_stream_before_anything_is_sent(table, feed):
    feed.put(*rows([1, None], "a"))
    ingestion = table.write_stream(feed.rows, interval=0.2)
    with pytest.raises(PrimaryKeyError, match=r"1 row\(s\) .* null in the primary key"):
        ingestion.wait(60)
    assert ingestion.status.state == "failed"
    assert "null in the primary key" in ingestion.status.error
    assert logged(table) == []
    assert table.to_df().count() == 0


def test_columns_that_do_not_fit_stop_the_stream(lake, table, tmp_path):
    wrong = Feed(lake, tmp_path / "wrong", "id BIGINT, other STRING")
    wrong.put({"id": 1, "other": "x"})
    with pytest.raises(LakeError, match="other"):
        table.write_stream(wrong.rows).wait(60)


def test_a_large_micro_batch_is_one_commit(table, feed, monkeypatch):
    monkeypatch.setattr(sink, "FEW_ROWS", 100)
    feed.put(*rows(range(5), "small"))
    feed.put(*rows(range(500), "large"))
    feed.put(*rows(range(3), "last"))
    table.write_stream(feed.rows, available_now=True).wait(120)
    assert len(stored(table)) == 500
    assert replay(logged(table)) == stored(table)


def test_a_table_without_a_log(lake, feed):
    table = lake.create_table("streams.files", SCHEMA, primary_key=["id"])
    feed.put(*rows(range(3), "a"))
    feed.put(*rows(range(2, 5), "b"))
    ingestion = table.write_stream(feed.rows, available_now=True)
    ingestion.wait(120)
    assert len(stored(table)) == 5
    assert ingestion.status.rows_in == 6


def test_the_log_of_an_append_table_follows_its_commits(lake, feed):
    options = {
        "log-store.enabled": True,
        "log-store.address": "embedded",
        "log-store.topic": "streams.appended",
    }
    table = lake.create_table("streams.appended", SCHEMA, properties=options)
    feed.put(*rows([1, 1], "a"))
    table.write_stream(feed.rows, available_now=True).wait(120)
    assert [(kind, row["id"]) for kind, row in logged(table)] == [("+I", 1), ("+I", 1)]
    assert table.to_df().count() == 2


def test_the_rate_source(lake, table):
    frame = lake.spark.readStream.format("rate").option("rowsPerSecond", 200).load()
    ingestion = table.write_stream(
        frame.selectExpr("value % 50 AS id", "cast(value as string) AS v"), interval=1
    )
    wait_until(lambda: len(ingestion.status.commits) >= 2 or ingestion.status.state != "running")
    ingestion.stop()
    assert ingestion.status.error is None
    assert replay(logged(table)) == stored(table)
    assert len(stored(table)) == 50


def test_what_cannot_be_streamed(lake, table, feed):
    with pytest.raises(InvalidOptionError, match="streaming DataFrame"):
        table.write_stream(lake.spark.range(3))
    with pytest.raises(InvalidOptionError, match=r"emit\.mode"):
        table.emitting("file").write_stream(feed.rows)
    with pytest.raises(InvalidOptionError, match="interval"):
        table.write_stream(feed.rows, interval=0)
