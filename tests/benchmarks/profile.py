"""Where the seconds of an upsert go: ``python -m tests.benchmarks.profile``.

The upsert is cut off after each of its parts, from the front; the difference of two cuts is what a part takes. All
cuts run warm, each several times, on one table and one batch; medians are shown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import lakekit
from lakekit.filestore.layout import BucketLayout
from lakekit.table.write import in_buckets

from .data import prepare
from .run import HERE, Settings
from .workload import Dataset, parse_rows, short

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.table.table import Table

_WITHOUT_COMPACTION = {"compaction.auto": "false"}


def main(arguments: list[str] | None = None) -> int:
    """Prints a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.profile", description=__doc__)
    parser.add_argument("--keys", type=parse_rows, default="2M", help="rows in the table")
    parser.add_argument("--rows", type=parse_rows, default="1M", help="rows of the batch")
    parser.add_argument("--kind", choices=("bigint", "uuid"), default="bigint")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--work", type=Path, default=HERE / "work")
    options = parser.parse_args(arguments)
    dataset = Dataset(options.keys, options.keys, (options.rows,) * (options.repeats + 1), options.kind)
    manifest = prepare(dataset, options.work / "data")
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        place = Path(folder)
        config = Settings(2, "4g", options.work, keep=False).spark(place)
        lake = lakekit.connect(warehouse=str(place / "warehouse"), config=config)
        table = lake.create_table(
            "race", dataset.schema_sql, primary_key=["k"], properties=_WITHOUT_COMPACTION
        )
        table.upsert(lake.spark.read.parquet(manifest.load))
        found: dict[str, list[float]] = {}
        for number, changes in enumerate(manifest.batches):
            for part, seconds in _cuts(table, lake.spark.read.parquet(changes.path)):
                if number:  # the first warms up
                    found.setdefault(part, []).append(seconds)
        lake.stop()
    print(f"Upsert of {short(options.rows)} rows into {short(options.keys)}, {options.kind} key:\n")
    print(_markdown({part: median(seconds) for part, seconds in found.items()}))
    return 0


def _cuts(table: Table, rows: DataFrame) -> Iterator[tuple[str, float]]:
    """Yields the seconds up to the end of each part."""
    layout = BucketLayout.of(table.root, table.snapshot(), table.options.target_file_size)
    ordered = in_buckets(rows, layout)
    yield "Spark reads the Parquet files", _timed(lambda: _discard(rows))
    yield "shuffle, sort", _timed(lambda: _discard(ordered))
    yield "rows to Arrow, to Python", _timed(lambda: ordered.mapInArrow(_count, "rows bigint").collect())
    yield "probe, write Parquet, commit", _timed(lambda: table.upsert(rows))


def _count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})


def _discard(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _markdown(ends: dict[str, float]) -> str:
    lines = ["| part | s | up to here, s |", "|---|--:|--:|"]
    before = 0.0
    for part, end in ends.items():
        lines.append(f"| {part} | {end - before:.2f} | {end:.2f} |")
        before = end
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
