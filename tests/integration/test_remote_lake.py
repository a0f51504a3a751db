"""The main story through Spark Connect: the notebook's process never touches the warehouse."""

import pyarrow as pa
import pytest

from lakekit.errors import PrimaryKeyError, TableNotFoundError

CREATE = """
CREATE TABLE story.orders (
  dt STRING, id BIGINT, amount DECIMAL(10, 2), note STRING,
  PRIMARY KEY (dt, id) NOT ENFORCED
) PARTITIONED BY (dt) WITH ('bucket' = '2', 'compaction.auto' = 'false')
"""


@pytest.fixture(scope="module")
def lake(remote_lake):
    remote_lake.sql("CREATE DATABASE story").collect()
    remote_lake.sql(CREATE).collect()
    return remote_lake


def rows(lake, query, **params):
    return [tuple(row) for row in lake.sql(query, **params).collect()]


def test_the_story(lake):
    first = lake.sql(
        "INSERT INTO story.orders VALUES ('a', 1, 1.5, 'x'), ('a', 2, 2.5, 'y'), ('b', 1, 3, 'z')"
    ).collect()
    assert first[0].rows_inserted == 3
    orders = lake.table("story.orders")
    loaded = orders.version

    commit = orders.upsert(
        pa.table({"dt": ["a", "c"], "id": [2, 9], "amount": [9, 8], "note": ["late", None]})
    )
    assert (commit.rows_updated, commit.rows_inserted) == (1, 1)
    lake.sql("UPDATE story.orders SET note = :note WHERE id = 1", note="it's").collect()
    lake.sql("DELETE FROM story.orders WHERE dt = 'b'").collect()
    lake.sql(
        "MERGE INTO story.orders t USING (SELECT 'a' dt, 1 id) s ON t.dt = s.dt AND t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET amount = t.amount * 2"
    ).collect()

    now = [("a", 1, 3.0, "it's"), ("a", 2, 9.0, "late"), ("c", 9, 8.0, None)]
    query = "SELECT dt, id, double(amount), note FROM story.orders {} ORDER BY dt, id"
    assert rows(lake, query.format("")) == now
    assert rows(lake, query.format(f"VERSION AS OF {loaded}"))[-1] == ("b", 1, 3.0, "z")
    assert orders.get(dt="a", id=2)["note"] == "late"
    assert orders.get(dt="b", id=1) is None
    kinds = [
        row._change_kind for row in orders.changes(since=loaded + 1).orderBy("_version", "dt", "id").collect()
    ]
    assert sorted(kinds) == sorted(["-U", "+U", "+I", "-U", "+U", "-U", "+U", "-D", "-U", "+U"])

    orders.compact()
    assert rows(lake, query.format("")) == now
    assert orders.inspect.files().num_rows == len(rows(lake, "SELECT * FROM story.`orders$files`"))
    assert orders.inspect.snapshots().num_rows == orders.version + 1
    assert "orders" in str(lake.explain("SELECT * FROM story.orders WHERE dt = 'a' AND id = 2"))
    assert orders.vacuum(dry_run=True) is not None


def test_bad_input_changes_nothing(lake):
    orders = lake.table("story.orders")
    before = orders.version
    with pytest.raises(PrimaryKeyError, match="null in the primary key"):
        orders.upsert([{"dt": "a", "id": None, "amount": None, "note": None}])
    with pytest.raises(TableNotFoundError, match="Did you mean"):
        lake.table("story.order")
    assert lake.table("story.orders").version == before
