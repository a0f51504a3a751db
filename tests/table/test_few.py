"""Small writes, which need no Spark job: the same as large ones in what they do, refuse and leave."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import lakekit
from lakekit.errors import ConstraintError, LakeError, PrimaryKeyError, SchemaMismatchError
from lakekit.filestore import few
from lakekit.table import batch, write
from lakekit.table import rows as table_rows
from lakekit.table.table import Table

_numbers = itertools.count()
Make = Callable[..., Table]

TYPES: dict[str, tuple[str, Callable[[int], Any]]] = {
    "bigint": ("BIGINT", lambda i: i - 20),
    "tinyint": ("TINYINT", lambda i: i - 20),
    "string": ("STRING", lambda i: "é" * (i % 4) + f"{i * 7919 % 101}"),
    "double": ("DOUBLE", lambda i: (math.nan, 0.0, -0.0, math.inf, -math.inf)[i] if i < 5 else 1.5 - i),
    "float": ("FLOAT", lambda i: float(i - 20) / 2),
    "boolean": ("BOOLEAN", lambda i: i % 2 == 0),
    "date": ("DATE", lambda i: dt.date(1969, 12, 20) + dt.timedelta(days=i)),
    "timestamp": ("TIMESTAMP", lambda i: dt.datetime(1970, 1, 1, 0, 0, i, i, dt.timezone.utc)),
    "timestamp_ntz": ("TIMESTAMP_NTZ", lambda i: dt.datetime.fromisoformat(f"1969-12-31T23:59:{i:02}")),
    "decimal": ("DECIMAL(20, 3)", lambda i: Decimal(i - 20) / 8),
    "binary": ("BINARY", lambda i: bytes([255 - i, i])),
}


@pytest.fixture
def make(lake: lakekit.Lake) -> Make:
    def create(schema: str, key: list[str], **options: Any) -> Table:
        properties = {"compaction.auto": "false", **options.pop("properties", {})}
        return lake.create_table(
            f"few_{next(_numbers)}", schema, primary_key=key, buckets=3, properties=properties, **options
        )

    return create


def contents(table: Table) -> list[str]:
    return sorted(repr(row.asDict()) for row in table.to_df().collect())


def files(table: Table) -> list[tuple[object, ...]]:
    """What the log says of the files, but for what differs between any two runs."""
    found = []
    for file in table.snapshot().files.values():
        vector = file.deletion_vector
        partition = tuple(sorted(file.partition_values.items()))
        found.append((partition, file.num_records, vector and vector.cardinality, file.level, file.stats))
    return sorted(found, key=repr)


@pytest.mark.parametrize("kind", TYPES)
def test_few_rows_are_written_as_many_are(kind: str, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sql, value = TYPES[kind]
    rng = random.Random(1)
    small, large = (
        make(f"k {sql}, v INT, s BIGINT", ["k"], properties={"sequence.field": "s"}) for _ in "ab"
    )
    for step in range(3):
        picked = [rng.randrange(40) for _ in range(30)]
        rows = [{"k": value(i), "v": step, "s": rng.choice([None, step, step - 2])} for i in picked]
        written = [small.upsert(rows)]
        gone = [{"k": value(rng.randrange(40))} for _ in range(3)]
        written.append(small.delete(gone))
        with monkeypatch.context() as patch:
            patch.setattr(table_rows, "FEW_ROWS", 0)
            patch.setattr(batch, "FEW_ROWS", 0)
            of_large = [large.upsert(rows), large.delete(gone)]
        for ours, theirs in zip(written, of_large, strict=True):
            counts = ("version", "rows_inserted", "rows_updated", "rows_deleted", "rows_late", "files_added")
            assert [getattr(ours, c) for c in counts] == [getattr(theirs, c) for c in counts]
    assert contents(small) == contents(large)
    assert files(small) == files(large)


def test_few_rows_start_no_spark_job(make: Make, lake: lakekit.Lake) -> None:
    table = make("id BIGINT, name STRING", ["id"])
    tracker = lake.spark.sparkContext.statusTracker()
    lake.spark.sparkContext.setJobGroup("few rows", "")
    table.upsert([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    table.upsert(pd.DataFrame({"name": ["c"], "id": [2]}))
    table.upsert(pa.table({"id": [3], "name": ["d"]}))
    assert table.get_many([{"id": 1}, {"id": 2}, {"id": 3}]).to_pylist() == [
        {"id": 1, "name": "a"},
        {"id": 2, "name": "c"},
        {"id": 3, "name": "d"},
    ]
    assert list(tracker.getJobIdsForGroup("few rows")) == []


def test_partitions_and_the_last_of_equal_keys(make: Make) -> None:
    table = make("day DATE, id BIGINT, v INT", ["day", "id"], partition_by=["day"])
    day = dt.date(2013, 1, 1)
    rows = [{"day": day + dt.timedelta(days=i % 3), "id": i % 5, "v": i} for i in range(40)]
    done = table.upsert(rows)
    assert (done.rows_inserted, done.rows_updated) == (15, 0)
    last = {(row["day"], row["id"]): row["v"] for row in rows}
    assert {(r.day, r.id): r.v for r in table.to_df().collect()} == last
    assert table.upsert(rows[:4]).rows_updated == 4


def test_what_is_wrong_is_told_and_leaves_the_table_as_it_was(make: Make) -> None:
    table = make("id BIGINT, code CHAR(3), n INT NOT NULL, list ARRAY<INT>", ["id"])
    table.upsert([{"id": 1, "code": "a", "n": 1, "list": [1]}])
    assert table.get(id=1) == {"id": 1, "code": "a  ", "n": 1, "list": [1]}
    good = {"id": 2, "code": "b", "n": 2, "list": None}
    for bad, error, text in (
        ({"id": None}, PrimaryKeyError, "1 row"),
        ({"n": None}, ConstraintError, "'n'"),
        ({"code": "long"}, ConstraintError, "longer than char"),
        ({"n": "x"}, SchemaMismatchError, "'n'"),
        ({"other": 1}, SchemaMismatchError, "'other'"),
    ):
        with pytest.raises(error, match=text):
            table.upsert([good, {**good, **bad}])
    with pytest.raises(LakeError, match="3000000000"):
        table.upsert(pa.table({"id": [2], "code": ["b"], "n": [3_000_000_000], "list": pa.nulls(1)}))
    assert table.version == 1
    assert len(table.snapshot().files) == 1


def test_values_in_sql_are_few_rows_too(make: Make, lake: lakekit.Lake) -> None:
    table = make("id BIGINT, at TIMESTAMP, v DECIMAL(9, 2), note STRING", ["id"])
    name = table.relation()
    lake.sql(f"INSERT INTO {name} VALUES (1, TIMESTAMP'2013-01-01 05:00:00', 1.5, NULL), (2, NULL, 2, 'x')")
    lake.sql(f"INSERT INTO {name} (note, id) VALUES ('y', 2), (DEFAULT, 3)")
    found = {r.id: (r.at and r.at.isoformat(), r.v, r.note) for r in table.to_df().collect()}
    assert set(found) == {1, 2, 3}
    assert found[1][1:] == (Decimal("1.50"), None)
    assert found[2] == (None, None, "y")


def test_more_rows_than_few_take_the_way_over_spark(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make("id BIGINT, v INT", ["id"])
    monkeypatch.setattr(write, "write_few", None)
    table.upsert(
        pa.table({"id": range(few.FEW_ROWS + 1), "v": pa.array([0] * (few.FEW_ROWS + 1), pa.int32())})
    )
    assert table.to_df().count() == few.FEW_ROWS + 1
