"""The LogStore measured: ``python -m tests.benchmarks.log``.

*Latency*: a process tells a topic each 10 ms which rows are due, each of which holds that moment. Spark's Kafka source
streams them into a table that commits to its files every 10 s, and `tail()` or a stream of Spark reads its log; latency
is the time from a row's due moment until the reader has it. *Throughput*: the same batch upserted into a table with a
log, into
one without, and sent as JSON by Spark's own Kafka sink, in one run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

import lakekit
from lakekit.session import jars, versions
from lakekit.table.log import TableLog

from .report import publish
from .run import HERE, Settings, machine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.lake import Lake
    from lakekit.table.table import Table

BEGIN, END = "<!-- log: written by python -m tests.benchmarks.log -->", "<!-- end of log -->"
SCHEMA = "id BIGINT NOT NULL, due BIGINT, name STRING, a BIGINT, b BIGINT, c DOUBLE"
OPTIONS = {"log-store.enabled": True, "log-store.address": "embedded"}


FEED_TICK_S = 0.01
WARM_UP_S = 15
"""Until the first row is due: both streams are at work by then."""
PATIENCE_S = 30
COLD_S, WARM_S = 30, 60
"""Rows due in the first 30 s and those due after 60 s have figures of their own: a JVM compiles what it often does."""


def feed(servers: str, topic: str, begin: float, rate: int, seconds: int) -> None:
    """Tells a topic, in a process of its own, which rows are due: row i is due i / rate seconds after `begin`."""

    async def work() -> None:
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            sent = 0
            while sent < rate * seconds:
                await asyncio.sleep(FEED_TICK_S)
                due = min(rate * seconds, max(0, int((time.time() - begin) * rate)))
                if due > sent:
                    await producer.send_and_wait(topic, f"{sent},{due - 1}".encode())
                    sent = due

    asyncio.run(work())


def main(arguments: list[str] | None = None) -> int:
    """Measures, prints a table and writes it into README.md."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.log", description=__doc__)
    parser.add_argument("--rates", default="100,1000,10000", help="rows a second")
    parser.add_argument("--seconds", type=int, default=90, help="of each rate, more than 60")
    parser.add_argument("--keys", type=int, default=1_000_000, help="rows in the table before")
    parser.add_argument("--batch", type=int, default=500_000, help="rows of the batch for throughput")
    parser.add_argument("--work", type=Path, default=HERE / "work")
    parser.add_argument("--out", type=Path, help="raw figures as JSON; README.md is written only without it")
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        settings = Settings(2, "4g", options.work, keep=False)
        kafka = jars.not_in_spark(
            jars.resolve([f"org.apache.spark:spark-sql-kafka-0-10_{versions.SCALA}:4.0.0"])
        )
        config = settings.spark(Path(folder)) | {"spark.jars": ",".join(map(str, kafka))}
        with lakekit.connect(warehouse=f"{folder}/warehouse", config=config) as lake:
            rates = [int(rate) for rate in options.rates.split(",")]
            results: dict[str, Any] = {
                "machine": machine(settings),
                "keys": options.keys,
                "batch": options.batch,
            }
            results["latency"] = [
                latency(lake, rate, options.seconds, options.keys, reader)
                for rate in rates
                for reader in ("tail", "spark")
            ]
            results["throughput"] = throughput(lake, options.batch)
    publish(results, report(results), "log.json", (BEGIN, END), options.out)
    return 0


def latency(lake: Lake, rate: int, seconds: int, keys: int, reader: str) -> dict[str, Any]:
    """Measures one rate with one reader at work, "tail" or "spark"; figures are in milliseconds."""
    name = f"{reader}_{rate}"
    properties = {**OPTIONS, "log-store.topic": name}
    table = lake.create_table(name, SCHEMA, primary_key=["id"], properties=properties)
    first = lake.spark.range(keys).selectExpr("id", "0L due", "'' name", "0L a", "0L b", "0D c")
    table.emitting("file").upsert(first)
    servers = TableLog.of(table).target.connection.servers
    asyncio.run(_topic(servers, f"feed.{name}"))
    begin = time.time() + WARM_UP_S
    ingestion = table.write_stream(_source(lake, servers, name, begin, rate, keys), interval=10)
    received: list[tuple[int, float]] = []
    arguments = (servers, f"feed.{name}", begin, rate, seconds)
    source = multiprocessing.get_context("spawn").Process(target=feed, args=arguments)
    source.start()
    try:
        deadline = begin + seconds + PATIENCE_S
        (_read_tail if reader == "tail" else _read_stream)(table, received, rate * seconds, deadline)
    finally:
        ingestion.stop()
        source.join()
    status = ingestion.status
    return {
        "rate": rate,
        "reader": reader,
        "cold": _percentiles(received, begin, begin + COLD_S),
        "warm": _percentiles(received, begin + WARM_S, begin + seconds),
        "received": len(received),
        "sent": median(status.log_latency_ms),
        "commits": [commit.duration_ms for commit in status.commits],
    }


async def _topic(servers: str, name: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, 1, 1)])
    finally:
        await admin.close()


def _source(lake: Lake, servers: str, name: str, begin: float, rate: int, keys: int) -> DataFrame:
    """Returns the rows that are due, as a stream; a record of the topic names a range of them."""
    kafka = lake.spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    ranges = kafka.option("subscribe", f"feed.{name}").option("startingOffsets", "earliest").load()
    numbers = ranges.selectExpr("split(cast(value as string), ',') r").selectExpr(
        "explode(sequence(cast(r[0] as bigint), cast(r[1] as bigint))) n"
    )
    return numbers.selectExpr(
        f"n * 7919 % {keys} id",
        f"cast({begin * 1e6:.0f} + n * 1000000D / {rate} as bigint) due",
        "concat('name of row ', n) name",
        "n a",
        "n * 3 b",
        "n / 7 c",
    )


def _read_tail(table: Table, received: list[tuple[int, float]], wanted: int, deadline: float) -> None:
    async def work() -> None:
        async with table.tail("latest") as tail:
            async for change in tail:
                if change.kind in ("+I", "+U"):
                    received.append((change.row["due"], time.time()))
                    if len(received) == wanted:
                        return

    with contextlib.suppress(TimeoutError):
        asyncio.run(asyncio.wait_for(work(), deadline - time.time()))


def _read_stream(table: Table, received: list[tuple[int, float]], wanted: int, deadline: float) -> None:
    def keep(rows: Any, _: int) -> None:
        found = rows.select("due").toArrow().column("due").to_pylist()
        now = time.time()
        received.extend((due, now) for due in found)

    with tempfile.TemporaryDirectory() as checkpoint:
        stream = table.read_stream("log").writeStream.foreachBatch(keep)
        query = stream.option("checkpointLocation", checkpoint).start()
        while len(received) < wanted and time.time() < deadline and query.isActive:
            time.sleep(0.1)
        query.stop()
        if error := query.exception():
            raise error


def _percentiles(received: Sequence[tuple[int, float]], after: float, until: float) -> dict[str, float]:
    late = sorted((now - due / 1e6) * 1000 for due, now in received if after <= due / 1e6 < until)
    return {f"p{p}": late[min(len(late) - 1, len(late) * p // 100)] for p in (50, 99)} if late else {}


def throughput(lake: Lake, rows: int) -> dict[str, float]:
    """Measures one batch, warm, in rows a second; half of its keys are in the table."""
    batch = lake.spark.range(rows).selectExpr(
        "id", "id due", "concat('name of row ', id) name", "id * 2 a", "id * 3 b", "id / 7 c"
    )
    batch.write.mode("overwrite").parquet(f"{lake.warehouse}/.batch")
    batch = lake.spark.read.parquet(f"{lake.warehouse}/.batch")
    found: dict[str, list[float]] = {"both stores": [], "files alone": [], "Spark's Kafka sink": []}
    tables = {}
    for name, mode in (("both stores", "auto"), ("files alone", "file")):
        properties = {**OPTIONS, "log-store.topic": f"throughput.{mode}", "compaction.auto": False}
        made = lake.create_table(
            f"throughput_{mode}", SCHEMA, primary_key=["id"], buckets=2, properties=properties
        )
        made.emitting("file").upsert(batch.where("id % 2 = 0"))
        tables[name] = made.emitting(mode)
    servers = TableLog.of(tables["both stores"]).target.connection.servers
    sink = batch.selectExpr("cast(id as string) key", "to_json(struct(*)) value").write.format("kafka")
    sink = sink.option("kafka.bootstrap.servers", servers).option("topic", "throughput.auto")
    for turn in range(4):
        for name, table in tables.items():
            started = time.monotonic()
            table.upsert(batch)
            found[name].append(time.monotonic() - started)
        started = time.monotonic()
        sink.save()
        found["Spark's Kafka sink"].append(time.monotonic() - started)
        del turn
    return {name: rows / median(seconds[1:]) for name, seconds in found.items()}


def report(results: dict[str, Any]) -> str:
    """The figures as Markdown."""
    keys, batch, place = results["keys"], results["batch"], results["machine"]
    size = f"{place['cores']} cores, {place['memory_bytes'] / 2**30:.0f} GiB"
    lines = [
        f"{place['processor']}, {size}, {place['system']}. Reader and ingestion share one Spark and one Python.",
        "",
        f"Latency from a row's due moment, updates of {keys:,} keys, a commit to the files every 10 s:",
        "",
        "| rows/s | reader | p50, first 30 s | p99 | p50, after 60 s | p99 | micro-batch to Kafka | commit to files |",
        "| --: | --- | --: | --: | --: | --: | --: | --: |",
    ]
    for one in results["latency"]:
        reader = "`tail()`" if one["reader"] == "tail" else "Spark stream"
        commits = median(one["commits"]) if one["commits"] else None
        found = [one[when].get(p) for when in ("cold", "warm") for p in ("p50", "p99")]
        shown = [_ms(value) for value in (*found, one["sent"], commits)]
        lines.append(f"| {one['rate']:,} | {reader} | {' | '.join(shown)} |")
    lines += [
        "",
        f"Throughput of an upsert of {batch:,} rows, warm medians:",
        "",
        "| way | rows/s | of files alone |",
    ]
    lines.append("| --- | --: | --: |")
    alone = results["throughput"]["files alone"]
    lines += [
        f"| {name} | {each:,.0f} | {each / alone:.2f} |" for name, each in results["throughput"].items()
    ]
    return "\n".join(lines)


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f} ms"


if __name__ == "__main__":
    sys.exit(main())
