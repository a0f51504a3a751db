"""Widgets of a table with 10,000 files in 1,000 commits: lists end, and figures sum up."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from lakekit import widgets
from lakekit.plot.commits import MAX_BARS
from lakekit.plot.files import MAX_TILES
from lakekit.storage.actions import CommitInfo
from lakekit.storage.file_actions import TAG_RUN
from lakekit.storage.log import open_log
from tests.widgets.conftest import below, shown, static

COMMITS, FILES_EACH, PARTITIONS = 1000, 10, 10
MOST_BYTES = 400_000
"""Of all HTML of a widget."""


@pytest.fixture(scope="module")
def large(lake):
    """A table whose log names files that are not there; what its files hold is not read here."""
    table = lake.create_table(
        "widgets.large",
        "day STRING, id BIGINT",
        primary_key=["day", "id"],
        partition_by=["day"],
        buckets=4,
        properties={"compaction.auto": False},
    )
    table.upsert([{"day": "d0", "id": 1}])
    (model,) = table.snapshot().files.values()
    log = open_log(table.root)
    for version in range(2, COMMITS + 1):
        files = []
        for number in range(FILES_EACH):
            day, bucket = f"d{number * 5 % PARTITIONS + version % 5}", str(version % 4)
            low = version * 100 + number
            bounds = {"minValues": {"id": low}, "maxValues": {"id": low + 50}}
            stats = json.dumps({"numRecords": 40, "nullCount": {"id": 0}, **bounds})
            values = {"day": day, "_bucket": bucket}
            path = f"day={day}/_bucket={bucket}/part-{version}-{number}.parquet"
            named = {
                "path": path,
                "partition_values": values,
                "tags": model.tags | {TAG_RUN: f"run {version}"},
            }
            files.append(replace(model, size=1000 + number, stats=stats, **named))
        metrics = {"numInsertedRows": "400", "durationMs": "1000"}
        info = CommitInfo({"operation": "UPSERT", "operationMetrics": metrics, "engineInfo": "test"})
        assert log.write(version, [info, *files], f"commit {version}")
    log.checkpoint(COMMITS)  # Spark would read all commits
    return table


def size(widget):
    return sum(len(w.value) for w in below(widget) if type(w).__name__ == "HTML")


def test_snapshots(large):
    widget = widgets.snapshots(large)
    assert widget.version.max == COMMITS
    assert len(widget._figure.data[0].x) <= MAX_BARS
    assert "20 of 1,001 commits shown" in static(widget).text
    assert size(widget) < MOST_BYTES


def test_manifests(large):
    widget = widgets.manifests(large)
    assert len(widget._map.data[0].ids) <= MAX_TILES + 4 * PARTITIONS
    assert len(widget.partition.options) == PARTITIONS
    assert re.search(r"200 of 2\d\d files shown", shown(widget))
    assert "20 of 40 buckets shown" in static(widget).text
    assert size(widget) < MOST_BYTES


def test_skipping(lake, large):
    widget = widgets.skipping(lake, "SELECT * FROM widgets.large WHERE day = 'd7'")
    assert "200 of 9,991 files shown" in shown(widget)
    assert "20 of 9,991 files shown" in static(widget).text
    assert size(widget) < MOST_BYTES
