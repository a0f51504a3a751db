"""Names of tables and databases."""

from __future__ import annotations

import pytest

from lakekit.catalog.base import check_name, plain_names, resolve_name
from lakekit.errors import InvalidNameError


@pytest.mark.parametrize(
    ("name", "resolved"),
    [
        ("orders", ("now", "orders")),
        ("Shop.Orders", ("shop", "orders")),
        ("`shop`.`orders`", ("shop", "orders")),
        ("spark_catalog.shop.orders", ("shop", "orders")),
        ("arctic.db.arctic", ("db", "arctic")),
        ("catalog.db.arctic", ("db", "arctic")),
    ],
)
def test_names_are_resolved(name, resolved):
    assert resolve_name(name, "now") == resolved


@pytest.mark.parametrize(
    "name",
    ["", "a.b.c.d", "other.db.t", "a b", "`a.b`", "größe", "a'b", 'a"b', "`a``b`", "a$files", "../x",
     "_delta_log", "global_temp.t", "x" * 129],
)  # fmt: skip
def test_names_that_no_table_can_have(name):
    with pytest.raises(InvalidNameError):
        resolve_name(name, "now")


def test_names_are_lower_case():
    assert check_name("database", "Shop") == "shop"
    assert plain_names("table", ["a", "B", ".dropped-1", "_delta_log", "c d", "e1"]) == ["a", "e1"]
