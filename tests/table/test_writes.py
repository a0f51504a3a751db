"""Writing to keyed tables through Table: what it does, and what bad input leaves."""

from __future__ import annotations

import datetime as dt
import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest

import lakekit
from lakekit.errors import (
    ColumnNotFoundError,
    ConstraintError,
    InvalidOptionError,
    PrimaryKeyError,
    SchemaMismatchError,
)
from lakekit.filestore.layout import OPERATION
from lakekit.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_numbers = itertools.count()

Make = Callable[..., Table]


@pytest.fixture
def make(lake: lakekit.Lake) -> Make:
    def create(schema: str = "id BIGINT, name STRING, v BIGINT", **options: Any) -> Table:
        properties = {"compaction.auto": "false", **options.pop("properties", {})}
        options = {"primary_key": ["id"], "buckets": 2, **options}
        return lake.create_table(f"writes_{next(_numbers)}", schema, properties=properties, **options)

    return create


def rows_of(table: Table, version: int | None = None) -> list[dict[str, Any]]:
    key = table.primary_key or ("id",)
    return sorted(
        (r.asDict() for r in table.to_df(version=version).collect()),
        key=lambda r: tuple(str(r[k]) for k in key),
    )


def test_upsert_counts_and_returns_what_it_did(make: Make) -> None:
    table = make()
    first = table.upsert([{"id": i, "name": "a", "v": i} for i in range(10)])
    second = table.upsert([{"id": i, "name": "b", "v": i} for i in range(8, 13)])
    assert (first.version, first.rows_inserted, first.files_added) == (1, 10, 2)
    assert (second.version, second.rows_inserted, second.rows_updated) == (2, 3, 2)
    assert {r["id"]: r["name"] for r in rows_of(table)} == {i: "a" if i < 8 else "b" for i in range(13)}
    assert len(rows_of(table, version=1)) == 10


@pytest.mark.parametrize("kind", ["dicts", "pandas", "arrow", "spark", "rows"])
def test_rows_may_be_of_many_kinds(make: Make, lake: lakekit.Lake, kind: str) -> None:
    table = make()
    data = {"id": [1, 2], "name": ["a", None], "v": [5, None]}
    arrow = pa.table(data, schema=pa.schema([("id", pa.int64()), ("name", pa.string()), ("v", pa.int64())]))
    spark = lake.spark.createDataFrame(arrow)
    rows: Any = {
        "dicts": arrow.to_pylist(),
        "pandas": pd.DataFrame({"id": [1, 2], "name": ["a", None], "v": pd.array([5, None], dtype="Int64")}),
        "arrow": arrow,
        "spark": spark,
        "rows": spark.collect(),
    }[kind]
    table.upsert(rows)
    assert rows_of(table) == arrow.to_pylist()


def test_columns_go_by_name_in_any_order_and_case(make: Make) -> None:
    table = make()
    table.upsert(pa.table({"V": [1], "ID": [7], "name": ["x"]}))
    assert rows_of(table) == [{"id": 7, "name": "x", "v": 1}]


def test_a_batch_that_does_not_fit_names_every_column(make: Make) -> None:
    table = make()
    with pytest.raises(SchemaMismatchError) as error:
        table.upsert(pa.table({"id": [1], "nam": ["x"], "v": ["text"]}))
    for named in ("nam", "name", "v"):
        assert f"'{named}'" in str(error.value)
    assert table.version == 0


def test_null_keys_are_refused_with_count_and_example(make: Make) -> None:
    table = make()
    table.upsert([{"id": 1, "name": "kept", "v": 1}])
    with pytest.raises(PrimaryKeyError, match=r"2 row\(s\).*null.*'id': None"):
        table.upsert([{"id": 1, "name": "lost", "v": 2}, {"id": None, "v": 1}, {"id": None, "v": 2}])
    assert rows_of(table) == [{"id": 1, "name": "kept", "v": 1}]
    assert table.version == 1


def test_nulls_in_not_null_columns_are_refused(make: Make) -> None:
    table = make("id BIGINT, name STRING NOT NULL")
    with pytest.raises(ConstraintError, match="'name'"):
        table.upsert([{"id": 1, "name": None}])
    assert table.version == 0


def test_texts_longer_than_varchar_are_refused(make: Make) -> None:
    table = make("id BIGINT, name VARCHAR(3)")
    with pytest.raises(ConstraintError, match="name"):
        table.upsert([{"id": 1, "name": "abc"}, {"id": 2, "name": "abcd"}])
    assert rows_of(table) == []


def test_the_last_row_of_a_key_wins_whatever_the_partitions(make: Make, lake: lakekit.Lake) -> None:
    table = make()
    batch = lake.spark.range(0, 5000, 1, 7).selectExpr("id % 10 AS id", "'x' AS name", "id AS v")
    assert table.upsert(batch).rows_inserted == 10
    assert [r["v"] for r in rows_of(table)] == list(range(4990, 5000))


def test_a_late_older_row_never_overwrites_a_newer_one(make: Make) -> None:
    table = make(properties={"sequence.field": "v"})
    table.upsert([{"id": 1, "name": "newest", "v": 9}, {"id": 1, "name": "older", "v": 8}])
    late = table.upsert([{"id": 1, "name": "late", "v": 3}])
    assert late.rows_late == 1
    assert rows_of(table) == [{"id": 1, "name": "newest", "v": 9}]
    table.delete([{"id": 1}])
    assert rows_of(table) == []


def test_a_repeated_epoch_is_skipped(make: Make) -> None:
    table = make()
    table.upsert([{"id": 1, "name": "a", "v": 1}], writer_id="w", epoch=5)
    again = table.upsert([{"id": 1, "name": "twice", "v": 2}], writer_id="w", epoch=5)
    older = table.upsert([{"id": 2, "name": "old", "v": 2}], writer_id="w", epoch=4)
    other = table.upsert([{"id": 3, "name": "other", "v": 3}], writer_id="x", epoch=1)
    assert (again.skipped, older.skipped, other.skipped) == (True, True, False)
    assert [r["name"] for r in rows_of(table)] == ["a", "other"]
    with pytest.raises(InvalidOptionError, match="epoch"):
        table.upsert([{"id": 1, "name": "a", "v": 1}], writer_id="w")


def test_delete_by_key_and_by_condition(make: Make) -> None:
    table = make()
    table.upsert([{"id": i, "name": f"n{i}", "v": i} for i in range(10)])
    assert table.delete([{"id": 1}, {"id": 77}]).rows_deleted == 1
    assert table.delete("v > :low AND name != 'n9'", low=6).rows_deleted == 2
    assert [r["id"] for r in rows_of(table)] == [0, 2, 3, 4, 5, 6, 9]
    assert table.delete("id = 5000").skipped


def test_update_of_values_and_of_keys(make: Make) -> None:
    table = make()
    table.upsert([{"id": i, "name": "a", "v": i} for i in range(4)])
    assert table.update({"v": "v * 10", "name": "upper(name)"}, "id >= :n", n=2).rows_updated == 2
    table.update({"id": "id + 100"}, "id = 3")
    assert [(r["id"], r["name"], r["v"]) for r in rows_of(table)] == [
        (0, "a", 0),
        (1, "a", 1),
        (103, "A", 30),
        (2, "A", 20),
    ]
    with pytest.raises(ColumnNotFoundError, match="nam"):
        table.update({"nam": "1"})


def test_overwrite_all_dynamic_and_static(make: Make) -> None:
    schema = "day DATE, id BIGINT, v BIGINT"
    table = make(schema, primary_key=["day", "id"], partition_by=["day"])
    first, second = dt.date(2024, 1, 1), dt.date(2024, 1, 2)
    table.upsert([{"day": d, "id": i, "v": 0} for d in (first, second) for i in range(3)])
    done = table.overwrite([{"day": first, "id": 9, "v": 1}], partitions="dynamic")
    assert (done.rows_deleted, done.rows_inserted) == (3, 1)
    assert {(r["day"], r["id"]) for r in rows_of(table)} == {(first, 9), *((second, i) for i in range(3))}
    table.overwrite([{"id": 1, "v": 5}], partitions={"day": second})
    assert {(r["day"], r["id"]) for r in rows_of(table)} == {(first, 9), (second, 1)}
    with pytest.raises(ConstraintError, match="outside"):
        table.overwrite([{"day": first, "id": 1, "v": 5}], partitions={"day": second})
    table.overwrite([{"day": second, "id": 4, "v": 4}])
    assert [(r["day"], r["id"]) for r in rows_of(table)] == [(second, 4)]


def test_schema_evolves_only_when_asked(make: Make) -> None:
    table = make()
    table.upsert([{"id": 1, "name": "a", "v": 1}])
    wider = [{"id": 2, "name": "b", "v": 2, "extra": "e"}]
    with pytest.raises(SchemaMismatchError, match="'extra'"):
        table.upsert(wider)
    assert table.version == 1
    table.upsert(wider, evolve_schema=True)
    assert rows_of(table) == [
        {"id": 1, "name": "a", "v": 1, "extra": None},
        {"id": 2, "name": "b", "v": 2, "extra": "e"},
    ]
    assert "extra" not in table.to_df(version=1).columns


def test_concurrent_upserts_of_the_same_keys_lose_nothing(make: Make) -> None:
    table = make()
    errors: list[BaseException] = []

    def work(writer: int) -> None:
        try:
            for step in range(4):
                table.upsert([{"id": i, "name": f"w{writer}", "v": step} for i in (writer, 10, 11)])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [r["id"] for r in rows_of(table)] == [0, 1, 10, 11, 2]
    assert table.version == 12


def test_update_that_races_with_upserts_is_repeated_on_the_newest_rows(make: Make) -> None:
    table = make()
    table.upsert([{"id": 1, "name": "a", "v": 0}])
    threads = [threading.Thread(target=table.update, args=({"v": "v + 1"},)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows_of(table) == [{"id": 1, "name": "a", "v": 4}]


@pytest.mark.parametrize("optimize", [False, True])
def test_compaction_during_a_write_does_not_make_it_start_again(
    make: Make, lake: lakekit.Lake, optimize: bool
) -> None:
    table = make()
    for step in range(3):
        table.upsert([{"id": i, "name": "old", "v": step} for i in range(step, 100, step + 1)])
    versions = []

    def build(version: int) -> DataFrame:
        versions.append(version)
        if optimize:
            lake.spark.sql(f"OPTIMIZE {table.relation()}")
        else:
            table.compact()
        operation = f"if(id % 5 = 0, 'D', 'U') AS {OPERATION}"
        return lake.spark.sql(f"SELECT id, 'new' AS name, 9L AS v, {operation} FROM range(0, 100, 3)")

    done = table.apply_changes(build, operation="CHANGE")
    assert versions == [3]
    assert (done.rows_updated, done.rows_deleted, done.version) == (27, 7, 5)
    changed = {i for i in range(0, 100, 3) if i % 5}
    names = {i: "new" if i in changed else "old" for i in range(100) if i % 15}
    assert {row["id"]: row["name"] for row in rows_of(table)} == names
    assert table.get(id=3) == {"id": 3, "name": "new", "v": 9}


def test_plain_spark_writers_and_lakekit_share_a_table(make: Make, lake: lakekit.Lake) -> None:
    table = make()
    table.upsert([{"id": i, "name": "lake", "v": i} for i in range(20)])
    name = table.relation()
    lake.spark.sql(f"INSERT INTO {name} (id, name, v) VALUES (100, 'spark', 1), (101, 'spark', 2)")
    lake.spark.sql(f"UPDATE {name} SET name = 'updated' WHERE id = 3")
    lake.spark.sql(f"DELETE FROM {name} WHERE id = 4")
    done = table.upsert([{"id": i, "name": "again", "v": 0} for i in (3, 4, 100, 200)])
    assert (done.rows_updated, done.rows_inserted) == (2, 2)
    table.compact()
    found = {r["id"]: r["name"] for r in rows_of(table)}
    expected = dict.fromkeys(range(20), "lake") | dict.fromkeys((3, 4, 100, 200), "again") | {101: "spark"}
    assert found == expected
    assert lake.spark.sql(f"SELECT count(*) FROM {name} WHERE _bucket != pmod(hash(id), 2)").first()[0] == 0


def test_append_tables_append_and_are_idempotent_too(make: Make) -> None:
    table = make(primary_key=(), buckets=None, properties={})
    table.upsert([{"id": 1, "name": "a", "v": 1}])
    table.insert([{"id": 1, "name": "b", "v": 2}], writer_id="w", epoch=1)
    assert table.insert([{"id": 1, "name": "b", "v": 2}], writer_id="w", epoch=1).skipped
    assert len(rows_of(table)) == 2
    assert table.delete("v = :v", v=1).rows_deleted == 1
    table.update({"name": "'c'"})
    assert [r["name"] for r in rows_of(table)] == ["c"]
    with pytest.raises(PrimaryKeyError, match="has none"):
        table.delete([{"id": 1}])
