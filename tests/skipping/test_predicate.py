"""Predicates as data: joined and shown as people write them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from lakekit.skipping.predicate import (
    And,
    Anything,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Or,
    StartsWith,
    all_of,
    any_of,
    conjuncts,
)

A, B, C = Comparison("a", "=", 1), Comparison("b", "<", 2.5), IsNull("c")


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (A, "a = 1"),
        (Comparison("a", "=", None), "a = NULL"),
        (Comparison("a", "=", True), "a = TRUE"),
        (Comparison("a", ">=", "it's"), "a >= 'it''s'"),
        (Comparison("a", "=", b"\xff"), "a = X'FF'"),
        (Comparison("a", "=", Decimal("1.50")), "a = 1.50"),
        (Comparison("a", "=", dt.date(2022, 1, 2)), "a = '2022-01-02'"),
        (In("a", (1, 2)), "a IN (1, 2)"),
        (In("a", tuple(range(9))), "a IN (0, 1, 2, … 6 more)"),
        (IsNotNull("a"), "a IS NOT NULL"),
        (StartsWith("a", "x"), "a LIKE 'x%'"),
        (And((A, Or((B, C)))), "a = 1 AND (b < 2.5 OR c IS NULL)"),
        (Or((And((A, B)), C)), "(a = 1 AND b < 2.5) OR c IS NULL"),
        (And(()), "TRUE"),
        (Or(()), "FALSE"),
        (Anything("f(a)"), "f(a)"),
    ],
)
def test_text(predicate, text):
    assert str(predicate) == text


def test_joining():
    assert all_of(A) is A
    assert all_of(A, And((B, And((C,))))) == And((A, B, C))
    assert all_of() == And(())
    assert any_of(A) is A
    assert any_of(A, B) == Or((A, B))
    assert conjuncts(And((A, And((B, C))))) == [A, B, C]
    assert conjuncts(Or((A, B))) == [Or((A, B))]
