"""Bound parameters, several statements, and errors with their places."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pytest

from lakekit import QueryError, TableNotFoundError
from lakekit.sql import parameters
from lakekit.sql.engine import execute_script
from lakekit.sql.failures import SyntaxAt, place, syntax_error, translate
from lakekit.sql.text import SqlText


@pytest.mark.parametrize(
    "value",
    [
        *(1, "it's; :x --", None, True, 1.5, Decimal("1.50"), dt.date(2020, 1, 2), b"\x00\xff"),
        *([1, 2**40, None], [], {"k": [1], "l": [None]}, [["a"], []]),
    ],
)
def test_values_come_back(run, value):
    assert run("SELECT :v", v=value) == [(value,)]


def test_scalars_of_numpy(run):
    assert run("SELECT :a + :b", a=np.int64(2), b=np.float64(0.5)) == [(2.5,)]
    assert run("SELECT :a", a=np.array([1, 2])) == [([1, 2],)]
    assert run("SELECT :d", d=np.datetime64("2020-01-02")) == [(dt.datetime(2020, 1, 2),)]  # noqa: DTZ001


def test_what_is_no_parameter(run):
    query = """SELECT '{"a":1}' AS j, ':x', transform(array(1), y -> y + 1), map('a:b', 1),
                      CAST(NULL AS STRUCT<a:INT>)"""
    assert run(query, unused=object()) == [('{"a":1}', ":x", [2], {"a:b": 1}, None)]


def test_a_list_of_keys(run, orders):
    query = "SELECT id FROM orders WHERE array_contains(:ids, id) AND dt = :ids_dt ORDER BY id"
    assert run(query, ids=[1, 2, 3, None], ids_dt="a") == [(1,), (2,)]


def test_missing_and_unbindable(run):
    with pytest.raises(QueryError, match=r":amuont.*no value.*Did you mean 'amount'"):
        run("SELECT :amuont", amount=1)
    with pytest.raises(QueryError, match=":v is or holds a object"):
        run("SELECT :v", v=object())


def test_several_statements(lake, run, database):
    results = execute_script(lake, "SELECT 1 AS a; -- ;\nSELECT ';' AS b, :x AS c;", {"x": 3})
    assert [r.statement for r in results] == ["SELECT 1 AS a", "SELECT ';' AS b, :x AS c"]
    assert [tuple(r.rows.collect()[0]) for r in results] == [(1,), (";", 3)]
    with pytest.raises(QueryError, match="no statement"):
        run(" -- nothing")


def test_a_script_of_spark(lake, run, orders):
    lake.spark.conf.set("spark.sql.scripting.enabled", "true")
    try:
        assert run("BEGIN DECLARE n INT DEFAULT 1; SET n = (SELECT count(*) FROM orders); SELECT n; END") == [
            (4,)
        ]
    finally:
        lake.spark.conf.unset("spark.sql.scripting.enabled")


def test_the_place_is_in_what_the_user_wrote(run, orders):
    with pytest.raises(QueryError) as caught:
        run("SELECT 1;\nSELECT o.id,\n       o.colour\nFROM orders o")
    assert "At line 3, column 8:\n           o.colour\n           ^^^^^^^^" in str(caught.value)
    assert "_bucket" not in str(caught.value)


def test_the_place_behind_replaced_tables(run, orders):
    with pytest.raises(QueryError, match=r"line 1, column 73"):
        run("SELECT * FROM orders o JOIN orders VERSION AS OF 1 p ON o.id = p.id AND p.colour = 1")
    with pytest.raises(QueryError, match=r"line 1, column 29"):
        run("SELECT id FROM orders WHERE amont > 1")
    with pytest.raises(QueryError, match=r"SYNTAX_ERROR(.|\n)*line 2, column 21"):
        run("SELECT id\nFROM orders GROUPED BY id")


def test_errors_have_no_stack(run):
    with pytest.raises(QueryError) as caught:
        run("SELECT * FROM range(3) WHERE idd = 1")
    assert len(str(caught.value).splitlines()) <= 5
    assert "Project" not in str(caught.value)


def test_place():
    assert place("ab\ncd ef", 6, 2) == "At line 2, column 4:\n    cd ef\n       ^^"
    assert place("a", 1) == "At line 1, column 2:\n    a\n     ^"
    assert place("x" * 300, 200).count("^") == 1


def test_syntax_errors_are_shown_at_their_place():
    error = syntax_error(SyntaxAt(2, "Wrong.", "Right."), SqlText.user("abc", 10), "0123456789abc")
    assert str(error) == "Wrong.\nAt line 1, column 13:\n    0123456789abc\n                ^\nRight."


def test_other_errors_are_passed_on():
    error = TableNotFoundError("x")
    assert translate(error, SqlText.user("x"), "x") is error
    assert "boom" in str(translate(ValueError("boom"), SqlText.user("x"), "x"))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT :a + :b - :a", ["a", "b"]),
        ("SELECT ':a', \":b\", `:c` -- :d\n/* :e */", []),
        ("SELECT x::int, '{\"a\":1}'", []),
        ("WHERE d = DATE :a", ["a"]),
        ("CREATE TABLE t (s STRUCT<a:INT, b:STRING>)", []),
        ("SELECT a[1], map(1, 2)", []),
    ],
)
def test_names_of_parameters(sql, expected):
    assert parameters.names(sql) == expected
