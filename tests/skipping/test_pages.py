"""Reading single pages gives the rows that reading the whole file gives."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakekit.skipping.footers import Cache
from lakekit.skipping.pages import GroupReader
from lakekit.skipping.parquet_index import DataFileError, ParquetIndex
from lakekit.skipping.values import Columns
from tests.skipping.data import KINDS, random_table, schema_json

NESTED = pa.table(
    {
        "l": pa.array([[i, None] if i % 3 else None for i in range(150)]),
        "s": pa.array([{"x": i, "y": str(i)} if i % 5 else None for i in range(150)]),
        "m": pa.array([[(str(i), i)] for i in range(150)], pa.map_(pa.string(), pa.int64())),
    }
)
LAYOUTS = [
    {"compression": c, "data_page_version": v, "use_dictionary": d}
    for c in ("none", "snappy", "zstd", "gzip")
    for v in ("1.0", "2.0")
    for d in (True, False)
]
LAYOUTS += [
    {"use_dictionary": True, "dictionary_pagesize_limit": 32},
    {"use_dictionary": False, "column_encoding": {"id": "DELTA_BINARY_PACKED", "txt": "DELTA_BYTE_ARRAY"}},
    {"write_page_index": False},
    {"use_deprecated_int96_timestamps": True},
    {"store_decimal_as_integer": True, "write_page_checksum": True},
]


def columns_of(table: pa.Table) -> Columns:
    nested = {"l": {"type": "array"}, "s": {"type": "struct", "fields": []}, "m": {"type": "map"}}
    return Columns(schema_json({name: (KINDS | nested)[name] for name in table.column_names}))


def written(rows: pa.Table, **layout) -> bytes:
    sink = io.BytesIO()
    options = {"write_page_index": True, "row_group_size": 100, "data_page_size": 64, "write_batch_size": 8}
    pq.write_table(rows, sink, **{**options, **layout})
    return sink.getvalue()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_any_rows_of_any_layout(layout):
    at = random.Random(str(layout))
    rows = random_table(at, 150)
    for name in NESTED.column_names:
        rows = rows.append_column(name, NESTED[name])
    source = pa.BufferReader(written(rows, **layout))
    index = ParquetIndex.read(source, "f.parquet")
    columns = list(columns_of(rows).values())
    for _ in range(30):
        group = at.randint(0, 1)
        reader = GroupReader(source, index, group, "f.parquet")
        start = at.randint(0, reader.rows - 1)
        stop = at.randint(start + 1, reader.rows)
        assert_same(reader.read(columns, start, stop), rows.slice(group * 100 + start, stop - start))
        single = sorted(at.sample(range(reader.rows), at.randint(1, 12)))
        taken = reader.take(columns, np.array(single))
        assert_same(taken, rows.slice(group * 100).take(pa.array(single)))


def assert_same(found: dict[str, pa.Array], expected: pa.Table) -> None:
    for name in expected.column_names:
        values = found[name]
        if values.type != expected.schema.field(name).type and pa.types.is_timestamp(values.type):
            values = values.cast(expected.schema.field(name).type)
        assert repr(values.to_pylist()) == repr(expected[name].to_pylist()), name


def test_reads_less_than_the_file():
    rows = pa.table(
        {"id": pa.array(range(100_000)), "txt": [f"a text of number {i}" for i in range(100_000)]}
    )
    data = written(
        rows, row_group_size=100_000, data_page_size=8192, compression="none", dictionary_pagesize_limit=8192
    )
    index = ParquetIndex.read(pa.BufferReader(data), "f.parquet")
    read: list[int] = []

    class Counting:
        def read_at(self, size: int, offset: int) -> bytes:
            read.append(size)
            return data[offset : offset + size]

    reader, columns = GroupReader(Counting(), index, 0, "f"), list(columns_of(rows).values())
    found = reader.read(columns, 70_000, 70_001)
    assert {name: values.to_pylist() for name, values in found.items()} == {
        "id": [70_000],
        "txt": ["a text of number 70000"],
    }
    assert sum(read) < len(data) / 20
    read.clear()
    assert reader.take(columns, np.array([5, 99_999]))["id"].to_pylist() == [5, 99_999]
    assert sum(read) < len(data) / 10


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_columns_that_are_kept_are_those_of_the_file(layout):
    at = random.Random(str(layout))
    rows = random_table(at, 150)
    source = pa.BufferReader(written(rows, **layout))
    index = ParquetIndex.read(source, "f.parquet")
    columns = list(columns_of(rows).values())
    kept: dict[Any, pa.Array] = {}

    def keep(part: Hashable, read: Callable[[], pa.Array]) -> pa.Array:
        kept[part] = kept[part] if part in kept else read()
        return kept[part]

    for _ in range(40):
        group = at.randint(0, 1)
        reader = GroupReader(source, index, group, "f.parquet", keep)
        start = at.randint(0, reader.rows - 1)
        stop = at.randint(start + 1, reader.rows)
        found = reader.read(columns, start, stop)
        plain = GroupReader(source, index, group, "f.parquet").read(columns, start, stop)
        assert {name: repr(v.to_pylist()) for name, v in found.items()} == {
            name: repr(v.to_pylist()) for name, v in plain.items()
        }


def test_rows_are_read_once():
    rows = pa.table({"id": pa.array(range(20_000)), "txt": [f"text {i}" for i in range(20_000)]})
    source = pa.BufferReader(written(rows, row_group_size=10_000, data_page_size=4096))
    index = ParquetIndex.read(source, "f.parquet")
    kept: Cache[pa.Array] = Cache(1 << 30, lambda values: values.nbytes)
    columns = list(columns_of(rows).values())
    reader = GroupReader(source, index, 1, "f.parquet", kept.get)
    reader.read(columns, 500, 501), reader.read(columns, 0, 10_000)
    source.close()
    for start, stop in [(500, 501), (499, 500), (0, 10_000), (1, 9_999)]:
        found = reader.read(columns, start, stop)
        assert found["id"].to_pylist() == list(range(10_000 + start, 10_000 + stop))


def test_the_cache_forgets_what_was_not_used_lately_and_keeps_nothing_too_large():
    made: list[int] = []
    cache: Cache[int] = Cache(80, lambda weight: weight, largest=10)

    def get(key: int, weight: int) -> None:
        cache.get(key, lambda: made.append(key) or weight)

    for key in range(8):
        get(key, 10)
    get(0, 10)
    get(8, 10)  # drives out 1
    get(0, 10)
    assert made == list(range(9))
    get(1, 10)
    get(9, 11)
    get(9, 11)
    assert made == [*range(9), 1, 9, 9]
    assert len(cache) == 8


def test_columns_are_found_in_any_case_and_missing_ones_left_out():
    rows = pa.table({"ID": pa.array(range(100))})
    source = pa.BufferReader(written(rows))
    reader = GroupReader(source, ParquetIndex.read(source, "f"), 0, "f")
    columns = Columns(schema_json({"id": "long", "gone": "string"}))
    found = reader.read(list(columns.values()), 20, 22)
    assert {name: values.to_pylist() for name, values in found.items()} == {"id": [20, 21]}


@pytest.mark.parametrize("cut", [0, 3, 8, 20, 200])
def test_damaged_files_are_named(cut):
    data = written(pa.table({"id": [1, 2]}))
    with pytest.raises(DataFileError, match=r"part-1\.parquet"):
        ParquetIndex.read(pa.BufferReader(data[:-cut] if cut else b""), "part-1.parquet")


def test_damaged_footers_are_named():
    data = bytearray(written(pa.table({"id": [1, 2]})))
    length = int.from_bytes(data[-8:-4], "little")
    data[-8 - length : -8 - length + 40] = b"\xff" * 40
    with pytest.raises(DataFileError, match=r"part-1\.parquet"):
        ParquetIndex.read(pa.BufferReader(bytes(data)), "part-1.parquet")


def test_damaged_pages_are_named():
    rows = pa.table({"id": pa.array(range(1000))})
    data = bytearray(written(rows, row_group_size=1000))
    index = ParquetIndex.read(pa.BufferReader(bytes(data)), "part-1.parquet")
    data[4:3000] = b"\xff" * 2996
    with pytest.raises(DataFileError, match=r"part-1\.parquet"):
        GroupReader(pa.BufferReader(bytes(data)), index, 0, "part-1.parquet").read(
            list(columns_of(rows).values()), 500, 501
        )


def test_footers_larger_than_the_first_read():
    rows = pa.table({f"column_{i}": ["a text", "b"] for i in range(900)})
    source = pa.BufferReader(written(rows))
    index = ParquetIndex.read(source, "f")
    assert index.size > 1 << 16
    assert index.metadata.num_columns == 900
