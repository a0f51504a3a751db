"""Readers of a log: tail, pieces, Spark streams, and the files with the log over them."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from lakekit import InvalidOptionError, LogStoreError
from lakekit.logstore import emitted, loop
from lakekit.logstore.emission import emissions, emit_all
from lakekit.logstore.ranges import Piece, PieceReader, read_piece
from lakekit.logstore.reading import Semantics
from lakekit.logstore.records import TABLE
from lakekit.schema import parse_schema
from lakekit.table.log import TableLog
from tests.waiting import wait_until

from .replay import logged, replay, stored

NOON = dt.datetime.fromisoformat("2024-01-01T12:00:00")
OPTIONS = {"log-store.enabled": True, "log-store.address": "embedded", "compaction.auto": False}


def row(key, value, at=None):
    return {"id": key, "v": value, "at": at}


@pytest.fixture(scope="module", autouse=True)
def database(lake):
    lake.create_database("readers")
    yield
    lake.drop_database("readers", cascade=True)


@pytest.fixture
def table(lake, request):
    """A table with one topic partition, and three changes in its log."""
    name = request.node.name.split("[")[0].removeprefix("test_")[:60]
    properties = {**OPTIONS, "log-store.topic": name}
    made = lake.create_table(
        f"readers.{name}",
        "id BIGINT NOT NULL, v STRING, at TIMESTAMP",
        primary_key=["id"],
        buckets=1,
        properties=properties,
    )
    made.upsert([row(1, "a", NOON)])
    made.upsert([row(1, "b")])
    yield made
    lake.drop_table(str(made.name), if_exists=True)


async def take(tail, count, seconds=20):
    """Returns so many changes of a tail."""
    found = []

    async def work():
        async for change in tail:
            found.append(change)
            if len(found) == count:
                return

    async with tail:
        await asyncio.wait_for(work(), seconds)
    return found


def test_tail_gives_changes_as_get_gives_rows(table):
    first, *_ = asyncio.run(take(table.tail("earliest"), 3))
    assert (first.kind, first.writer, first.epoch, first.partition, first.offset) == ("+I", "@table", 1, 0, 0)
    assert first.row == {"id": 1, "v": "a", "at": NOON}
    assert abs(dt.datetime.now(dt.timezone.utc) - first.timestamp) < dt.timedelta(minutes=5)


def test_tail_starts_at_the_end_by_default(table):
    async def main():
        async with table.tail() as tail:
            write = asyncio.to_thread(table.upsert, [row(7, "new")])
            await write
            return await asyncio.wait_for(anext(tail), 20)

    assert asyncio.run(main()).row["id"] == 7


def test_tail_starts_at_a_time_or_at_offsets(table):
    last = asyncio.run(take(table.tail("earliest"), 3))[-1]
    by_time = asyncio.run(take(table.tail(timestamp=last.timestamp), 1))[0]
    assert by_time.timestamp >= last.timestamp.replace(microsecond=last.timestamp.microsecond // 1000 * 1000)
    by_offset = asyncio.run(take(table.tail(offsets={0: last.offset}), 1))[0]
    assert by_offset == last


def test_tail_refuses_what_does_not_go_together(table):
    with pytest.raises(InvalidOptionError, match=r"append-only.*guarantee"):
        table.tail(guarantee=True, changelog_modes="append-only")
    with pytest.raises(InvalidOptionError, match="timestamp-millis"):
        table.tail("timestamp")
    with pytest.raises(InvalidOptionError, match="'on_foreign'"):
        table.tail(on_foreign="ignore")


def test_an_append_only_reader_refuses_updates(table):
    with pytest.raises(LogStoreError, match=r"Record \d+ in partition 0 of topic '.*' is no \+I"):
        asyncio.run(take(table.tail("earliest", changelog_modes="append-only"), 3))


def test_a_table_without_a_log_has_no_tail(lake):
    plain = lake.create_table("readers.plain", "id BIGINT NOT NULL", primary_key=["id"])
    for read in (plain.tail, plain.read_log, plain.freshest, lambda: plain.read_stream("log")):
        with pytest.raises(InvalidOptionError, match=r"readers\.plain has no log"):
            read()


def test_offsets_that_retention_has_deleted_are_a_clear_error(table):
    from aiokafka import TopicPartition
    from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

    log = TableLog.of(table).target

    async def delete():
        admin = AIOKafkaAdminClient(bootstrap_servers=log.connection.servers)
        await admin.start()
        await admin.delete_records({TopicPartition(log.topic, 0): RecordsToDelete(before_offset=3)})
        await admin.close()

    loop.run(delete())
    with pytest.raises(LogStoreError, match="retention"):
        asyncio.run(take(table.tail(offsets={0: 1}), 1))
    with pytest.raises(LogStoreError, match="retention"):
        table.read_log(offsets={0: 1}).collect()
    assert [row.v for row in table.freshest().collect()] == ["b"]  # the files have what the log has lost


# Poison


def send(table, value, headers=()):
    from aiokafka import AIOKafkaProducer

    log = TableLog.of(table).target

    async def work():
        async with AIOKafkaProducer(bootstrap_servers=log.connection.servers) as producer:
            return (await producer.send_and_wait(log.topic, value, partition=0, headers=headers)).offset

    return loop.run(work())


def test_a_foreign_record_stops_a_reader_or_is_skipped(table):
    offset = send(table, b"poison")
    table.upsert([row(2, "c")])
    message = rf"Record {offset} in partition 0 of topic '.*' is not of this log: it has no header"
    with pytest.raises(LogStoreError, match=message):
        asyncio.run(take(table.tail("earliest"), 4))
    assert len(asyncio.run(take(table.tail("earliest", on_foreign="skip"), 4))) == 4
    with pytest.raises(Exception, match=message):
        table.read_log().collect()
    assert table.read_log(on_foreign="skip").count() == 4


def test_a_value_that_does_not_fit_is_named_by_its_offset(table):
    log = TableLog.of(table).target
    facts = {"format": "1", "table": log.table, "writer": "x", "epoch": "1", "seq": "0", "kind": "+I"}
    offset = send(table, b'{"id": "text"}', [(f"lake.{k}", v.encode()) for k, v in facts.items()])
    with pytest.raises(Exception, match=rf"Record {offset} in partition 0"):
        table.read_log().collect()


# Pieces, and SQL


def test_a_piece_of_the_log_by_offsets_and_times(table):
    middle = next(row for row in table.read_log().collect() if row._change_kind == "-U")
    rest = table.read_log(offsets={0: middle._log_offset})
    assert [row._change_kind for row in rest.collect()] == ["-U", "+U"]
    before = table.read_log(until_offsets={0: middle._log_offset})
    assert [row._change_kind for row in before.collect()] == ["+I"]
    assert table.read_log(since=middle._log_timestamp + dt.timedelta(hours=1)).count() == 0
    assert table.read_log(until=middle._log_timestamp + dt.timedelta(hours=1)).count() == 3


def test_sql_reads_the_log(lake, table):
    found = lake.sql(f"SELECT _change_kind, v FROM {table.name}$log ORDER BY _log_offset").collect()
    assert [tuple(row) for row in found] == [("+I", "a"), ("-U", "a"), ("+U", "b")]


def test_select_in_read_mode_log_has_what_the_files_lack(lake, table):
    table.emitting("log").upsert([row(1, "newer"), row(5, "new")])
    hint = "/*+ OPTIONS('arctic.read.mode'='log') */"
    query = f"SELECT id, v FROM {table.name} {{}} ORDER BY id"
    assert [tuple(r) for r in lake.sql(query.format(hint)).collect()] == [(1, "newer"), (5, "new")]
    assert [tuple(r) for r in lake.sql(query.format("")).collect()] == [(1, "b")]
    lake.sql("SET lake.read.mode = log")
    try:
        assert lake.sql(query.format("")).count() == 2
        assert lake.sql(f"SELECT * FROM {table.name} VERSION AS OF 1").collect()[0].v == "a"
    finally:
        lake.sql("RESET lake.read.mode")


def test_the_files_win_once_they_have_a_newer_row(table):
    table.emitting("log").upsert([row(1, "only in the log")])
    table.upsert([row(1, "in both")])
    assert [row.v for row in table.freshest().collect()] == ["in both"]


# Streams of Spark


class Running:
    """A query into memory."""

    def __init__(self, lake, frame, name, checkpoint):
        writer = frame.writeStream.format("memory").queryName(name)
        self.lake, self.name = lake, name
        self.query = writer.option("checkpointLocation", str(checkpoint)).start()

    def changes(self):
        rows = self.lake.spark.table(self.name).toArrow().to_pylist()
        return [(r["_change_kind"], {"id": r["id"], "v": r["v"], "at": r["at"]}) for r in rows]

    def until(self, count):
        wait_until(lambda: self.query.exception() is not None or len(self.changes()) >= count)
        assert self.query.exception() is None
        return self.changes()


def test_a_stream_of_the_log(lake, table, tmp_path):
    frame = table.read_stream("log", startup="earliest", changelog=True)
    running = Running(lake, frame, "log_stream", tmp_path / "checkpoint")
    running.until(3)
    table.upsert([row(2, "c")])
    changes = running.until(4)
    running.query.stop()
    assert replay(changes) == stored(table)


EVERY_TYPE = """
    id BIGINT NOT NULL, flag BOOLEAN, tiny TINYINT, small SMALLINT, whole INT, real FLOAT, double DOUBLE,
    price DECIMAL(20, 3), text STRING, bytes BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ,
    items ARRAY<STRUCT<name: STRING, n: INT>>, labels MAP<STRING, BIGINT>, inner STRUCT<a: INT, b: ARRAY<DATE>>
"""
EVERY_VALUE = """
    SELECT id, id % 2 = 0, 1Y, 2S, 3, 1.5F, 2.5D, 1234.567BD, 'ä', X'00FF', DATE'2024-02-29',
        TIMESTAMP'2024-01-01 12:00:00', TIMESTAMP_NTZ'2024-01-01 12:00:00',
        array(named_struct('name', 'x', 'n', 1), null), map('k', 1L),
        named_struct('a', 7, 'b', array(DATE'1970-01-01', null)) FROM range(20)
    UNION ALL SELECT 20, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
"""


@pytest.mark.parametrize("nested", [True, False], ids=["nested", "plain"])
def test_a_stream_has_every_type_and_topic_partition(lake, tmp_path, nested):
    name = f"every_type_{nested}"
    properties = {**OPTIONS, "log-store.topic": name, "log-store.partitions": 3}
    rows = lake.spark.sql(EVERY_VALUE).toDF(*parse_schema(EVERY_TYPE).names)
    rows = rows if nested else rows.drop("items", "labels", "inner")
    types = StructType([field for field in parse_schema(EVERY_TYPE) if field.name in rows.columns])
    made = lake.create_table(f"readers.{name}", types, primary_key=["id"], buckets=4, properties=properties)
    frame = made.read_stream("log", startup="earliest", changelog=True)
    assert [f.dataType for f in frame.schema][: len(types)] == [f.dataType for f in made.schema]
    running = Running(lake, frame, name, tmp_path / "checkpoint")
    made.upsert(rows)
    wait_until(lambda: running.query.exception() is not None or lake.spark.table(name).count() == 21)
    running.query.stop()
    assert running.query.exception() is None
    expected, found = made.read_log().toArrow(), lake.spark.table(name).toArrow()
    place = [("_log_partition", "ascending"), ("_log_offset", "ascending")]
    assert len(set(found["_log_partition"].to_pylist())) == 3
    assert found.sort_by(place).to_pylist() == expected.sort_by(place).to_pylist()


@pytest.mark.parametrize(("rows", "width"), [(10_500, 1), (30, 700_000)], ids=["many", "wide"])
def test_a_stream_takes_large_batches_and_small_ones(lake, table, tmp_path, rows, width):
    def large(value):
        return lake.spark.range(10, 10 + rows).selectExpr(
            "id", f"repeat('{value}', {width}) v", "null :: timestamp at"
        )

    table.upsert(large("x"))
    frame = table.read_stream("log", startup="earliest")
    seen = []
    query = frame.writeStream.foreachBatch(lambda found, _: seen.extend(found.select("id", "v").collect()))
    query = query.option("checkpointLocation", str(tmp_path)).start()

    def until(count):
        wait_until(lambda: query.exception() is not None or len(seen) >= count)
        assert query.exception() is None

    until(rows + 2)
    table.upsert([row(1, "small")])
    until(rows + 3)
    table.upsert(large("y"))
    until(2 * rows + 3)
    query.stop()
    assert [(r.id, r.v) for r in seen[:2]] == [(1, "a"), (1, "b")]
    assert sorted(r.id for r in seen[2 : rows + 2]) == list(range(10, 10 + rows))
    assert seen[rows + 2] == (1, "small")
    assert {r.v for r in seen[rows + 3 :]} == {"y" * width}
    assert len(seen) == 2 * rows + 3


def test_a_stream_of_the_table_and_then_its_log(lake, table, tmp_path):
    def frame():
        return table.read_stream("log", startup="full", changelog=True)

    seen = tmp_path / "seen"

    def keep(rows, _):
        rows.selectExpr("_change_kind", "id", "v", "_log_offset").coalesce(1).write.mode("append").json(
            str(seen)
        )

    def run(count):
        query = (
            frame().writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "c")).start()
        )
        wait_until(
            lambda: seen.exists() and lake.spark.read.schema("id bigint").json(str(seen)).count() >= count
        )
        query.stop()

    table.upsert([row(2, "x")])
    run(2)  # the two rows of the table
    table.upsert([row(2, "y"), row(3, "z")])
    run(5)
    found = lake.spark.read.schema("_change_kind string, id bigint, v string, _log_offset bigint").json(
        str(seen)
    )
    assert sorted((r._change_kind, r.id, r.v) for r in found.collect()) == [
        ("+I", 1, "b"), ("+I", 2, "x"), ("+I", 3, "z"), ("+U", 2, "y"), ("-U", 2, "x"),
    ]  # fmt: skip


def test_a_stream_of_new_rows_alone(lake, table, tmp_path):
    frame = table.read_stream("log", startup="earliest")
    assert frame.columns == table.schema.names
    query = (
        frame.writeStream.format("memory")
        .queryName("new_rows")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    wait_until(lambda: lake.spark.table("new_rows").count() >= 2)
    query.stop()
    assert sorted(r.v for r in lake.spark.table("new_rows").collect()) == ["a", "b"]


def test_a_large_commit_that_was_sent_twice_is_passed_on_once(lake, table):
    done = table.upsert(lake.spark.range(100, 2_600).selectExpr("id", "'x' v", "null :: timestamp at"))
    target = TableLog.of(table).target
    again = emissions(target, emitted.changes_of(table.root, done.version), TABLE, done.version)
    emit_all(target, again)  # as whoever finds that the writer did not get to its end
    table.upsert([row(1, "later")])
    (end,) = TableLog.of(table).end_offsets().values()
    starts = range(0, end, 700)
    pieces = [Piece(0, start, min(start + 700, end), origin=0) for start in starts]

    async def one_after_the_other():
        reader = PieceReader(target, Semantics())
        found = [change for piece in pieces for change in await reader.read([piece])]
        await reader.close()
        return found

    alone = [change for piece in pieces for change in loop.run(read_piece(target, piece, Semantics()))]
    offsets = [r._log_offset for r in table.read_log().orderBy("_log_offset").collect()]
    assert len(offsets) == 3 + 2_500 + 2
    assert [c.record.offset for c in alone] == offsets
    assert [c.record.offset for c in loop.run(one_after_the_other())] == offsets


# Flips, for all readers


def send_and_take_back(table):
    """Sends an epoch that stays and one that a flip takes back."""
    from lakekit.ingest.epochs import StreamLog

    stream = StreamLog(table, TableLog.of(table), "writer", patience=0)
    for epoch, rows in ((1, [(8, "kept", None), (1, "u", None)]), (2, [(9, "broken", None)])):
        stream.send(epoch, table.lake.spark.createDataFrame(rows, table.schema).toArrow())
    stream.flip(1)
    stream.close()


def test_a_flip_is_obeyed_with_the_guarantee_alone(lake, table, tmp_path):
    send_and_take_back(table)
    with_it, without = logged(table, guarantee=True), logged(table, guarantee=False)
    assert [(k, r["id"]) for k, r in with_it[-2:]] == [("+I", 9), ("-D", 9)]
    assert [(k, r["id"]) for k, r in without[-1:]] == [("+I", 9)]
    assert set(replay(with_it)) == {(1,), (8,)}
    assert sorted(row.id for row in table.freshest().collect()) == [1, 8]
    tailed = asyncio.run(take(table.tail("earliest", guarantee=True), len(with_it)))
    assert [(c.kind, c.row["id"]) for c in tailed] == [(k, r["id"]) for k, r in with_it]
    options = {"log-store.consistency-guarantee.enabled": "true"}
    frame = table.read_stream("log", startup="earliest", changelog=True, options=options)
    running = Running(lake, frame, "flipped", tmp_path / "checkpoint")
    assert set(replay(running.until(len(with_it)))) == {(1,), (8,)}
    running.query.stop()


def test_the_consumer_of_the_docs_page_passes_on_what_tail_does(table):
    text = (Path(__file__).parents[2] / "docs" / "log-format.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    page = {}
    exec(code, page)
    send_and_take_back(table)
    expected = logged(table, guarantee=True)
    log = TableLog.of(table).target

    async def read():
        found = []
        async for kind, row in page["changes"](log.topic, log.connection.servers, log.table):
            found.append((kind, row["id"], row["v"]))
            if len(found) == len(expected):
                break
        return found

    assert asyncio.run(asyncio.wait_for(read(), 20)) == [(k, r["id"], r["v"]) for k, r in expected]
