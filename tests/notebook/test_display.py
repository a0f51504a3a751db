"""How results look."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.sql import Row

from lakekit.notebook.display import MAX_CELL, Note, ResultTable, text
from lakekit.units import duration
from tests import pages
from tests.pages import Page

HOSTILE = [
    *pages.HOSTILE,
    "</td></table><h1>",
    "&lt;b&gt;",
]


@pytest.mark.parametrize("bad", HOSTILE)
def test_hostile_text_is_only_text(bad):
    page = Page(ResultTable([bad], [[bad], [{bad: bad}]], False, 0.1)._repr_html_())
    assert {tag for tag, _ in page.tags} <= {"div", "table", "thead", "tbody", "tr", "th", "td"}
    assert {key for _, attrs in page.tags for key in attrs} <= {"class", "style"}
    assert page.texts.count(bad) == 2
    assert bad in Page(Note(bad)._repr_html_()).texts


def test_the_note_counts_rows_and_says_how_long():
    assert ResultTable(["a"], [[1]], False, 0.0421).note == "1 row · 42 ms"
    assert ResultTable(["a"], [], False, 1.26).note == "0 rows · 1.3 s"
    assert ResultTable(["a"], [[1]] * 2000, True, 130).note.startswith("first 2,000 rows, there is more")


def test_an_empty_result_still_shows_its_columns():
    page = Page(ResultTable(["a", "b"], [], False, 0.1)._repr_html_())
    assert page.texts[:2] == ["a", "b"]


def test_columns_of_one_name_are_all_shown():
    page = Page(ResultTable(["a", "a"], [[1, 2]], False, 0.1)._repr_html_())
    assert page.texts[:4] == ["a", "a", "1", "2"]


def test_numbers_are_right_aligned_and_null_is_marked():
    shown = ResultTable(["n", "s"], [[1, "x"], [None, None]], False, 0.1)._repr_html_()
    page = Page(shown)
    aligns = [attrs["style"].split(";")[0] for tag, attrs in page.tags if tag in ("th", "td")]
    assert aligns == ["text-align:right", "text-align:left"] * 3
    assert page.texts.count("null") == 2


def test_long_values_are_cut():
    page = Page(ResultTable(["a"], [["x" * 10_000]], False, 0.1)._repr_html_())
    assert page.texts[1] == "x" * MAX_CELL + "…"


def test_plain_text_is_aligned_and_has_no_line_breaks_in_values():
    lines = repr(ResultTable(["id", "name"], [[1, "a\nb"], [20, None]], True, 0.5)).splitlines()
    assert lines[:4] == ["id | name", "---+-----", " 1 | a b", "20 | null"]
    assert "there is more" in lines[4]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "true"),
        (1.0, "1.0"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("1E+3"), "1000"),
        (dt.datetime(2013, 2, 8, 9, 30), "2013-02-08 09:30:00"),  # noqa: DTZ001
        (dt.date(2013, 2, 8), "2013-02-08"),
        (b"\x00\xff", "X'00ff'"),
        (["a", None, 1], "[a, null, 1]"),
        ({"k": [1]}, "{k: [1]}"),
        (Row(a=1, b=Row(c="x")), "{a: 1, b: {c: x}}"),
    ],
)
def test_values_read_as_in_spark_sql(value, shown):
    assert text(value) == shown


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.0004, "0 ms"), (0.5, "500 ms"), (1.25, "1.2 s"), (59.9, "59.9 s"), (125, "2 min 5 s")],
)
def test_durations(seconds, said):
    assert duration(seconds) == said
