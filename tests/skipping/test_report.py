"""The report: its sums add up, and it says the same as the files."""

from __future__ import annotations

import os
import pickle
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakekit.skipping.predicate import And, Anything, Comparison, In, all_of
from lakekit.skipping.report import FILE_SCHEMA, STEP_SCHEMA, STEPS, explain
from lakekit.storage.actions import AddFile
from lakekit.storage.murmur3 import bucket_of
from lakekit.storage.stats import collect_stats
from lakekit.units import format_bytes
from tests.skipping.data import KINDS, random_predicate
from tests.table.lakes import DiskTable


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> DiskTable:
    """Two days, two buckets, in each a file of 1,000 rows in row groups of 250 and pages of 50."""
    kinds = {"id": "long", "day": "string", "n": "long"}
    made = DiskTable(tmp_path_factory.mktemp("report") / "t", kinds, ["id", "day"], ["day"])
    for day in ("mon", "tue"):
        ids = pa.array(range(2000))
        buckets = bucket_of([ids, pa.array([day] * 2000)], 2)
        for bucket in (0, 1):
            mine = ids.filter(pa.array(buckets == bucket))
            rows = pa.table({"id": mine, "n": pa.array(range(len(mine)))})
            path = f"{day}-{bucket}.parquet"
            layout = {
                "data_page_size": 1,
                "write_batch_size": 50,
                "use_dictionary": False,
                "write_page_index": True,
            }
            pq.write_table(rows, f"{made.root}/{path}", row_group_size=250, **layout)
            partition = {"day": day, "_bucket": str(bucket)}
            size = os.path.getsize(f"{made.root}/{path}")
            made.commit([AddFile(path, partition, size, 0, True, collect_stats(rows))], "WRITE")
    return made


def report_of(table, predicate, **how):
    return explain(table.root, "shop.t", predicate, **how)


def check_sums(report):
    steps = {step.step: step for step in report.steps}
    assert list(steps) == ["total", *STEPS, "read"]
    assert steps["total"].files_left == report.files.num_rows
    assert steps["total"].bytes_left == sum(report.files["bytes"].to_pylist())
    for before, after in zip(report.steps, report.steps[1:], strict=False):
        assert after.files_left == before.files_left - after.files_skipped
        assert after.bytes_left == before.bytes_left - after.bytes_skipped
    assert report.read.bytes_left == sum(report.files["bytes_read"].to_pylist())
    assert report.read.files_left == report.files["skipped_by"].null_count
    assert report.files.schema == FILE_SCHEMA
    assert report.to_arrow().schema == STEP_SCHEMA
    assert report.to_arrow()["step"].to_pylist() == list(steps)


def test_each_step_skips(table):
    report = report_of(table, And((Comparison("day", "=", "mon"), Comparison("id", "=", 700))))
    check_sums(report)
    steps = {step.step: step for step in report.steps}
    assert steps["partition"].files_skipped == 2
    assert steps["bucket"].files_skipped == 1
    assert steps["page index"].pages_skipped == 8
    row = next(row for row in report.files.to_pylist() if row["skipped_by"] is None)
    assert row["rows_read"] == 50
    assert steps["row groups"].row_groups_skipped == row["row_groups_skipped"] == row["row_groups"] - 1
    assert (row["pages"], row["pages_skipped"]) == (10, 8)
    assert 0 < row["bytes_read"] < row["bytes"] / 2
    assert len(report.buckets) == 1


def test_statistics_rule_out_files(table):
    report = report_of(table, Comparison("id", ">", 5000))
    check_sums(report)
    assert set(report.files["skipped_by"].to_pylist()) == {"file statistics"}
    assert report.read.bytes_left == 0


def test_row_groups_and_pages_rule_out_whole_files(table):
    everywhere = report_of(table, And((Comparison("n", "<", 10), Comparison("id", ">", 1500))))
    check_sums(everywhere)
    assert set(everywhere.files["skipped_by"].to_pylist()) == {"row groups"}
    assert everywhere.read.bytes_left == 0
    in_one_group = report_of(table, And((Comparison("n", "<", 40), In("n", (60, 240)))))
    check_sums(in_one_group)
    assert set(in_one_group.files["skipped_by"].to_pylist()) == {"page index"}


def test_without_a_usable_condition_nothing_is_opened(table):
    report = report_of(table, And(()), not_usable=[("f(id) > <b>", "a function")])
    check_sums(report)
    assert report.read == report.total.__class__("read", 0, 0, 4, report.total.bytes_left)
    assert report.files["row_groups"].null_count == 4
    assert report.not_usable == (("f(id) > <b>", "a function"),)
    by_partition = report_of(table, Comparison("day", "=", "tue"))
    assert by_partition.files["row_groups"].null_count == 4
    assert by_partition.read.files_left == 2


@pytest.mark.parametrize("seed", range(5))
def test_sums_of_random_predicates(table, seed):
    at = random.Random(seed)
    kinds = {"id": "long", "n": "long", "day": "string"}
    assert set(kinds.values()) <= set(KINDS.values())
    for _ in range(20):
        check_sums(report_of(table, random_predicate(at, kinds)))


def test_older_versions(table):
    assert report_of(table, And(()), version=2).files.num_rows == 2


def test_as_text(table):
    text = str(report_of(table, all_of(Comparison("day", "=", "mon"), Anything("f(id)", "a function"))))
    lines = text.splitlines()
    assert lines[0] == "shop.t, version 4"
    assert lines[2].split()[:2] == ["total", "4"]
    assert any(line.split()[:4] == ["skipped", "by", "partition", "2"] for line in lines)
    assert lines[-2:] == ["  by: day = 'mon'", "  not used: f(id) (a function)"]
    assert len({len(line) for line in lines[1:9]}) == 1


def test_html_is_escaped(table):
    report = explain(table.root, "<i>t</i>", Comparison("day", "=", "<script>"), not_usable=[("a<b", "x&y")])
    page = report._repr_html_()
    assert "<script>" not in page
    assert "<i>" not in page
    assert "a&lt;b (x&amp;y)" in page


def test_reports_travel(table):
    report = report_of(table, Comparison("id", "=", 5))
    assert pickle.loads(pickle.dumps(report)) == report


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 KB"), (12_345_678, "12.3 MB"), (999_960, "1.00 MB")],
)
def test_sizes(size, text):
    assert format_bytes(size) == text
