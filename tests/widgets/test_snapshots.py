"""The snapshot explorer."""

from __future__ import annotations

from lakekit import widgets
from tests.pages import HOSTILE, Page
from tests.widgets.conftest import assert_harmless, settle, shown, static


def test_the_static_form_tells_the_history_and_the_rows(orders):
    page = static(widgets.snapshots(orders))
    assert "Snapshots of widgets.orders" in page.texts
    for text in ("4 commits", "CREATE TABLE", "UPSERT", "DELETE", "version 3: 4 rows", "second"):
        assert text in page.text
    assert {tag for tag, _ in page.tags} == {"div", "table", "thead", "tbody", "tr", "th", "td"}


def test_the_slider_travels_in_time(orders):
    widget = widgets.snapshots(orders)
    assert (widget.version.min, widget.version.max, widget.version.value) == (0, 3, 3)
    widget.version.value = 1
    settle(widget)
    assert "version 1: 4 rows" in shown(widget)
    assert "second" not in shown(widget)
    assert "rows inserted, updated, deleted 4, 0, 0" in shown(widget)
    assert widget._figure.layout.shapes[0].x0 == 0.5
    assert "version 1" in static(widget).text


def test_a_table_of_many_rows_shows_the_first(orders):
    assert "first 2 of 4 rows" in shown(widgets.snapshots(orders, limit=2))


def test_what_changed_between_two_versions(orders):
    widget = widgets.snapshots(orders)
    widget.since.value, widget.until.value = 1, 3
    widget.compare.click()
    settle(widget)
    assert "6 changes after version 1 up to 3" in shown(widget)
    kinds = [row[0] for row in widget._changes.rows]
    assert kinds == ["-D", "-U", "+U", "-U", "+U", "+I"]
    assert widget._changes.columns[:4] == ["kind", "version", "dt", "id"]
    toned = [
        attrs["style"] for tag, attrs in Page(widget._changes._repr_html_()).tags if tag == "tr" and attrs
    ]
    assert len(toned) == 6
    assert len(set(toned)) == 4


def test_versions_in_the_wrong_order_are_an_error_in_the_widget(orders):
    widget = widgets.snapshots(orders)
    widget.since.value = 3
    widget.compare.click()
    assert "'From' cannot be 3" in shown(widget)
    assert "Allowed: a version before 3" in static(widget).text
    widget.since.value = 2
    widget.compare.click()
    settle(widget)
    assert "cannot be" not in shown(widget)


def test_refresh_follows_the_table(lake):
    table = lake.create_table("widgets.growing", "id BIGINT", primary_key=["id"], buckets=1)
    widget = widgets.snapshots(table)
    assert "version 0: 0 rows" in shown(widget)
    table.upsert([{"id": 1}])
    widget.refresh.click()
    settle(widget)
    assert widget.version.value == 1
    assert "version 1: 1 row" in shown(widget)


def test_a_failure_is_shown_in_the_widget(lake):
    table = lake.create_table("widgets.dropped", "id BIGINT", primary_key=["id"], buckets=1)
    widget = widgets.snapshots(table)
    lake.drop_table("widgets.dropped")
    widget.refresh.click()
    settle(widget)
    assert 'role="alert"' in widget._message.value
    assert "Traceback" not in shown(widget)
    assert not widget.refresh.disabled


def test_hostile_values_are_only_text(hostile):
    widget = widgets.snapshots(hostile)
    widget.compare.click()
    settle(widget)
    assert_harmless(widget)
    assert all(bad in static(widget).texts for bad in HOSTILE)


def test_a_closed_widget_leaves_no_thread(orders):
    widget = widgets.snapshots(orders)
    widget.version.value = 1
    thread = widget._thread
    widget.close()
    if thread is not None:
        thread.join(60)
        assert not thread.is_alive()
