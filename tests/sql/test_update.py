"""UPDATE."""

import pytest

from lakekit import ColumnNotFoundError, PrimaryKeyError, QueryError

ALL = "SELECT id, dt, amount, note FROM orders ORDER BY id, dt"


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("UPDATE orders SET amount = amount + :more WHERE id = 1", {1: ("a", 15, "x")}),
        ("UPDATE orders AS o SET o.note = upper(o.note), amount = 0 WHERE o.id = 2", {2: ("a", 0, "Y")}),
        ("UPDATE orders SET amount = amount * 2, note = string(amount) WHERE id = 4", {4: ("b", 80, "40.00")}),
        ("UPDATE orders SET note = DEFAULT WHERE id = 1", {1: ("a", 10, None)}),
        ("UPDATE orders SET amount = (SELECT max(amount) FROM orders) WHERE id = 1", {1: ("a", 40, "x")}),
        ("UPDATE orders SET note = CASE WHEN id = 1 THEN ', WHERE' ELSE note END", {1: ("a", 10, ", WHERE")}),
        ("WITH w AS (SELECT 7 AS k) UPDATE orders SET amount = (SELECT k FROM w) WHERE id = 2", {2: ("a", 7, "y")}),
        ("UPDATE {db}.orders SET {db}.orders.amount = 1 WHERE {db}.orders.id = 3", {3: ("b", 1, None)}),
        ("UPDATE orders SET amount = '12.5' WHERE id = 2", {2: ("a", 12.5, "y")}),
        ("UPDATE orders SET amount = 1 WHERE note = 'nobody'", {}),
    ],
)  # fmt: skip
def test_rows(run, database, orders, statement, changed):
    before = {row[0]: row[1:] for row in run(ALL)}
    ((*_,),) = run(statement.format(db=database), more=5)
    assert {row[0]: row[1:] for row in run(ALL)} == {**before, **changed}


def test_keys_can_move(run, orders):
    run("INSERT INTO orders VALUES (3, 'a', 33, 'third')")
    ((_, _, inserted, updated, deleted, *_),) = run("UPDATE orders SET id = id + 1 WHERE dt = 'a'")
    assert (inserted, updated, deleted) == (1, 2, 1)
    assert run("SELECT id, note FROM orders WHERE dt = 'a' ORDER BY id") == [(2, "x"), (3, "y"), (4, "third")]


def test_rows_can_move_to_another_partition(run, orders):
    run("UPDATE orders SET dt = 'c', amount = id WHERE dt = 'a'")
    assert [row[:3] for row in run(ALL)] == [(1, "c", 1), (2, "c", 2), (3, "b", 30), (4, "b", 40)]


@pytest.mark.parametrize(
    ("statement", "error", "problem"),
    [
        ("UPDATE orders SET id = 7", QueryError, "several rows the same key.*id = 7"),
        ("UPDATE orders SET id = 2 WHERE id = 1", QueryError, "key of another row.*id = 2, dt = 'a'"),
        ("UPDATE orders SET id = NULL WHERE id = 1", PrimaryKeyError, "null"),
        ("UPDATE orders SET colour = 1", ColumnNotFoundError, "colour"),
        ("UPDATE orders SET note.x = 1", ColumnNotFoundError, "note.x"),
        ("UPDATE orders SET note = 1, orders.note = 2", QueryError, "twice"),
        ("UPDATE orders SET _bucket = 1", ColumnNotFoundError, "_bucket"),
        ("UPDATE orders SET amount = nope WHERE id = 1", QueryError, "line 1, column 28"),
        ("UPDATE orders SET amount = 'x' WHERE id = 1", QueryError, "CAST_INVALID_INPUT"),
        ("UPDATE orders SET amount =", QueryError, "expected the new value"),
        ("UPDATE orders", QueryError, "expected SET"),
    ],
)
def test_what_is_refused_changes_nothing(run, lake, orders, statement, error, problem):
    with pytest.raises(error, match=problem):
        run(statement)
    assert lake.table(orders).version == 1


def test_fields_of_structs(run):
    run("CREATE TABLE nested (id INT PRIMARY KEY, s STRUCT<a: INT, b: STRUCT<c: INT, d: STRING>>) USING lake")
    run("INSERT INTO nested SELECT 1, named_struct('a', 1, 'b', named_struct('c', 2, 'd', 'x'))")
    run("INSERT INTO nested VALUES (2, NULL)")
    run("UPDATE nested n SET n.s.b.d = 'new', s.a = s.a + 1 WHERE n.id = 1")
    assert run("SELECT s.a, s.b.c, s.b.d FROM nested WHERE id = 1") == [(2, 2, "new")]


def test_append_tables(run):
    run("CREATE TABLE logs USING lake AS SELECT id, 'a' AS s FROM range(3)")
    run("UPDATE logs SET s = :s WHERE id = 1", s="it's")
    assert run("SELECT s FROM logs ORDER BY id") == [("a",), ("it's",), ("a",)]
