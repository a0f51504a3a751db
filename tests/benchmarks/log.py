"""The LogStore measured: ``python -m tests.benchmarks.log``.

*Latency*: a source makes rows by the clock, each of which holds the moment it was due. They are streamed into a table
that commits to its files every 10 s, and read from its log by `tail()` and by a stream of Spark; latency is the time
from a row's due moment until the reader has it. *Throughput*: the same batch upserted into a table with a log, into
one without, and sent as JSON by Spark's own Kafka sink, in one run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

import lakekit
from lakekit.session import jars, versions
from lakekit.table.log import TableLog

from .report import replace_between
from .run import HERE, Settings, machine

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakekit.lake import Lake
    from lakekit.table.table import Table

BEGIN, END = "<!-- log: written by python -m tests.benchmarks.log -->", "<!-- end of log -->"
SCHEMA = "id BIGINT NOT NULL, due BIGINT, name STRING, a BIGINT, b BIGINT, c DOUBLE"
OPTIONS = {"log-store.enabled": True, "log-store.address": "embedded"}


class Clock(DataSource):
    """Makes `rate` rows a second; row i is due i / rate seconds after the start."""

    @classmethod
    def name(cls) -> str:
        """The name of the source."""
        return "clock"

    def schema(self) -> str:
        """The columns of the rows."""
        return "id BIGINT, due BIGINT, name STRING, a BIGINT, b BIGINT, c DOUBLE"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader."""
        return ClockReader(self.options)


class Rows(InputPartition):
    """Numbers of rows."""

    def __init__(self, start: int, stop: int) -> None:
        self.start, self.stop = start, stop


class ClockReader(DataSourceStreamReader):
    """Reads the rows that are due."""

    def __init__(self, options: dict[str, str]) -> None:
        self.begin, self.rate = float(options["begin"]), int(options["rate"])
        self.limit, self.keys = int(options["limit"]), int(options["keys"])

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """The first row."""
        return {"row": 0}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802
        """The row that is due next."""
        return {"row": min(self.limit, max(0, int((time.time() - self.begin) * self.rate)))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """All in one."""
        return [Rows(start["row"], end["row"])] if start["row"] < end["row"] else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a range of numbers."""
        numbers = range(partition.start, partition.stop)
        yield pa.RecordBatch.from_pydict(
            {
                "id": [number * 7919 % self.keys for number in numbers],
                "due": [int((self.begin + number / self.rate) * 1e6) for number in numbers],
                "name": [f"name of row {number}" for number in numbers],
                "a": list(numbers),
                "b": [number * 3 for number in numbers],
                "c": [number / 7 for number in numbers],
            }
        )


def main(arguments: list[str] | None = None) -> int:
    """Measures, prints a table and writes it into README.md."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.log", description=__doc__)
    parser.add_argument("--rates", default="100,1000,10000", help="rows a second")
    parser.add_argument("--seconds", type=int, default=40, help="of each rate; the first quarter warms up")
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
            lake.spark.dataSource.register(Clock)
            rates = [int(rate) for rate in options.rates.split(",")]
            results: dict[str, Any] = {
                "machine": machine(settings),
                "keys": options.keys,
                "batch": options.batch,
            }
            results["latency"] = [latency(lake, rate, options.seconds, options.keys) for rate in rates]
            results["throughput"] = throughput(lake, options.batch)
    out: Path = options.out or HERE / "results" / "log.json"
    out.write_text(json.dumps(results, indent=1) + "\n")
    text = report(results)
    print(text)
    if options.out is None:
        replace_between(HERE / "README.md", BEGIN, END, text)
    return 0


def latency(lake: Lake, rate: int, seconds: int, keys: int) -> dict[str, Any]:
    """Measures one rate; figures are in milliseconds."""
    table = lake.create_table(
        f"latency_{rate}",
        SCHEMA,
        primary_key=["id"],
        properties={**OPTIONS, "log-store.topic": f"latency.{rate}"},
    )
    first = lake.spark.range(keys).selectExpr("id", "0L due", "'' name", "0L a", "0L b", "0D c")
    table.emitting("file").upsert(first)
    by_spark: list[tuple[int, float]] = []

    def keep(rows: Any, _: int) -> None:
        now, dues = time.time(), rows.select("due").toArrow().column("due").to_pylist()
        by_spark.extend((due, now) for due in dues)

    with tempfile.TemporaryDirectory() as checkpoint:
        stream = table.read_stream("log").writeStream.foreachBatch(keep)
        query = stream.option("checkpointLocation", checkpoint).start()
        begin = time.time() + 15  # both streams are at work by then
        clock = lake.spark.readStream.format("clock")
        options = {"begin": begin, "rate": rate, "limit": rate * seconds, "keys": keys}
        rows = clock.options(**options).load()
        by_tail: list[tuple[int, float]] = []
        tailing = threading.Thread(target=lambda: asyncio.run(_tail(table, by_tail, rate * seconds)))
        tailing.start()
        ingestion = table.write_stream(rows, interval=10)
        tailing.join()
        deadline = time.monotonic() + 30
        while len(by_spark) < rate * seconds and time.monotonic() < deadline:
            time.sleep(0.1)
        ingestion.stop()
        query.stop()
    status = ingestion.status
    return {
        "rate": rate,
        "tail": _percentiles(by_tail, begin + seconds / 4),
        "spark": _percentiles(by_spark, begin + seconds / 4),
        "received": [len(by_tail), len(by_spark)],
        "ack": median(status.log_latency_ms),
        "commits": [commit.duration_ms for commit in status.commits],
    }


async def _tail(table: Table, received: list[tuple[int, float]], wanted: int) -> None:
    async with table.tail("latest") as tail:
        async for change in tail:
            if change.kind in ("+I", "+U"):
                received.append((change.row["due"], time.time()))
                if len(received) == wanted:
                    return


def _percentiles(received: Sequence[tuple[int, float]], after: float) -> dict[str, float]:
    late = sorted((now - due / 1e6) * 1000 for due, now in received if due / 1e6 >= after)
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
        f"{place['processor']}, {size}, {place['system']}. Readers and ingestion share one Spark and one Python.",
        "",
        f"Latency from a row's due moment, updates of {keys:,} keys, a commit to the files every 10 s:",
        "",
        "| rows/s | `tail()` p50 | p99 | Spark stream p50 | p99 | commits to the files, median |",
        "| --: | --: | --: | --: | --: | --: |",
    ]
    for one in results["latency"]:
        figures = [
            one["tail"].get("p50"),
            one["tail"].get("p99"),
            one["spark"].get("p50"),
            one["spark"].get("p99"),
        ]
        shown = [f"{value:,.0f} ms" if value is not None else "" for value in figures]
        commits = f"{median(one['commits']):,.0f} ms" if one["commits"] else ""
        lines.append(f"| {one['rate']:,} | {' | '.join(shown)} | {commits} |")
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


if __name__ == "__main__":
    sys.exit(main())
