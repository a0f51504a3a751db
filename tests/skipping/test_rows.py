"""Row groups and pages: never skipped if they hold a wanted row, skipped where they can be."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakekit.skipping.parquet_index import ParquetIndex
from lakekit.skipping.predicate import And, Anything, Comparison, In, Or
from lakekit.skipping.prune import FileBounds, PartitionBounds, bind
from lakekit.skipping.rows import FileRows, count, count_pages, intersect, unite
from lakekit.skipping.values import Columns
from tests.skipping.data import KINDS, file_of, matches, random_predicate, random_table, schema_json

LAYOUTS = [
    {"data_page_size": 64, "write_batch_size": 8},
    {"data_page_size": 64, "write_batch_size": 8, "use_dictionary": False, "data_page_version": "2.0"},
    {"data_page_size": 64, "write_batch_size": 8, "store_decimal_as_integer": True, "compression": "zstd"},
    {"write_page_index": False},
    {"data_page_size": 64, "write_batch_size": 8, "write_statistics": False},
    {
        "use_deprecated_int96_timestamps": True,
        "store_schema": False,
        "data_page_size": 64,
        "write_batch_size": 8,
    },
]


def written(rows: pa.Table, **layout) -> tuple[pa.BufferReader, ParquetIndex]:
    sink = io.BytesIO()
    pq.write_table(rows, sink, **{"write_page_index": True, "row_group_size": 60, **layout})
    source = pa.BufferReader(sink.getvalue())
    return source, ParquetIndex.read(source, "f.parquet")


def file_rows(index: ParquetIndex, rows: pa.Table, **how) -> FileRows:
    return FileRows(index, FileBounds(file_of("f", rows, **how), PartitionBounds(())))


@pytest.mark.parametrize("seed", range(18))
def test_nothing_that_matches_is_skipped(seed):
    at = random.Random(seed)
    rows = random_table(at, 150)
    source, index = written(rows, **LAYOUTS[seed % len(LAYOUTS)])
    inside = file_rows(index, rows, stats=at.choice(["ours", None]))
    columns = Columns(schema_json(KINDS))
    values = rows.to_pylist()
    skipped_groups = skipped_rows = 0
    for _ in range(60):
        predicate = random_predicate(at)
        bound = bind(predicate, columns)
        wanted = [i for i, row in enumerate(values) if matches(predicate, row)]
        groups = inside.groups(bound)
        assert {i // 60 for i in wanted} <= set(groups), predicate
        skipped_groups += index.metadata.num_row_groups - len(groups)
        for group in groups:
            ranges = inside.ranges(source, bound, group)
            kept = {group * 60 + row for start, stop in ranges for row in range(start, stop)}
            assert {i for i in wanted if i // 60 == group} <= kept, predicate
            skipped_rows += index.metadata.row_group(group).num_rows - len(kept)
    assert skipped_groups or "write_statistics" in LAYOUTS[seed % len(LAYOUTS)]
    if seed % len(LAYOUTS) < 3:
        assert skipped_rows


def test_sorted_rows_leave_the_pages_that_hold_them():
    rows = pa.table({"id": pa.array(range(100)), "txt": [f"{i:03}" for i in range(100)]})
    layout = {"row_group_size": 50, "data_page_size": 1, "write_batch_size": 10, "use_dictionary": False}
    source, index = written(rows, **layout)
    inside = file_rows(index, rows)
    columns = Columns(schema_json({"id": "long", "txt": "string"}))

    def ranges(predicate, group):
        return inside.ranges(source, bind(predicate, columns), group)

    assert inside.groups(bind(Comparison("id", "=", 63), columns)) == [1]
    assert ranges(Comparison("id", "=", 63), 1) == [(10, 20)]
    assert ranges(In("id", (3, 27, 99)), 0) == [(0, 10), (20, 30)]
    assert ranges(And((Comparison("id", ">=", 15), Comparison("txt", "<", "025"))), 0) == [(10, 30)]
    assert ranges(Or((Comparison("id", "<", 5), Comparison("txt", "=", "049"))), 0) == [(0, 10), (40, 50)]
    assert ranges(And((Comparison("id", "=", 3), Comparison("txt", "=", "049"))), 0) == []
    assert ranges(Anything("f(id)"), 0) == [(0, 50)]
    pages = count_pages(source, index, 1, [(10, 20)])
    assert (pages.total, pages.skipped) == (10, 8)
    chunks = sum(index.metadata.row_group(1).column(i).total_compressed_size for i in range(2))
    assert 0 < pages.skipped_bytes < chunks


def test_a_column_that_the_file_lacks_may_hold_anything():
    rows = pa.table({"id": [1, 2]})
    source, index = written(rows)
    bound = bind(Comparison("txt", "=", "a"), Columns(schema_json({"id": "long", "txt": "string"})))
    inside = file_rows(index, rows, stats=None)
    assert inside.groups(bound) == [0]
    assert inside.ranges(source, bound, 0) == [(0, 2)]


def test_elements_of_lists_are_no_column():
    rows = pa.table({"l": [[1, 2], [3]]})
    _, index = written(rows)
    kinds = {"l": {"type": "array", "elementType": "long", "containsNull": True}}
    bound = bind(Comparison("l", "=", 9), Columns(schema_json(kinds)))
    assert file_rows(index, rows, stats=None).groups(bound) == [0]


def test_row_ranges():
    assert intersect([(0, 5), (7, 9)], [(3, 8)]) == [(3, 5), (7, 8)]
    assert intersect([(0, 5)], [(5, 9)]) == []
    assert unite([(7, 9), (0, 3), (3, 5), (8, 12)]) == [(0, 5), (7, 12)]
    assert unite([]) == []
    assert count([(0, 5), (7, 12)]) == 10


@pytest.mark.parametrize("seed", range(5))
def test_row_ranges_are_sets(seed):
    at = random.Random(seed)

    def some():
        return unite((s := at.randint(0, 50), s + at.randint(1, 9)) for _ in range(at.randint(0, 8)))

    def rows(ranges):
        return {row for start, stop in ranges for row in range(start, stop)}

    for _ in range(100):
        left, right = some(), some()
        assert rows(intersect(left, right)) == rows(left) & rows(right)
        assert rows(unite([*left, *right])) == rows(left) | rows(right)
