"""The ingestion panel."""

from __future__ import annotations

import threading

import pytest

from lakekit import InvalidOptionError, plot, widgets
from lakekit.ingest.history import History
from lakekit.ingest.ingestion import Status
from tests.ingest.test_ingestion import Feed
from tests.pages import HOSTILE
from tests.waiting import wait_until
from tests.widgets.conftest import LOG, assert_harmless, settle, shown, static


@pytest.fixture
def feed(lake, tmp_path):
    return Feed(lake, tmp_path / "feed", "id BIGINT, v STRING")


def usable(panel):
    return {name for name, each in panel._buttons.items() if not each.disabled}


def test_a_stream_is_steered_by_clicks(table, feed):
    panel = widgets.ingestion(table, feed.rows, interval=1000)
    assert usable(panel) == {"start"}
    feed.put({"id": 1, "v": "a"}, {"id": 2, "v": "a"})
    panel.start.click()
    wait_until(lambda: panel.handle is not None and panel.handle.status.rows_in == 2)
    settle(panel)
    wait_until(lambda: "changes to the log 2" in shown(panel))
    assert "running" in shown(panel)
    wait_until(lambda: "FileStreamSource[…/feed]" in shown(panel))
    assert usable(panel) == {"pause", "stop", "flush"}
    assert table.to_df().count() == 0
    panel.flush.click()
    settle(panel)
    wait_until(lambda: "last commits to the files" in shown(panel))
    assert table.to_df().count() == 2
    panel.pause.click()
    settle(panel)
    wait_until(lambda: usable(panel) == {"resume", "stop"})
    feed.put({"id": 3, "v": "b"})
    panel.resume.click()
    wait_until(lambda: panel.handle.status.rows_in == 3)
    settle(panel)
    panel.stop.click()
    settle(panel)
    wait_until(lambda: usable(panel) == {"start"})
    assert table.to_df().count() == 3
    wait_until(lambda: panel._follower is None)
    assert len(panel._figure.data[0].x) == len(panel._history) > 0
    assert max(panel._figure.data[0].y) > 0
    page = static(panel)
    for text in ("state: stopped", "rows in 3", "STREAM"):
        assert text in page.text


def test_a_failure_is_shown_and_ends_the_watching(table, feed):
    feed.put({"id": None, "v": HOSTILE[1]})
    panel = widgets.ingestion(table.write_stream(feed.rows, interval=1000))
    wait_until(lambda: panel._follower is None)
    assert "null in the primary key" in shown(panel)
    assert "null in the primary key" in static(panel).text
    assert usable(panel) == {"start"}
    assert_harmless(panel)
    panel.handle.stop()


def test_a_closed_panel_leaves_the_stream_and_no_thread(table, feed):
    handle = table.write_stream(feed.rows, interval=1000)
    panel = widgets.ingestion(handle)
    follower = panel._follower
    panel.close()
    follower.join(30)
    assert not follower.is_alive()
    assert handle.status.state == "running"
    handle.stop()
    assert not [t for t in threading.enumerate() if t.name == "lakekit-panel"]


def test_a_log_that_cannot_be_reached_is_said_in_the_widget(lake, feed):
    table = lake.create_table(
        "widgets.away",
        "id BIGINT, v STRING",
        primary_key=["id"],
        buckets=1,
        properties={**LOG, "log-store.address": "127.0.0.1:1", "log-store.topic": "away"},
    )
    panel = widgets.ingestion(table, feed.rows)
    panel.start.click()
    settle(panel)
    assert "cannot be reached" in shown(panel)
    assert usable(panel) == {"start"}


def test_arguments_that_do_not_fit(table, feed):
    with pytest.raises(InvalidOptionError, match="no rows for table"):
        widgets.ingestion(table)


def test_rates_come_from_one_look_to_the_next():
    history = History(length=2)
    for second, rows in enumerate((0, 10, 40, 40)):
        history.add(
            Status("running", rows_in=rows, changes_out=2 * rows, log_latency_ms=(1.0, 5.0, 3.0)),
            2.0 * second,
        )
    assert [(s.rows_in_per_s, s.changes_out_per_s, s.log_latency_ms) for s in history] == [
        (15, 30, 3),
        (0, 0, 3),
    ]
    figure = plot.ingestion(history)
    assert [list(trace.y) for trace in figure.data] == [[15, 0], [30, 0], [3, 3], [0, 0]]
