"""Tables about tables."""

import pytest

from lakekit import InvalidOptionError, QueryError, TableNotFoundError


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT operation FROM orders$snapshots ORDER BY version", [("CREATE TABLE",), ("UPSERT",)]),
        ("SELECT count(*) FROM `orders$snapshots` VERSION AS OF 0", [(1,)]),
        ("SELECT count(*) FROM {db}.orders$files VERSION AS OF 0", [(0,)]),
        ("SELECT sum(f.rows) FROM {db}.`orders$files` AS f", [(4,)]),
        ("SELECT count(*) FROM arctic.{db}.orders$manifests", [(2,)]),
        ("SELECT sum(rows) FROM orders$buckets b", [(4,)]),
        ("SELECT count(*) FROM orders$partitions", [(2,)]),
        ("SELECT `orders$partitions`.rows FROM orders$partitions LIMIT 1", [(2,)]),
        ("SELECT _change_kind, count(*) FROM orders$changes GROUP BY 1", [("+I", 4)]),
        ("SELECT count(*) FROM orders$changes /*+ OPTIONS('since' = '0', 'until' = '0') */", [(0,)]),
        ("SELECT count(*) FROM orders o JOIN orders$changes c ON o.id = c.id", [(4,)]),
    ],
)
def test_rows(run, database, orders, query, expected):
    assert run(query.format(db=database)) == expected


def test_a_result_can_be_read_later(lake, orders):
    frame = lake.sql("SELECT path FROM orders$files")
    lake.sql("SELECT 1")
    assert frame.count() > 0


def test_unknown(run, orders):
    with pytest.raises(QueryError, match=r"Did you mean 'files'"):
        run("SELECT * FROM orders$fils")
    with pytest.raises(InvalidOptionError, match="has no log"):
        run("SELECT * FROM orders$log")
    with pytest.raises(TableNotFoundError):
        run("SELECT * FROM nothing$files")
