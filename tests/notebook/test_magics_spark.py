"""The magics on a real lake."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from IPython.utils.capture import capture_output

from lakekit.errors import LakeError, QueryError, VersionNotFoundError
from lakekit.notebook.running import QueryInterrupted

ENDLESS = "SELECT count(*) FROM range(10000000) a CROSS JOIN range(10000000) b WHERE hash(a.id, b.id) = 1"


@pytest.fixture
def shell(ipython, lake, monkeypatch):
    monkeypatch.setattr("lakekit.session.connect.current", lambda: lake)
    lake.create_database("magics", if_not_exists=True)
    lake.drop_table("magics.orders", if_exists=True)
    return ipython


def cell(shell, line, body):
    with capture_output() as captured:
        shell.run_cell_magic("lakesql", line, body)
    return [output.data["text/plain"] for output in captured.outputs]


def test_a_cell_makes_a_table_fills_it_and_reads_it(shell):
    shell.user_ns["low"] = 2
    shown = cell(
        shell,
        "--limit 2 --param name=x",
        """CREATE TABLE magics.orders (id INT, name STRING, at TIMESTAMP, PRIMARY KEY (id)) USING lake;
        INSERT INTO magics.orders VALUES (1, 'a', NULL), (2, :name, TIMESTAMP '2013-02-08 12:00:00'), (3, 'c', NULL),
            (4, 'd', NULL);
        SELECT id, name, at FROM magics.orders WHERE id >= :low ORDER BY id;
        SELECT count(*) AS files FROM magics.orders$files WHERE rows > 0""",
    )
    assert "magics.orders" in shown[0]
    assert "4 rows inserted" in shown[1]
    assert shown[2].splitlines()[:4] == [
        "id | name | at",
        "---+------+--------------------",
        " 2 | x    | 2013-02-08 12:00:00",
        " 3 | c    | null",
    ]
    assert "first 2 rows, there is more" in shown[2]
    assert shown[3].startswith("files\n")


def test_lakemode_chooses_where_queries_read(shell, lake):
    def says(line):
        with capture_output() as captured:
            shell.run_line_magic("lakemode", line)
        return captured.outputs[0].data["text/plain"]

    try:
        assert says("") == "Queries read mode file"
        assert says("log") == "Queries read mode log: the files, with the log's newer changes over them"
        assert lake.settings["lake.read.mode"] == "log"
        assert "log" in says("")
        with pytest.raises(LakeError, match="tape"):
            shell.run_line_magic("lakemode", "tape")
        assert says("file") == "Queries read mode file"
    finally:
        lake.settings.clear()


def test_a_result_in_a_variable_is_a_frame_of_the_session(shell):
    cell(shell, "--into numbers", "SELECT id FROM range(3)")
    assert [row.id for row in shell.user_ns["numbers"].collect()] == [0, 1, 2]


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT 1;\nSELECT nothing_there FROM range(3)", "line 3"),
        ("SELECT 1;\nSELEC 2", "line 3"),
        ("SELECT\n  assert_true(id < 1) FROM range(3)", "ASSERT_TRUE|is not true"),
        ("SELECT * FROM no_such_table", "no_such_table"),
    ],
)
def test_errors_are_short_and_show_the_place_in_the_cell(shell, sql, shown):
    with capture_output(), pytest.raises(LakeError, match=shown) as caught:
        shell.run_cell_magic("lakesql", "", sql)
    assert len("\n".join(caught.value._render_traceback_()).splitlines()) < 10


def test_an_interrupt_ends_the_job_and_the_session_goes_on(shell, lake, monkeypatch):
    context = lake.spark.sparkContext
    # What is left in a notebook once the cell that made the session has ended.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    stop = threading.Event()

    def interrupt():
        while not context.statusTracker().getActiveStageIds():
            if stop.wait(0.05):
                return
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    try:
        with pytest.raises(QueryInterrupted, match="cancelled"):
            shell.run_cell_magic("lakesql", "", ENDLESS)
    finally:
        stop.set()
        watcher.join()
        signal.signal(signal.SIGINT, before)
    assert not context.statusTracker().getActiveJobsIds()
    assert cell(shell, "", "SELECT 1 AS one")[0].startswith("one\n")


def test_a_failing_statement_ends_the_cell(shell):
    with capture_output() as captured, pytest.raises(QueryError):
        shell.run_cell_magic("lakesql", "", "SELECT 1; SELECT oops; SELECT 2")
    assert len(captured.outputs) == 1


def test_a_cell_reads_the_lake_as_it_was(shell, lake):
    lake.drop_table("magics.travelled", if_exists=True)
    cell(shell, "", "CREATE TABLE magics.travelled (id BIGINT, v INT, PRIMARY KEY (id)) USING lake")
    table = lake.table("magics.travelled")
    table.upsert([{"id": 1, "v": 1}])
    table.upsert([{"id": 1, "v": 2}])
    one = "SELECT v FROM magics.travelled"
    assert cell(shell, "--at 1", one)[0].splitlines()[2].strip() == "1"
    assert cell(shell, "--at 1", f"{one} VERSION AS OF 2")[0].splitlines()[2].strip() == "2"
    then = table.inspect.snapshots().to_pylist()[1]["committed_at"].isoformat()
    assert cell(shell, f"--at '{then}'", one)[0].splitlines()[2].strip() == "1"
    assert cell(shell, "", one)[0].splitlines()[2].strip() == "2"
    with pytest.raises(VersionNotFoundError, match="7"):
        cell(shell, "--at 7", one)
    shell.run_cell_magic("lakesql", "old << --at 1", one)
    assert shell.user_ns["old"].first().v == 1


def test_a_version_that_a_vacuum_has_emptied_is_told_in_a_few_words(shell, lake):
    lake.drop_table("magics.vacuumed", if_exists=True)
    cell(shell, "", "CREATE TABLE magics.vacuumed (id BIGINT, v INT, PRIMARY KEY (id)) USING lake")
    table = lake.table("magics.vacuumed")
    for step in range(3):
        table.upsert([{"id": i, "v": step} for i in range(step, 10)])
    table.compact()
    table.vacuum(0, force=True)
    with pytest.raises(QueryError, match=r"part-[\w-]+\.parquet is not there any more") as caught:
        cell(shell, "--at 2", "SELECT * FROM magics.vacuumed")
    assert len(caught.value._render_traceback_()) < 4
    assert "vacuum" in caught.value.hint


def test_explain_tells_what_is_read_and_runs_nothing(shell, lake):
    lake.drop_table("magics.explained", if_exists=True)
    cell(
        shell,
        "",
        "CREATE TABLE magics.explained (id BIGINT, PRIMARY KEY (id)) USING lake TBLPROPERTIES ('bucket' = '4')",
    )
    lake.table("magics.explained").upsert([{"id": i} for i in range(100)])
    (shown,) = cell(shell, "--explain --param id=7", "SELECT * FROM magics.explained WHERE id = :id")
    assert "explained" in shown
    assert "bucket" in shown
    version = lake.table("magics.explained").version
    with pytest.raises(QueryError, match="Only a query can be explained"):
        cell(shell, "--explain", "INSERT INTO magics.explained VALUES (1000)")
    assert lake.table("magics.explained").version == version
