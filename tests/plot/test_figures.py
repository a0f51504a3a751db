"""What the figures say, over inspection tables made by hand."""

from __future__ import annotations

import datetime as dt
import json
from types import SimpleNamespace

import pyarrow as pa
import pytest

from lakekit import plot
from lakekit.errors import InvalidOptionError, NotFoundError
from lakekit.plot.commits import MAX_BARS
from lakekit.plot.files import MAX_FILES_OF_RUNS, MAX_RUNS, MAX_TILES
from lakekit.skipping.report import FILE_SCHEMA, SkippingReport
from lakekit.table.inspect import FILES_SCHEMA, MANIFESTS_SCHEMA, SNAPSHOTS_SCHEMA

NOW = dt.datetime(2013, 2, 8, 12, tzinfo=dt.timezone.utc)
HOSTILE = "<img src=x onerror=alert(1)>"


class FakeTable:
    """A table of which only the inspection is known."""

    name = "shop.orders"

    def __init__(self, files=(), snapshots=(), manifests=()):
        self.asked = []
        self.inspect = SimpleNamespace(
            files=self._answer(files, FILES_SCHEMA),
            snapshots=self._answer(snapshots, SNAPSHOTS_SCHEMA),
            manifests=self._answer(manifests, MANIFESTS_SCHEMA),
        )

    def _answer(self, rows, schema):
        def answer(version=None):
            self.asked.append(version)
            return pa.Table.from_pylist(list(rows), schema)

        return answer


def a_file(number=0, partition="dt=1", bucket=0, level=0, run=None, keys=(0, 9), rows=100, deleted=0):
    return {
        "path": f"{partition}/_bucket={bucket}/part-{number}.parquet",
        "partition": partition,
        "partition_values": [],
        "bucket": bucket,
        "level": level,
        "run_id": None if level is None else run or f"run{number}",
        "rows": rows - deleted,
        "deleted_rows": deleted,
        "deleted_share": deleted / rows,
        "bytes": 10 * rows,
        "modified_at": NOW,
        "key_min": None if keys is None else json.dumps({"id": keys[0]}),
        "key_max": None if keys is None else json.dumps({"id": keys[1]}),
    }


def a_commit(version, operation="UPSERT", inserted=0, updated=0, deleted=0):
    return {
        "version": version,
        "committed_at": NOW,
        "operation": operation,
        "rows_inserted": inserted,
        "rows_updated": updated,
        "rows_deleted": deleted,
        "files_added": 2,
        "files_removed": 1,
        "bytes_added": 10,
        "rows": 100,
        "files": 5,
        "bytes": 1000,
        "duration_ms": 1500,
    }


def bars(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def test_snapshots_show_rows_and_files_of_each_commit():
    table = FakeTable(snapshots=[a_commit(3, inserted=7), a_commit(4, "DELETE", deleted=2)])
    figure = plot.snapshots(table, version=4)
    assert table.asked == [4]
    assert list(bars(figure, "rows inserted")[0].y) == [7, None]
    assert list(bars(figure, "rows deleted")[0].y) == [None, 2]
    assert list(bars(figure, "files removed")[0].y) == [-1, -1]
    assert list(figure.layout.xaxis.ticktext) == ["3<br>upsert", "4<br>delete"]
    assert figure.layout.yaxis.type == "log"
    assert "1.5 s" in figure.data[0].hovertext[0]


def test_many_commits_share_bars_and_no_row_is_lost():
    count = 3 * MAX_BARS + 1
    figure = plot.snapshots(FakeTable(snapshots=[a_commit(v, inserted=1) for v in range(count)]))
    shown = bars(figure, "rows inserted")[0]
    assert len(shown.x) <= MAX_BARS
    assert sum(shown.y) == count
    assert "versions 0 to 3" in shown.hovertext[0]


def test_a_commit_that_says_nothing_of_itself_is_shown():
    unknown = a_commit(1) | dict.fromkeys(("operation", "rows_inserted", "rows", "duration_ms"))
    figure = plot.snapshots(FakeTable(snapshots=[unknown]))
    assert "unknown operation" in figure.data[0].hovertext[0]


def test_manifests_show_what_each_log_file_brings():
    row = {
        "path": "_delta_log/00000000000000000010.json",
        "kind": "commit",
        "version": 10,
        "bytes": 500,
        "written_at": NOW,
        "files_added": 4,
        "files_removed": 1,
        "vectors_changed": 2,
        "rows_added": 40,
        "rows_removed": None,
        "bytes_added": 99,
        "bytes_removed": None,
        "key_min": '{"id": 1}',
        "key_max": '{"id": 9}',
    }
    figure = plot.manifests(FakeTable(manifests=[row]))
    assert list(bars(figure, "added")[0].y) == ["commit 10"]
    assert [list(bars(figure, name)[0].x) for name in ("added", "new deletion vector", "removed")] == [
        [4],
        [2],
        [-1],
    ]
    assert '{"id": 1}' in figure.data[0].hovertext[0]


def test_buckets_are_a_tree_whose_sizes_add_up():
    files = [a_file(0), a_file(1, deleted=50), a_file(2, bucket=1), a_file(3, "dt=2", level=1)]
    tree = plot.buckets(FakeTable(files)).data[0]
    sizes = dict(zip(tree.ids, tree.values, strict=True))
    parents = dict(zip(tree.ids, tree.parents, strict=True))
    assert len(sizes) == 1 + 2 + 3 + 4
    for parent in set(parents.values()) - {""}:
        assert sizes[parent] == sum(sizes[child] for child in sizes if parents[child] == parent)
    shares = dict(zip(tree.ids, tree.marker.colors, strict=True))
    assert shares["shop.orders/dt=1/bucket 0"] == 0.25


def test_many_files_become_few_tiles_and_no_byte_is_lost():
    files = [a_file(n, f"dt={n % 7}", n % 50) for n in range(10_000)]
    tree = plot.buckets(FakeTable(files)).data[0]
    sizes = dict(zip(tree.ids, tree.values, strict=True))
    assert len(sizes) <= MAX_TILES + 7 * 50
    assert sizes["shop.orders"] == 10_000 * 1000
    assert sum(s for i, s in sizes.items() if i not in set(tree.parents)) == sizes["shop.orders"]


def test_many_partitions_end_in_one_tile_of_others():
    files = [a_file(n, f"dt={n}") for n in range(MAX_TILES + 100)]
    tree = plot.buckets(FakeTable(files)).data[0]
    assert len(tree.ids) == MAX_TILES + 1
    assert sum(tree.values) == 2 * tree.values[0]


def test_levels_can_be_the_colour():
    tree = plot.buckets(
        FakeTable([a_file(0), a_file(1, level=1), a_file(2, level=None)]), colour="level"
    ).data[0]
    assert len(set(tree.marker.colors[-3:])) == 3
    with pytest.raises(InvalidOptionError, match="deleted_share or level"):
        plot.buckets(FakeTable(), colour="size")


def test_an_empty_table_has_a_map_too():
    assert list(plot.buckets(FakeTable()).data[0].ids) == ["shop.orders"]


def test_runs_of_the_busiest_bucket_are_ranges_of_keys():
    files = [
        a_file(0, bucket=1),
        a_file(1, level=1, run="base", keys=(0, 49), rows=500),
        a_file(2, level=1, run="base", keys=(50, 99), rows=500),
        a_file(3, keys=(40, 60)),
    ]
    figure = plot.sorted_runs(FakeTable(files))
    base, new = figure.data
    assert (base.name, new.name) == ("level 1", "level 0")
    assert set(base.y) == {0}
    assert set(new.y) == {1}
    assert new.base[0] == pytest.approx(40, abs=0.5)
    assert new.base[0] + new.x[0] == pytest.approx(60, abs=0.5)
    assert "bucket 0" in figure.layout.title.text
    assert figure.layout.xaxis.title.text == "key: id"


def test_a_bucket_can_be_chosen():
    files = [a_file(0), a_file(1), a_file(2, "dt=2", 3)]
    assert "dt=2 / bucket 3" in plot.sorted_runs(FakeTable(files), "dt=2", 3).layout.title.text
    with pytest.raises(NotFoundError, match="dt=9 / bucket 0"):
        plot.sorted_runs(FakeTable(files), "dt=9", 0)


def test_text_keys_are_placed_by_their_order():
    figure = plot.sorted_runs(FakeTable([a_file(0, keys=("a", "c")), a_file(1, keys=("b", HOSTILE))]))
    assert list(figure.layout.xaxis.ticktext)[1:] == ["a", "b", "c"]
    assert "<img" not in figure.to_json()


def test_files_without_bounds_or_run_are_shown():
    figure = plot.sorted_runs(FakeTable([a_file(0, level=None, keys=None), a_file(1)]))
    assert {trace.name for trace in figure.data} == {"other writers", "level 0"}


def test_a_bucket_of_many_files_is_drawn_by_runs():
    files = [a_file(n, level=1, run=f"r{n % 3}", keys=(n, n + 1)) for n in range(MAX_FILES_OF_RUNS + 1)]
    figure = plot.sorted_runs(FakeTable(files))
    assert [len(trace.x) for trace in figure.data] == [1, 1, 1]
    many = [a_file(n, keys=(n, n + 1)) for n in range(5 * MAX_RUNS)]
    assert len(plot.sorted_runs(FakeTable(many)).data) == MAX_RUNS


def report(rows):
    defaults = {"rows": 10, "bytes_skipped_by_row_groups": 0, "bytes_skipped_by_pages": 0}
    full = [defaults | {"bytes_read": 0 if row["skipped_by"] else row["bytes"]} | row for row in rows]
    return SkippingReport("shop.orders", 3, ("id = 7",), (), (1,), pa.Table.from_pylist(full, FILE_SCHEMA))


def test_skipping_shows_the_steps_and_the_buckets_that_are_read():
    rows = [
        {"path": f"dt={d}/b{b}", "partition": f"dt={d}", "bucket": b, "bytes": 100, "skipped_by": by}
        for d, b, by in [(2, 0, "bucket"), (2, 1, None), (10, 0, "partition"), (10, 1, "partition")]
    ]
    figure = plot.skipping(report(rows))
    left, heat = figure.data[0], figure.data[1]
    assert list(left.x)[:3] == [400, 200, 100]
    assert list(heat.y) == ["dt=2", "dt=10"]
    assert [list(row) for row in heat.z] == [[1, 5], [0, 0]]
    assert "1 of 4 files" in figure.layout.title.text


def test_skipping_of_an_empty_table():
    assert "0 of 0 files" in plot.skipping(report([])).layout.title.text


@pytest.mark.parametrize(
    "draw",
    [
        lambda bad: plot.buckets(FakeTable([a_file(0, bad)])),
        lambda bad: plot.sorted_runs(FakeTable([a_file(0, bad, keys=(bad, bad))])),
        lambda bad: plot.snapshots(FakeTable(snapshots=[a_commit(1, bad)])),
        lambda bad: plot.skipping(
            report([{"path": bad, "partition": bad, "bucket": 0, "bytes": 1, "skipped_by": None}])
        ),
    ],
)
def test_hostile_names_are_only_text(draw):
    texts = []

    def collect(value):
        if isinstance(value, dict):
            for key, item in value.items():
                # Identities are not shown.
                if key not in ("ids", "parents"):
                    collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)
        elif isinstance(value, str):
            texts.append(value)

    collect(json.loads(draw(HOSTILE).to_json()))
    assert not [text for text in texts if "<img" in text.lower()]
    assert [text for text in texts if "img src" in text]
