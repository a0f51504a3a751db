"""Batch writes go to both stores of a table, with true row kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakekit import InvalidOptionError, LogStoreError
from lakekit.table.log import TableLog

from .replay import logged, replay, stored

LOG = {"log-store.enabled": True, "log-store.address": "embedded"}


@pytest.fixture(scope="module", autouse=True)
def database(lake):
    lake.create_database("logs")
    yield
    lake.drop_database("logs", cascade=True)


@pytest.fixture
def make(lake):
    made = []

    def create(name, schema="id BIGINT NOT NULL, v STRING", key=("id",), **options):
        properties = {
            **LOG,
            "log-store.topic": name,
            "compaction.auto": False,
            **options.pop("properties", {}),
        }
        table = lake.create_table(f"logs.{name}", schema, primary_key=key, properties=properties, **options)
        made.append(table)
        return table

    yield create
    for table in made:
        lake.drop_table(str(table.name), if_exists=True)


def kinds(table):
    return sorted((kind, row["id"], row["v"]) for kind, row in logged(table))


def test_every_kind_of_write_is_logged_with_its_old_rows(lake, make):
    table = make("every", buckets=3)
    table.upsert([{"id": i, "v": "a"} for i in range(4)])
    assert kinds(table) == [("+I", i, "a") for i in range(4)]
    table.upsert([{"id": 1, "v": "b"}, {"id": 9, "v": "b"}])
    table.delete([{"id": 2}, {"id": 77}])
    lake.sql("UPDATE logs.every SET v = 'c' WHERE id = 3")
    lake.sql(
        "MERGE INTO logs.every t USING (SELECT * FROM VALUES (0L, 'm'), (5L, 'm') s(id, v)) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )
    assert kinds(table) == sorted(
        [("+I", i, "a") for i in range(4)]
        + [("-U", 1, "a"), ("+U", 1, "b"), ("+I", 9, "b"), ("-D", 2, "a"), ("-U", 3, "a"), ("+U", 3, "c")]
        + [("-D", 0, "a"), ("+I", 5, "m")]
    )
    assert replay(logged(table)) == stored(table)


def test_the_log_says_what_the_change_feed_says(lake, make):
    table = make(
        "feed", "id BIGINT NOT NULL, day DATE NOT NULL, v STRING", ("id", "day"), partition_by=["day"]
    )
    frame = lake.spark.range(50).selectExpr(
        "id", "date_add(date'2024-01-01', cast(id % 3 as int)) day", "'a' v"
    )
    table.upsert(frame)
    table.upsert(frame.where("id % 2 = 0").selectExpr("id", "day", "'b' v"))
    table.compact()
    table.overwrite(frame.where("id < 9"), partitions="dynamic")
    fed = table.changes().toArrow().to_pylist()
    expected = sorted((r["_change_kind"], r["id"], str(r["day"]), r["v"]) for r in fed)
    assert sorted((k, r["id"], str(r["day"]), r["v"]) for k, r in logged(table)) == expected


def test_many_rows_are_sent_by_spark(lake, make):
    table = make("many", buckets=2)
    table.upsert(lake.spark.range(30_000).selectExpr("id", "'a' v"))
    table.upsert(lake.spark.range(10_000, 40_000).selectExpr("id", "'b' v"))
    changes = logged(table)
    assert len(changes) == 30_000 + 2 * 20_000 + 10_000
    assert replay(changes) == stored(table)


def test_what_other_writers_did_is_logged_with_the_next_write(lake, make):
    table = make("foreign")
    table.upsert([{"id": i, "v": "a"} for i in range(5)])
    lake.spark.sql(f"DELETE FROM delta.`{table.root}` WHERE id < 2")  # Delta's own
    table.upsert([{"id": 9, "v": "b"}])
    assert [c for c in kinds(table) if c[0] == "-D"] == [("-D", 0, "a"), ("-D", 1, "a")]
    assert replay(logged(table)) == stored(table)


def test_a_log_that_fails_after_the_commit_is_completed_by_the_next_write(make, monkeypatch):
    table = make("completed")
    table.upsert([{"id": 1, "v": "a"}])
    with monkeypatch.context() as broken:
        broken.setattr(TableLog, "_send", lambda *_: (_ for _ in ()).throw(LogStoreError("It is away.")))
        with pytest.raises(
            LogStoreError, match=r"in the table as version 2.*It is away.*next write completes"
        ):
            table.upsert([{"id": 1, "v": "b"}])
    assert table.get(id=1)["v"] == "b"
    assert replay(logged(table))[1,]["v"] == "a"
    table.upsert([{"id": 2, "v": "c"}])
    assert replay(logged(table)) == stored(table)


def test_changes_that_are_sent_twice_are_read_once(make):
    table = make("twice")
    table.upsert([{"id": 1, "v": "a"}])
    table.upsert([{"id": 1, "v": "b"}])
    Path(table.root, "_lake_log", "emitted.json").unlink()
    table.upsert([{"id": 1, "v": "c"}])
    assert [(kind, row["v"]) for kind, row in logged(table)] == [
        ("+I", "a"), ("-U", "a"), ("+U", "b"), ("-U", "b"), ("+U", "c"),
    ]  # fmt: skip
    starts = {0: 4}  # a reader that begins between the two
    assert [(k, r["v"]) for k, r in logged(table, offsets=starts)][-2:] == [("-U", "b"), ("+U", "c")]


@pytest.mark.parametrize("mode", ["auto", "file,log"])
def test_emit_modes_with_both_stores(make, mode):
    table = make(f"both_{mode.replace(',', '_')}", properties={"emit.mode": mode})
    table.upsert([{"id": 1, "v": "a"}])
    assert kinds(table) == [("+I", 1, "a")]
    assert table.to_df().count() == 1


def test_emit_mode_file_leaves_the_log_alone(lake, make):
    table = make("only_file")
    table.emitting("file").upsert([{"id": 1, "v": "a"}])
    lake.sql("INSERT INTO logs.only_file /*+ OPTIONS('arctic.emit.mode'='file') */ VALUES (2, 'a')")
    table.upsert([{"id": 3, "v": "a"}])
    assert kinds(table) == [("+I", 3, "a")]
    assert table.to_df().count() == 3


def test_emit_mode_log_leaves_the_files_alone(lake, make):
    table = make("only_log")
    table.upsert([{"id": 1, "v": "a"}, {"id": 2, "v": "a"}])
    row = lake.sql(
        "INSERT INTO logs.only_log /*+ OPTIONS('arctic.emit.mode'='log') */ VALUES (1, 'b'), (3, 'b')"
    ).collect()[0]
    assert (row.version, row.rows_inserted, row.rows_updated) == (table.version, 1, 1)
    table.emitting("log").delete([{"id": 2}])
    assert table.to_df().count() == 2
    assert [r.id for r in table.freshest().orderBy("id").collect()] == [1, 3]
    assert kinds(table)[-1] == ("-U", 1, "a")
    with pytest.raises(InvalidOptionError, match=r"emit\.mode"):
        table.emitting("log").overwrite([{"id": 1, "v": "x"}])


def test_a_row_that_no_record_holds_changes_nothing(make):
    table = make("large", "id BIGINT NOT NULL, v STRING, l ARRAY<STRING>")
    table.upsert([{"id": 1, "v": "a", "l": None}])
    before = table.version
    for row in ({"id": 2, "v": "x" * 1_100_000, "l": None}, {"id": 2, "v": "", "l": ["y" * 1000] * 1200}):
        with pytest.raises(
            LogStoreError, match=r"A row of 1,\d\d\d,\d\d\d bytes does not fit into topic 'large'"
        ):
            table.upsert([row])
    # as many bytes in all, but in rows that are small enough
    table.upsert([{"id": i, "v": "x" * 100_000, "l": None} for i in range(10, 25)])
    assert table.version == before + 1
    assert len(replay([(k, {"id": r["id"]}) for k, r in logged(table)])) == 16
    table.emitting("file").upsert([{"id": 2, "v": "x" * 1_100_000, "l": None}])


def test_bytes_that_are_no_text_are_not_sent(lake, make):
    table = make("bytes")
    rows = lake.spark.sql("SELECT 1L id, cast(X'41FF' AS STRING) v")
    with pytest.raises(LogStoreError, match="Column 'v' holds text that is not UTF-8"):
        table.emitting("log").upsert(rows)
    assert logged(table) == []
    # Plain Spark may have written them; the log has what there is of them.
    rows.write.format("delta").mode("append").save(table.root)
    table.upsert([{"id": 1, "v": "b"}])
    assert kinds(table) == [("+I", 1, "A\ufffd"), ("+U", 1, "b"), ("-U", 1, "A\ufffd")]


def test_a_kafka_that_is_not_there_changes_nothing(make):
    table = make("nowhere", properties={"log-store.address": "127.0.0.1:9"})
    with pytest.raises(LogStoreError, match=r"127\.0\.0\.1:9 cannot be reached"):
        table.upsert([{"id": 1, "v": "a"}])
    assert table.version == 0


def test_a_topic_of_somebody_else_is_refused(lake, make):
    from aiokafka import AIOKafkaProducer

    from lakekit.logstore import loop
    from lakekit.logstore.topic import ensure_topic

    table = make("taken")
    connection = lake.log_clients.connection("embedded")

    async def occupy():
        await ensure_topic(connection, "taken", 1)
        async with AIOKafkaProducer(bootstrap_servers=connection.servers) as producer:
            await producer.send_and_wait("taken", b"theirs")

    loop.run(occupy())
    with pytest.raises(LogStoreError, match=r"Record 0 in partition 0 of topic 'taken' is not of this log"):
        table.upsert([{"id": 1, "v": "a"}])
    assert table.version == 0


def test_a_log_that_is_turned_on_later_begins_there(lake, make):
    table = make("later", properties={"log-store.enabled": False})
    table.upsert([{"id": 1, "v": "a"}])
    lake.sql("ALTER TABLE logs.later SET TBLPROPERTIES ('log-store.enabled' = 'true')")
    table.upsert([{"id": 1, "v": "b"}])
    assert kinds(table) == [("+U", 1, "b"), ("-U", 1, "a")]


def test_new_columns_are_null_in_older_records(make):
    table = make("evolved")
    table.upsert([{"id": 1, "v": "a"}])
    table.add_columns("note STRING")
    table.upsert([{"id": 1, "v": "b", "note": "n"}])
    assert [(kind, row["note"]) for kind, row in logged(table)] == [("+I", None), ("-U", None), ("+U", "n")]


def test_append_tables_have_logs_too(lake, make):
    table = make("plain", key=())
    table.upsert([{"id": 1, "v": "a"}, {"id": 1, "v": "a"}])
    lake.sql("INSERT INTO logs.plain VALUES (2, 'b')")
    table.delete("id = 1")
    assert kinds(table) == [("+I", 1, "a")] * 2 + [("+I", 2, "b")] + [("-D", 1, "a")] * 2
    with pytest.raises(InvalidOptionError, match=r"emit\.mode"):
        table.emitting("log").upsert([{"id": 3, "v": "c"}])


def test_two_tables_may_share_a_topic(make):
    one, other = make("shared"), make("shared2", properties={"log-store.topic": "shared"})
    one.upsert([{"id": 1, "v": "one"}])
    other.upsert([{"id": 1, "v": "other"}])
    assert kinds(one) == [("+I", 1, "one")]
    assert kinds(other) == [("+I", 1, "other")]


def test_a_topic_may_get_more_partitions(lake, make):
    from aiokafka.admin import AIOKafkaAdminClient, NewPartitions

    from lakekit.logstore import loop

    table = make("grown", buckets=4, properties={"log-store.partitions": 2})
    table.upsert([{"id": i, "v": "a"} for i in range(20)])

    async def grow():
        admin = AIOKafkaAdminClient(bootstrap_servers=TableLog.of(table).target.connection.servers)
        await admin.start()
        await admin.create_partitions({"grown": NewPartitions(5)})
        await admin.close()

    loop.run(grow())
    lake.log_clients._topics.clear()
    table.upsert([{"id": i, "v": "b"} for i in range(30)])
    assert TableLog.of(table).target.partitions == 2
    assert replay(logged(table)) == stored(table)
