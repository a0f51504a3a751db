"""DELETE FROM."""

import pytest

from lakekit import InvalidOptionError, QueryError


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("DELETE FROM orders WHERE id = 1 AND dt = 'a'", [2, 3, 4]),
        ("DELETE FROM orders o WHERE o.amount > :limit", [1, 2]),
        (
            "DELETE FROM orders AS o WHERE EXISTS (SELECT 1 FROM orders p WHERE p.amount = o.amount * 2)",
            [3, 4],
        ),
        ("DELETE FROM orders WHERE orders.note IS NULL OR id IN (SELECT min(id) FROM orders)", [2, 4]),
        ("WITH old AS (SELECT 2 AS id) DELETE FROM orders WHERE id IN (SELECT id FROM old)", [1, 3, 4]),
        ("DELETE FROM orders WHERE note = NULL", [1, 2, 3, 4]),
        ("DELETE FROM orders", []),
    ],
)
def test_rows(run, orders, statement, left):
    ((_, operation, inserted, updated, deleted, *_),) = run(statement, limit=25)
    assert (inserted, updated, deleted) == (0, 0, 4 - len(left)), operation
    assert sorted(row[0] for row in run("SELECT id FROM orders")) == left


def test_qualified_names(run, database, orders):
    run(f"DELETE FROM {database}.orders WHERE {database}.orders.id = 3")
    assert run("SELECT count(*) FROM orders") == [(3,)]


@pytest.mark.parametrize(
    ("statement", "error", "problem"),
    [
        ("DELETE FROM orders WHERE idd = 1", QueryError, "line 1, column 26"),
        ("DELETE FROM orders WHERE", QueryError, "expected a condition"),
        ("DELETE FROM orders WHERE id = :gone", QueryError, ":gone"),
        ("DELETE FROM orders WHERE id = 1/0", QueryError, "DIVIDE_BY_ZERO"),
        (
            "DELETE FROM orders /*+ OPTIONS('emit.mode' = 'file,log') */ WHERE id = 1",
            InvalidOptionError,
            "log",
        ),
        ("DELETE FROM orders WHERE id = 1; DELETE FRM orders", QueryError, "FRM"),
        ("BEGIN DELETE FROM orders WHERE id = 1; END", QueryError, "of its own"),
    ],
)
def test_refused(run, orders, statement, error, problem):
    with pytest.raises(error, match=problem):
        run(statement)


def test_append_tables(run):
    run("CREATE TABLE logs USING lake AS SELECT id, 'a' AS s FROM range(4)")
    ((version, operation, _, _, deleted, *_),) = run("DELETE FROM logs l WHERE l.id = :x", x=2)
    assert (version, operation, deleted) == (2, "DELETE", 1)
    assert run("SELECT count(*) FROM logs") == [(3,)]
