"""The line of the magic."""

from __future__ import annotations

import pytest

from lakekit.errors import InvalidOptionError, QueryError
from lakekit.notebook.options import CHART_LIMIT, DEFAULT_LIMIT, Options, parse_cell, parse_line


@pytest.mark.parametrize(
    ("line", "options", "rest"),
    [
        ("", Options(), ""),
        ("  ", Options(), ""),
        ("SELECT 1", Options(), "SELECT 1"),
        ("--limit 5", Options(limit=5), ""),
        ("--limit=5 SELECT 1", Options(limit=5), "SELECT 1"),
        ("--into delays SELECT 1", Options(into="delays"), "SELECT 1"),
        ("delays << SELECT 1", Options(into="delays"), "SELECT 1"),
        ("delays <<", Options(into="delays"), ""),
        ("delays << --limit 3 SELECT 1", Options(into="delays", limit=3), "SELECT 1"),
        ("--into 'delays' SELECT 1", Options(into="delays"), "SELECT 1"),
    ],
)
def test_options_come_first_and_the_rest_is_sql(line, options, rest):
    assert parse_line(line) == (options, rest)


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("--display json", Options(display="json")),
        ("--display NONE", Options(display="none")),
        ("--chart line", Options(chart="line", limit=CHART_LIMIT)),
        ("--chart line --limit 7", Options(chart="line", limit=7)),
        ("--explain", Options(explain=True)),
        ("--timeout 1.5", Options(timeout=1.5)),
        ("--at 7", Options(at=7)),
        ("--at '2024-05-01 12:00'", Options(at="2024-05-01 12:00")),
        ("--mode log --at=2024-05-01", Options(mode="log", at="2024-05-01")),
    ],
)
def test_options_with_words_and_numbers(line, options):
    assert parse_line(f"{line} SELECT 1") == (options, "SELECT 1")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("day=8", 8),
        ("day=-8", -8),
        ("day=2013-02-08", "2013-02-08"),
        ("code=007", "007"),
        ("share=1.5", 1.5),
        ("share=.5e3", 500.0),
        ("flag=true", True),
        ("flag=NULL", None),
        ("carrier=UA", "UA"),
        ("carrier='UA'", "UA"),
        ('day="8"', "8"),
        ("name='New York'", "New York"),
        ("empty=", ""),
        ("url=a=b", "a=b"),
    ],
)
def test_a_parameter_is_a_literal_or_a_string(text, value):
    options, rest = parse_line(f"--param {text} SELECT 1")
    assert list(options.params.values()) == [value]
    assert type(next(iter(options.params.values()))) is type(value)
    assert rest == "SELECT 1"


def test_several_parameters():
    options, rest = parse_line("--param a=1 --param b=x SELECT :a, :b")
    assert options.params == {"a": 1, "b": "x"}
    assert rest == "SELECT :a, :b"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT transform(a, x -> x + 1) FROM t",
        """SELECT '{"a": 1}' -- a comment""",
        "-- a comment",
        "SELECT a --limit 5",
        "SELECT 1 << 2",
        "(SELECT 1)",
    ],
)
def test_sql_is_left_alone(sql):
    assert parse_line(sql) == (Options(), sql)
    assert parse_line(f"--limit 7 {sql}") == (Options(limit=7), sql)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--limt 5", "Did you mean '--limit'"),
        ("--limit", "has no value"),
        ("--limit 0", "cannot be '0'"),
        ("--limit -1", "cannot be '-1'"),
        ("--limit many", "cannot be 'many'"),
        ("--into", "has no value"),
        ("--into 2x", "cannot be '2x'"),
        ("--into a.b", "cannot be 'a.b'"),
        ("--param", "NAME=VALUE"),
        ("--param day", "NAME=VALUE"),
        ("--display html", "cannot be 'html'.*table, plain, json or none"),
        ("--chart pie", "cannot be 'pie'.*bar, line, area or scatter"),
        ("--chart", "has no value"),
        ("--timeout 0", "cannot be '0'"),
        ("--timeout soon", "cannot be 'soon'"),
        ("--mode both", "cannot be 'both'.*file or log"),
    ],
)
def test_a_wrong_option_is_named(line, message):
    with pytest.raises(InvalidOptionError, match=message):
        parse_line(line)


def test_a_cell_takes_its_sql_from_the_lines_below():
    options, sql = parse_cell("--limit 3", "SELECT 1\n")
    assert (options.limit, sql) == (3, "SELECT 1\n")
    assert parse_cell("", "SELECT 1")[0].limit == DEFAULT_LIMIT


def test_sql_on_the_line_of_a_cell_is_an_error():
    with pytest.raises(QueryError, match="only options"):
        parse_cell("SELECT a", "FROM t")
