"""The skipping explorer."""

from __future__ import annotations

from lakekit import widgets
from tests.pages import HOSTILE
from tests.widgets.conftest import HOSTILE_COLUMN, assert_harmless, settle, shown, static

QUERY = "SELECT * FROM widgets.orders WHERE dt = 'd0' AND id = 2 AND length(note) > 1"


def test_the_static_form_tells_what_is_read_and_why(lake, orders):
    page = static(widgets.skipping(lake, QUERY))
    assert QUERY in page.texts
    for text in ("widgets.orders, version 3", "skipped by partition", "its partition holds no wanted row"):
        assert text in page.text
    assert "Not of use: " in page.text


def test_a_query_is_explained_on_click(lake, orders):
    widget = widgets.skipping(lake)
    assert not widget._result.children
    widget.explain.click()
    assert "There is no query to explain" in shown(widget)
    widget.sql.value = QUERY
    widget.explain.click()
    settle(widget)
    report = lake.explain(QUERY)
    assert f"{report.read.files_left} of {report.total.files_left} files" in widget._figure.layout.title.text
    assert "There is no query" not in shown(widget)
    widget.which.value = "read"
    assert f"{report.read.files_left} file" in shown(widget)
    assert "its partition holds" not in shown(widget)


def test_values_are_bound(lake, orders):
    widget = widgets.skipping(lake, "SELECT * FROM widgets.orders WHERE dt = :day", day="d1", other=1)
    assert "skipped by partition" in static(widget).text


def test_each_table_of_a_query_has_its_report(lake, orders, hostile):
    widget = widgets.skipping(lake, "SELECT * FROM widgets.orders JOIN widgets.hostile USING (dt)")
    assert len(widget.table.options) == 2
    widget.table.value = 1
    assert "hostile" in widget._figure.layout.title.text
    assert all(
        name in static(widget).text for name in ("widgets.orders, version 3", "widgets.hostile, version")
    )


def test_an_error_is_shown_with_its_place(lake, orders):
    widget = widgets.skipping(lake, "SELECT * FROM widgets.orders WHERE nothing = 1")
    assert "nothing" in shown(widget)
    assert "At line 1" in static(widget).text
    widget.sql.value = "DROP TABLE widgets.orders"
    widget.explain.click()
    settle(widget)
    assert 'role="alert"' in widget._message.value
    assert lake.table("widgets.orders").version == 3


def test_hostile_values_are_only_text(lake, hostile):
    for bad in HOSTILE:
        quoted = bad.replace("'", "''")
        query = f"SELECT `{HOSTILE_COLUMN}` FROM widgets.hostile WHERE dt = '{quoted}' AND length(id) > 1"
        widget = widgets.skipping(lake, query)
        assert widget._reports
        assert_harmless(widget)
        assert query in static(widget).texts
