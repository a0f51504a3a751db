"""Widgets of a table with 10,000 files in 1,000 commits: lists end, and figures sum up."""

from __future__ import annotations

import re

import pytest

from lakekit import widgets
from lakekit.plot.commits import MAX_BARS
from lakekit.plot.files import MAX_TILES
from tests.many_files import COMMITS, PARTITIONS, make
from tests.widgets.conftest import below, shown, static

MOST_BYTES = 400_000
"""Of all HTML of a widget."""


@pytest.fixture(scope="module")
def large(lake):
    """A table whose log names files that are not there; what its files hold is not read here."""
    return make(lake, "widgets.large")


def size(widget):
    return sum(len(w.value) for w in below(widget) if type(w).__name__ == "HTML")


def test_snapshots(large):
    widget = widgets.snapshots(large)
    assert widget.version.max == COMMITS
    assert len(widget._figure.data[0].x) <= MAX_BARS
    assert "20 of 1,001 commits shown" in static(widget).text
    assert size(widget) < MOST_BYTES


def test_manifests(large):
    widget = widgets.manifests(large)
    assert len(widget._map.data[0].ids) <= MAX_TILES + 4 * PARTITIONS
    assert len(widget.partition.options) == PARTITIONS
    assert re.search(r"200 of 2\d\d files shown", shown(widget))
    assert "20 of 40 buckets shown" in static(widget).text
    assert size(widget) < MOST_BYTES


def test_skipping(lake, large):
    widget = widgets.skipping(lake, "SELECT * FROM widgets.large WHERE day = 'd7'")
    assert "200 of 9,991 files shown" in shown(widget)
    assert "20 of 9,991 files shown" in static(widget).text
    assert size(widget) < MOST_BYTES
