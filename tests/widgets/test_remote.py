"""Widgets on a remote session, where the files are read by Spark and not by this process."""

from __future__ import annotations

import pytest

from lakekit import widgets
from tests.widgets.conftest import settle, shown, static
from tests.widgets.test_create import fill


@pytest.fixture(scope="module")
def table(remote_lake):
    """A table that was made with the table creator, with three versions of rows."""
    remote_lake.create_database("afar", if_not_exists=True)
    widget = widgets.create_table(remote_lake)
    fill(widget, "afar.orders", [("id", "bigint", {"key"}), ("v", "STRING", set())], buckets="2")
    widget.create.click()
    settle(widget)
    assert "Created table afar.orders: primary key (id), 2 buckets." in shown(widget)
    for step in ("first", "second"):
        widget.table.upsert([{"id": i, "v": step} for i in range(4)])
    widget.table.delete("id = 3")
    yield widget.table
    remote_lake.drop_table("afar.orders")


def test_the_slider_travels_in_time(table):
    widget = widgets.snapshots(table)
    settle(widget)
    assert "version 3: 3 rows" in static(widget).text
    widget.version.value = 1
    settle(widget)
    assert "version 1: 4 rows" in shown(widget)
    assert "first" in shown(widget)
    widget.since.value, widget.until.value = 2, 3
    widget.compare.click()
    settle(widget)
    assert "1 change after version 2 up to 3" in shown(widget)


def test_files_of_any_version(table):
    widget = widgets.manifests(table)
    widget.version.value = 1
    settle(widget)
    assert "Version 1: partitions and buckets" in static(widget).text
    assert len(widget._map.data[0].values) > 2


def test_what_a_query_does_not_read(remote_lake, table):
    widget = widgets.skipping(remote_lake, f"SELECT * FROM {table.name} WHERE id = 2")
    settle(widget)
    assert "skipped by bucket" in static(widget).text
