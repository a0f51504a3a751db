"""Rows judged one by one; `test_against_spark` checks that none is lost that Spark finds."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from lakekit.skipping.masks import judged_columns, mask
from lakekit.skipping.predicate import And, Anything, Comparison, In, IsNotNull, IsNull, Or, StartsWith
from lakekit.skipping.prune import bind
from lakekit.skipping.values import Columns

ROWS = {
    "n": pa.array([1, 2, None, 4], pa.int64()),
    "f": pa.array([0.0, -0.0, float("nan"), None], pa.float64()),
    "s": pa.array(["a", "ab", None, "b"]),
    "d": pa.array([Decimal("1.50"), Decimal(2), None, Decimal(3)], pa.decimal128(10, 2)),
    "b": pa.array([True, False, None, True]),
    "t": pa.array([dt.datetime(2022, 1, day) for day in (1, 2, 3, 4)], pa.timestamp("us", "UTC")),  # noqa: DTZ001
}
KINDS = {"n": "long", "f": "double", "s": "string", "d": "decimal(10,2)", "b": "boolean", "t": "timestamp"}
COLUMNS = Columns({"fields": [{"name": name, "type": kind, "metadata": {}} for name, kind in KINDS.items()]})


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Comparison("n", "=", 2), [1]),
        (Comparison("N", ">", 1), [0, 1, 3]),
        (Comparison("n", ">", 1.5), [0, 1, 3]),
        (Comparison("n", "=", None), []),
        (Comparison("n", "=", 2.5), []),
        (In("n", (1, 4, None, 9)), [0, 3]),
        (In("n", ()), []),
        (Comparison("f", "=", 0.0), [0, 1]),
        (In("f", (-0.0, 1.0)), [0, 1]),
        (Comparison("f", ">", 5.0), [2]),
        (Comparison("f", "<=", 5.0), [0, 1]),
        (StartsWith("s", "a"), [0, 1]),
        (Comparison("s", ">=", "ab"), [1, 3]),
        (IsNull("s"), [2]),
        (IsNotNull("s"), [0, 1, 3]),
        (Comparison("d", "=", Decimal("1.5")), [0]),
        (Comparison("d", "=", 1.5), [0, 1, 2, 3]),
        (Comparison("d", "<", Decimal("1e30")), [0, 1, 2, 3]),
        (Comparison("b", "=", True), [0, 3]),
        (Comparison("b", "<", True), [0, 1, 2, 3]),
        (Comparison("t", ">=", dt.datetime(2022, 1, 3, tzinfo=dt.timezone.utc)), [2, 3]),
        (Comparison("n", "=", "x"), [0, 1, 2, 3]),
        (Comparison("elsewhere", "=", 1), [0, 1, 2, 3]),
        (Anything("f(x)"), [0, 1, 2, 3]),
        (And(()), [0, 1, 2, 3]),
        (Or(()), []),
        (And((Comparison("n", ">=", 2), StartsWith("s", "a"))), [1]),
        (Or((Comparison("n", "=", 4), IsNull("n"))), [2, 3]),
    ],
)
def test_rows_that_may_be_wanted(predicate, expected):
    found = mask(bind(predicate, COLUMNS), ROWS, 4)
    assert [row for row, wanted in enumerate(found) if wanted] == expected


def test_columns_that_are_missing_are_not_judged():
    bound = bind(And((Comparison("n", "=", 2), Comparison("s", "=", "b"))), COLUMNS)
    assert {column.name for column in judged_columns(bound)} == {"n", "s"}
    assert mask(bound, {"n": ROWS["n"]}, 4).tolist() == [False, True, False, False]
