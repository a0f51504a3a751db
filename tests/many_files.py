"""A table whose log names many files that are not there, for what looks at the log alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from lakekit.storage.actions import CommitInfo
from lakekit.storage.file_actions import TAG_RUN
from lakekit.storage.log import open_log

if TYPE_CHECKING:
    from lakekit.lake import Lake
    from lakekit.table.table import Table

COMMITS, FILES_EACH, PARTITIONS, BUCKETS = 1000, 10, 10, 4


def make(lake: Lake, name: str) -> Table:
    """Creates a table of `COMMITS` commits, all but the first with `FILES_EACH` files, and a checkpoint."""
    table = lake.create_table(
        name,
        "day STRING, id BIGINT",
        primary_key=["day", "id"],
        partition_by=["day"],
        buckets=BUCKETS,
        properties={"compaction.auto": False},
    )
    table.upsert([{"day": "d0", "id": 1}])
    (model,) = table.snapshot().files.values()
    log = open_log(table.root)
    for version in range(2, COMMITS + 1):
        files = []
        for number in range(FILES_EACH):
            day, bucket = f"d{number * 5 % PARTITIONS + version % 5}", str(version % BUCKETS)
            low = version * 100 + number
            bounds = {"minValues": {"id": low}, "maxValues": {"id": low + 50}}
            stats = json.dumps({"numRecords": 40, "nullCount": {"id": 0}, **bounds})
            named = {
                "path": f"day={day}/_bucket={bucket}/part-{version}-{number}.parquet",
                "partition_values": {"day": day, "_bucket": bucket},
                "tags": model.tags | {TAG_RUN: f"run {version}"},
            }
            files.append(replace(model, size=1000 + number, stats=stats, **named))
        metrics = {"numInsertedRows": "400", "durationMs": "1000"}
        info = CommitInfo({"operation": "UPSERT", "operationMetrics": metrics, "engineInfo": "test"})
        if not log.write(version, [info, *files], f"commit {version}"):
            raise RuntimeError(f"version {version} is there already")
    log.checkpoint(COMMITS)  # Spark would read all commits
    return table
