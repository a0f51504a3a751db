"""The manifest explorer."""

from __future__ import annotations

from lakekit import widgets
from tests.widgets.conftest import assert_harmless, settle, shown, static


def test_the_static_form_tells_buckets_and_files(orders):
    page = static(widgets.manifests(orders))
    assert "Version 3: partitions and buckets" in page.texts
    for text in ("dt=d0", "dt=d1", "largest first", "Files of dt="):
        assert text in page.text


def test_the_bucket_with_the_most_runs_comes_first(orders):
    widget = widgets.manifests(orders)
    busiest = max(orders.inspect.buckets().to_pylist(), key=lambda b: (b["runs"], b["deleted_rows"]))
    assert (widget.partition.value, widget.bucket.value) == (busiest["partition"], busiest["bucket"])
    assert widget._runs.data
    assert "2 files" in shown(widget)


def test_another_bucket_shows_its_files(orders):
    widget = widgets.manifests(orders)
    for b in orders.inspect.buckets().to_pylist():
        widget.partition.value = b["partition"]
        widget.bucket.value = b["bucket"]
        assert len(widget._files().rows) == b["files"]
        assert f"bucket {b['bucket']}" in widget._runs.layout.title.text
    assert [label for label, _ in widget.partition.options] == ["dt=d0", "dt=d1"]


def test_the_slider_goes_to_an_older_version(orders):
    widget = widgets.manifests(orders)
    widget.version.value = 1
    settle(widget)
    assert "Version 1: partitions and buckets" in static(widget).text
    assert sum(widget._map.data[0].values[:1]) == sum(orders.inspect.files(version=1)["bytes"].to_pylist())
    widget.version.value = 0
    settle(widget)
    assert "0 buckets" in static(widget).text
    widget.version.value = 3
    settle(widget)
    assert widget.partition.value in ("dt=d0", "dt=d1")


def test_the_colour_can_be_the_level(orders):
    widget = widgets.manifests(orders)
    before = widget._map.layout.title.text
    widget.colour.value = "level"
    assert widget._map.layout.title.text != before


def test_files_of_the_log_are_listed(orders):
    assert "00000000000000000003.json" in shown(widgets.manifests(orders))


def test_a_table_without_key_or_rows(lake):
    table = lake.create_table("widgets.plain", "id BIGINT")
    widget = widgets.manifests(table)
    assert "0 buckets" in static(widget).text
    table.upsert([{"id": 1}])
    widget.refresh.click()
    settle(widget)
    assert "all rows" in static(widget).text
    assert widget.version.value == 1


def test_hostile_names_are_only_text(hostile):
    widget = widgets.manifests(hostile)
    assert_harmless(widget)
    assert "<script>" in static(widget).text
