"""The magics on a Spark Connect server."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from IPython.utils.capture import capture_output

from lakekit.errors import QueryError
from lakekit.notebook.running import QueryInterrupted

ENDLESS = "SELECT count(*) FROM range(10000000) a CROSS JOIN range(10000000) b WHERE hash(a.id, b.id) = 1"


@pytest.fixture
def shell(ipython, remote_lake, monkeypatch):
    monkeypatch.setattr("lakekit.session.connect.current", lambda: remote_lake)
    return ipython


def cell(shell, line, body):
    with capture_output() as captured:
        shell.run_cell_magic("lakesql", line, body)
    return [output.data["text/plain"] for output in captured.outputs]


def test_values_are_bound_and_the_limit_is_kept(shell):
    (shown,) = cell(shell, "--limit 1 --param low=1", "SELECT id FROM range(5) WHERE id >= :low ORDER BY id")
    assert shown.splitlines()[2].strip() == "1"
    assert "there is more" in shown


def test_errors_show_the_place_in_the_cell(shell):
    with pytest.raises(QueryError, match="line 3"):
        cell(shell, "", "SELECT id,\n  nothing_there FROM range(3)")


def test_an_interrupt_ends_the_operation_and_the_session_goes_on(shell, remote_lake):
    working = threading.Event()

    def progress(stages, inflight_tasks, operation_id, done):
        if inflight_tasks:
            working.set()

    def interrupt():
        if working.wait(120):
            os.kill(os.getpid(), signal.SIGINT)

    remote_lake.spark.registerProgressHandler(progress)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    watcher = threading.Thread(target=interrupt)
    watcher.start()
    try:
        with pytest.raises(QueryInterrupted, match="cancelled"):
            cell(shell, "", ENDLESS)
    finally:
        watcher.join()
        signal.signal(signal.SIGINT, before)
        remote_lake.spark.removeProgressHandler(progress)
    assert cell(shell, "", "SELECT 1 AS one")[0].startswith("one\n")
