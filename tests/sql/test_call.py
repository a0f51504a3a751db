"""CALL of procedures."""

import pytest

from lakekit import InvalidOptionError, QueryError, TableNotFoundError


def test_compact(lake, run, orders, database):
    run("INSERT INTO orders VALUES (1, 'a', 1, 'again')")
    ((_, operation, *_),) = run(f"CALL lake.compact('{database}.orders')")
    assert operation == "COMPACT"
    assert run("SELECT count(*) FROM orders$files WHERE level = 1") != [(0,)]
    assert run("SELECT count(*) FROM orders") == [(4,)]


def test_checkpoint(lake, run, orders):
    ((status,),) = run("CALL lake.checkpoint(table => :t)", t=orders)
    assert "checkpoint" in status


def test_vacuum(run, orders):
    assert run("CALL lake.vacuum('orders', 168, dry_run => true)") == []


@pytest.mark.parametrize(
    ("statement", "error", "problem"),
    [
        ("CALL lake.compct('orders')", QueryError, "Did you mean 'compact'"),
        ("CALL lake.compact()", QueryError, "needs the name of a table"),
        ("CALL lake.compact('nothing')", TableNotFoundError, "nothing"),
        ("CALL lake.vacuum('orders', retain => 3)", QueryError, "no parameter 'retain'"),
        ("CALL lake.vacuum('orders', table => 'orders')", QueryError, "twice"),
        ("CALL lake.vacuum('orders', dry_run => 'x')", InvalidOptionError, "dry_run"),
        ("CALL lake.compact('orders', 1)", QueryError, "1 parameters"),
        ("CALL lake.vacuum('orders', 1)", InvalidOptionError, "."),
    ],
)
def test_refused(run, orders, statement, error, problem):
    with pytest.raises(error, match=problem):
        run(statement)
