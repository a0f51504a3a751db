"""The live view of log and files."""

from __future__ import annotations

import threading

import pytest

from lakekit import widgets
from lakekit.ingest.epochs import StreamLog
from lakekit.table.log import TableLog
from tests.pages import HOSTILE, Page
from tests.waiting import wait_until
from tests.widgets.conftest import assert_harmless, settle, shown, static


@pytest.fixture
def view(table):
    made = widgets.live(table)
    yield made
    made.close()
    assert not made.following


def followed(view):
    view.start_button.click()
    wait_until(lambda: "following" in view._log_view.value and view._positions is not None)
    return view


def log_kinds(view):
    return [row[0] for row in view._log().rows]


def test_the_log_is_followed_with_its_row_kinds(table, view):
    table.upsert([{"id": 0, "v": "before"}])
    followed(view)
    table.upsert([{"id": 1, "v": "a"}, {"id": 2, "v": "a"}])
    table.upsert([{"id": 1, "v": "b"}])
    table.delete([{"id": 2}])
    wait_until(lambda: len(log_kinds(view)) == 5 and "1 -D" in shown(view))
    assert log_kinds(view) == ["-D", "+U", "-U", "+I", "+I"]
    styles = [attrs["style"] for tag, attrs in Page(view._log_view.value).tags if tag == "tr" and attrs]
    assert len(styles) == 5
    assert len(set(styles)) == 4
    wait_until(lambda: f"version {table.version}: 2 rows" in view._rows_view.value)
    assert "following" in static(view).text
    assert "+U" in static(view).text


def test_pause_and_go_on_where_it_was(table, view):
    followed(view)
    table.upsert([{"id": 1, "v": "a"}])
    wait_until(lambda: log_kinds(view) == ["+I"])
    view.pause_button.click()
    wait_until(lambda: not view.following)
    assert "paused" in shown(view)
    table.upsert([{"id": 2, "v": "a"}])
    followed(view)
    wait_until(lambda: log_kinds(view) == ["+I", "+I"])
    assert [row[1] for row in view._log().rows] == [2, 1]


def test_the_switch_reads_files_or_the_log_over_them(table, view):
    table.emitting("log").upsert([{"id": 7, "v": "only in the log"}])
    view.find.click()
    settle(view)
    assert "only in the log" not in view._rows_view.value
    view.mode.value = "log"
    settle(view)
    assert "only in the log" in view._rows_view.value
    assert "newer changes over it" in shown(view)
    view.mode.value = "file"
    settle(view)
    assert "only in the log" not in view._rows_view.value


def test_rows_of_a_key(table, view):
    table.upsert([{"id": n, "v": f"v{n}"} for n in range(5)])
    view.key_fields["id"].value = "3"
    settle(view)
    assert "1 row with this key" in shown(view)
    assert [list(row) for row in view._rows.rows] == [[3, "v3"]]
    view.key_fields["id"].value = "three"
    settle(view)
    assert 'role="alert"' in view._message.value
    assert "Traceback" not in shown(view)


def test_only_the_newest_changes_are_kept(table):
    view = followed(widgets.live(table, rows=3))
    table.upsert([{"id": n, "v": "a"} for n in range(10)])
    wait_until(lambda: "10 +I" in shown(view))
    assert len(log_kinds(view)) == 3
    assert "first 3 rows of 10" in view._read()[1].said
    view.close()


def test_what_is_taken_back_is_seen_as_such(table):
    view = followed(widgets.live(table, guarantee=True))
    stream = StreamLog(table, TableLog.of(table), "writer", patience=0)
    stream.send(1, table.lake.spark.createDataFrame([(9, "broken")], table.schema).toArrow())
    wait_until(lambda: log_kinds(view) == ["+I"])
    assert "line-through" not in view._log_view.value
    stream.flip(0)
    stream.close()
    wait_until(lambda: log_kinds(view) == ["-D taken back", "+I"])
    wait_until(lambda: "1 taken back" in shown(view))
    assert "line-through" in view._log_view.value
    view.close()


def test_a_table_without_a_log_says_so(lake, orders):
    view = widgets.live(orders)
    assert "version 3: 4 rows" in shown(view)
    view.start_button.click()
    wait_until(lambda: not view.following)
    assert "has no log" in shown(view)
    assert not view.start_button.disabled


def test_hostile_values_are_only_text(table, view):
    followed(view)
    table.upsert([{"id": n, "v": bad} for n, bad in enumerate(HOSTILE)])
    wait_until(lambda: len(log_kinds(view)) == len(HOSTILE))
    wait_until(lambda: HOSTILE[0] in Page(view._rows_view.value).texts)
    assert_harmless(view)


def test_a_closed_view_leaves_no_thread(table):
    view = followed(widgets.live(table))
    follower = view._follower
    view.close()
    follower.join(30)
    assert not follower.is_alive()
    assert not [t for t in threading.enumerate() if t.name == "lakekit-live"]
