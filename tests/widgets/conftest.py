"""A table for the widgets, and what all tests of widgets ask of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.pages import HOSTILE, Page
from tests.waiting import wait_until

HOSTILE_COLUMN = "<script>x</script>"
"""As bad as the name of a column can be."""

LOG = {"log-store.enabled": True, "log-store.address": "embedded"}

_TAGS = {"div", "table", "thead", "tbody", "tr", "th", "td", "pre", "span"}
_ATTRIBUTES = {"class", "style", "role"}


def below(widget) -> Iterator:
    """Yields a widget and all in it."""
    yield widget
    for child in getattr(widget, "children", ()):
        yield from below(child)


def shown(widget) -> str:
    """Returns the text that the widget shows as HTML."""
    return " ".join(Page(w.value).text for w in below(widget) if type(w).__name__ == "HTML")


def static(widget) -> Page:
    """Returns the static form, as a saved notebook has it."""
    return Page(widget._repr_mimebundle_()["text/html"])


def settle(widget, seconds: float = 90) -> None:
    """Waits until nothing runs in the background."""
    wait_until(lambda: not widget.busy, seconds=seconds)


def assert_harmless(widget) -> None:
    """Checks that no value became part of the page, in no piece of the widget nor in its static form."""
    pages = [Page(w.value) for w in below(widget) if type(w).__name__ == "HTML"]
    for page in (*pages, static(widget)):
        assert {tag for tag, _ in page.tags} <= _TAGS
        assert {key for _, attrs in page.tags for key in attrs} <= _ATTRIBUTES
    for figure in (w for w in below(widget) if hasattr(w, "to_plotly_json")):
        _assert_no_markup(json.loads(figure.to_json()))


def _assert_no_markup(value) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in ("ids", "parents"):  # identities are not shown
                _assert_no_markup(item)
    elif isinstance(value, list):
        for item in value:
            _assert_no_markup(item)
    elif isinstance(value, str):
        assert not any(mark in value.lower() for mark in ("<img", "<script", "<a "))


@pytest.fixture(scope="module", autouse=True)
def database(lake):
    lake.create_database("widgets")
    yield
    lake.drop_database("widgets", cascade=True)


@pytest.fixture(scope="module")
def orders(lake):
    """Three versions of rows: four inserted, two updated and one inserted, one deleted."""
    table = lake.create_table(
        "widgets.orders",
        "dt STRING, id BIGINT, amount DOUBLE, note STRING",
        primary_key=["dt", "id"],
        partition_by=["dt"],
        buckets=2,
        properties={"compaction.auto": False},
    )
    table.upsert([{"dt": f"d{i % 2}", "id": i, "amount": float(i), "note": "first"} for i in range(4)])
    table.upsert([{"dt": f"d{i % 2}", "id": i, "amount": 10.0 * i, "note": "second"} for i in (2, 3, 5)])
    table.delete([{"dt": "d0", "id": 0}])
    return table


@pytest.fixture(scope="module")
def hostile(lake):
    """A table whose every name and value is an attack."""
    table = lake.create_table(
        "widgets.hostile",
        f"dt STRING, id STRING, `{HOSTILE_COLUMN}` STRING",
        primary_key=["dt", "id"],
        partition_by=["dt"],
        buckets=1,
        comment=HOSTILE[1],
    )
    table.upsert([{"dt": bad, "id": bad, HOSTILE_COLUMN: bad} for bad in HOSTILE])
    table.upsert([{"dt": bad, "id": bad, HOSTILE_COLUMN: "x" + bad} for bad in HOSTILE])
    return table


@pytest.fixture
def table(lake, request):
    """A table of the test's own, with a log."""
    name = request.node.name.split("[")[0].removeprefix("test_")[:60]
    made = lake.create_table(
        f"widgets.{name}",
        "id BIGINT, v STRING",
        primary_key=["id"],
        buckets=1,
        properties={**LOG, "log-store.topic": f"widgets.{name}"},
    )
    yield made
    lake.drop_table(str(made.name), if_exists=True)
