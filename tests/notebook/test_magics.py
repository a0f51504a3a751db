"""The magics over a stand-in for the lake: what is asked of it, and what is shown."""

from __future__ import annotations

import datetime as dt
import threading
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from IPython.core.error import UsageError
from IPython.utils.capture import capture_output
from pyspark.sql import Row
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from lakekit.errors import InvalidOptionError, QueryError
from lakekit.notebook import progress
from lakekit.notebook.options import CHART_LIMIT
from lakekit.notebook.running import QueryInterrupted
from lakekit.table.commit import Commit


class Frame:
    """A result that counts how often it is run."""

    def __init__(self, names, rows, kind=None):
        self.columns = names
        self.schema = StructType([StructField(n, kind or StringType()) for n in names])
        self.rows = [Row(*row) for row in rows]
        self.taken = []

    def take(self, count):
        self.taken.append(count)
        return self.rows[:count]


class Context:
    def __init__(self):
        self.cancelled = threading.Event()

    def addJobTag(self, tag):  # noqa: N802
        self.tag = tag

    def cancelJobsWithTag(self, tag):  # noqa: N802
        assert tag == self.tag
        self.cancelled.set()

    def getLocalProperty(self, name):  # noqa: N802
        return None

    def setLocalProperty(self, name, value):  # noqa: N802
        self.group = value

    def statusTracker(self):  # noqa: N802
        return self

    def getJobIdsForGroup(self, group):  # noqa: N802
        assert group == self.group
        return [7]

    def getJobInfo(self, job):  # noqa: N802
        return SimpleNamespace(stageIds=[1, 2])

    def getStageInfo(self, stage):  # noqa: N802
        return SimpleNamespace(numTasks=10, numCompletedTasks=2 * stage)


class Session:
    def __init__(self):
        self.sparkContext = Context()
        self.conf = {"spark.sql.session.timeZone": "UTC"}


class FakeLake:
    stopped = False

    def __init__(self):
        self.spark = Session()
        self.asked = []
        self.frame = Frame(["n"], [[i] for i in range(50)], LongType())
        self.action = None

    def sql(self, query, /, **params):
        self.received = query
        self.asked.append((query.strip(), params))
        if self.action:
            self.action()
        return self.frame


@pytest.fixture
def fake(monkeypatch):
    lake = FakeLake()
    monkeypatch.setattr("lakekit.session.connect.current", lambda: lake)
    # It asks for a real session once another test has started one.
    monkeypatch.setattr("pyspark.util.inheritable_thread_target", lambda session: session)
    return lake


@pytest.fixture
def shell(ipython, fake):
    before = dict(ipython.user_ns)
    yield ipython
    for name in set(ipython.user_ns) - set(before):
        del ipython.user_ns[name]


def cell(shell, line, body):
    """Runs a cell and returns what it displayed, as plain text."""
    with capture_output() as captured:
        shell.run_cell_magic("lakesql", line, body)
    return [output.data["text/plain"] for output in captured.outputs]


def test_a_cell_shows_its_rows_and_asks_for_one_more_than_the_limit(shell, fake):
    (shown,) = cell(shell, "--limit 3", "SELECT n FROM t")
    assert fake.asked == [("SELECT n FROM t", {})]
    assert fake.frame.taken == [4]
    assert shown.splitlines()[:5] == ["n", "-", "0", "1", "2"]
    assert "first 3 rows, there is more" in shown


def test_all_rows_fit_into_the_limit(shell, fake):
    (shown,) = cell(shell, "--limit 50", "SELECT n FROM t")
    assert "50 rows" in shown
    assert "more" not in shown


def test_a_line_magic_runs_its_sql(shell, fake):
    with capture_output() as captured:
        shell.run_line_magic("lakesql", "--limit 2 SELECT a FROM `t$files` WHERE x -> '{y}'")
    assert fake.asked == [("SELECT a FROM `t$files` WHERE x -> '{y}'", {})]
    assert len(captured.outputs) == 1


def test_braces_and_dollars_of_sql_are_not_expanded(shell, fake):
    shell.user_ns["files"] = "gone"
    shell.user_ns["a"] = "gone"
    sql = """SELECT '{a}', '{"a": 1}' FROM orders$files"""
    with capture_output():
        shell.run_cell(f"%lakesql {sql}")
        shell.run_cell(f"%%lakesql\n{sql}")
    assert [query for query, _ in fake.asked] == [sql, sql]


def test_each_statement_shows_its_result_in_turn(shell, fake):
    shown = cell(shell, "", "SELECT 1; -- a comment; with a semicolon\nSELECT ';';")
    assert [query for query, _ in fake.asked] == ["SELECT 1", "SELECT ';'"]
    assert len(shown) == 2


def test_a_statement_without_a_result_says_that_it_is_done(shell, fake):
    fake.frame = Frame([], [])
    (shown,) = cell(shell, "", "CREATE TABLE t (a INT)")
    assert shown.startswith("done")
    assert fake.frame.taken == []


def test_a_write_says_what_it_did(shell, fake):
    done = Commit(
        version=3, operation="UPSERT", rows_updated=1, rows_late=2, files_added=4, bytes_added=33364
    )
    fake.frame = Frame(list(done.as_dict()), [list(done.as_dict().values())])
    (shown,) = cell(shell, "", "INSERT INTO t SELECT 1")
    assert shown.startswith(
        "UPSERT, version 3 · 1 row updated · 2 rows late and ignored · 4 files added (33.4 KB) · "
    )


def test_a_write_without_effect_says_so(shell, fake):
    done = Commit(version=3, operation="DELETE", skipped=True)
    fake.frame = Frame(list(done.as_dict()), [list(done.as_dict().values())])
    (shown,) = cell(shell, "", "DELETE FROM t WHERE false")
    assert "nothing was committed" in shown


def test_a_definition_says_what_it_did_but_a_column_named_status_is_a_result(shell, fake):
    fake.frame = Frame(["status"], [["Created table t."]])
    assert cell(shell, "", "CREATE TABLE t (a INT)")[0].startswith("Created table t. · ")
    assert cell(shell, "", "SELECT status FROM t")[0].startswith("status\n")
    assert cell(shell, "", "(SELECT status FROM t)")[0].startswith("status\n")


@pytest.mark.parametrize("line", ["--into delays", "delays <<"])
def test_into_keeps_the_frame_and_runs_nothing(shell, fake, line):
    (shown,) = cell(shell, line, "SELECT n FROM t")
    assert shell.user_ns["delays"] is fake.frame
    assert fake.frame.taken == []
    assert "delays" in shown


def test_into_takes_the_last_statement(shell, fake):
    cell(shell, "--into last", "SELECT 1; SELECT 2")
    assert fake.frame.taken == [21]
    assert shell.user_ns["last"] is fake.frame


def test_parameters_come_from_the_line_then_from_variables(shell, fake):
    shell.user_ns.update(day=8, carrier="UA", unused=object())
    cell(shell, "--param day=9", "SELECT :day, :carrier, ':no', x::int -- :neither\n")
    assert fake.asked[0][1] == {"day": 9, "carrier": "UA"}


def test_each_statement_gets_its_own_parameters(shell, fake):
    shell.user_ns.update(a=1, b=2)
    cell(shell, "", "SELECT :a; SELECT :b")
    assert [params for _, params in fake.asked] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (pd.Timestamp("2013-02-08"), dt.datetime(2013, 2, 8)),  # noqa: DTZ001
        (None, None),
        (["a", "b"], ["a", "b"]),
        (("a",), ["a"]),
        (dt.date(2013, 2, 8), dt.date(2013, 2, 8)),
    ],
)
def test_values_of_variables_become_plain(shell, fake, value, bound):
    shell.user_ns["value"] = value
    cell(shell, "", "SELECT :value")
    assert fake.asked[0][1] == {"value": bound}
    assert type(fake.asked[0][1]["value"]) is type(bound)


@pytest.mark.parametrize("value", [object(), len, {"a": 1}, [object()], pd.DataFrame({"a": [1]})])
def test_a_variable_that_is_no_value_is_refused(shell, fake, value):
    shell.user_ns["value"] = value
    with pytest.raises(QueryError, match=":value is a"):
        shell.run_cell_magic("lakesql", "", "SELECT :value")
    assert fake.asked == []


def test_a_missing_parameter_is_named(shell, fake):
    with pytest.raises(QueryError, match="no variable 'nowhere'"):
        shell.run_cell_magic("lakesql", "", "SELECT :nowhere")
    assert fake.asked == []


def test_parameters_of_later_statements_may_be_missing_until_they_run(shell, fake):
    with capture_output() as captured, pytest.raises(QueryError, match="nowhere"):
        shell.run_cell_magic("lakesql", "", "SELECT 1; SELECT :nowhere")
    assert len(captured.outputs) == 1


@pytest.mark.parametrize("body", ["", "  \n", ";", "-- only a comment"])
def test_no_sql_is_an_error(shell, fake, body):
    with pytest.raises(QueryError, match="no SQL"):
        shell.run_cell_magic("lakesql", "", body or "\n")


def test_errors_are_a_few_lines(shell, fake):
    def fail():
        raise QueryError("No such thing.", "Try another.")

    fake.action = fail
    with capture_output() as captured:
        result = shell.run_cell("%%lakesql\nSELECT 1")
    assert isinstance(result.error_in_exec, QueryError)
    shown = captured.stdout + captured.stderr
    assert "QueryError: No such thing.\nHint: Try another." in shown
    assert "Traceback" not in shown


def test_errors_of_spark_become_errors_of_the_query(shell, fake):
    def fail(count):
        raise RuntimeError(
            "[DIVIDE_BY_ZERO] Division by zero.\n\tat org.apache.spark.Stack.run(Stack.scala:7)"
        )

    fake.frame.take = fail
    with pytest.raises(QueryError, match="Division by zero") as caught:
        shell.run_cell_magic("lakesql", "", "SELECT 1/0")
    assert "Stack" not in str(caught.value)


def test_places_in_errors_are_those_of_the_cell(shell, fake):
    body = "SELECT 1;\nSELECT 2; SELECT\n  oops"
    with capture_output():
        shell.run_cell_magic("lakesql", "", body)
    cell_text = "%%lakesql\n" + body
    place = cell_text.index("oops")
    assert fake.received.index("oops") == place - len("%%lakesql")
    assert fake.received.count("\n") == cell_text.count("\n")


def test_unknown_options_are_errors(shell, fake):
    with pytest.raises((InvalidOptionError, UsageError), match="--limit"):
        shell.run_cell_magic("lakesql", "--limits 4", "SELECT 1")
    assert fake.asked == []


def test_an_interrupt_cancels_the_jobs_of_the_statement(shell, fake, monkeypatch):
    context = fake.spark.sparkContext
    started = threading.Event()

    def work():
        started.set()
        assert context.cancelled.wait(30)
        raise RuntimeError("[SPARK_JOB_CANCELLED] Job 1 cancelled.")

    fake.action = work
    real_wait = threading.Event.wait
    interrupted = []

    def wait(self, timeout=None):
        # What Ctrl-C does to the thread that waits.
        if started.is_set() and not interrupted and threading.current_thread() is threading.main_thread():
            interrupted.append(True)
            raise KeyboardInterrupt
        return real_wait(self, timeout)

    monkeypatch.setattr(threading.Event, "wait", wait)
    with pytest.raises(QueryInterrupted, match="was cancelled"):
        shell.run_cell_magic("lakesql", "", "SELECT slow")
    assert context.cancelled.is_set()


def test_a_statement_that_takes_too_long_is_cancelled(shell, fake):
    context = fake.spark.sparkContext
    fake.action = lambda: context.cancelled.wait(30)
    with pytest.raises(QueryError, match=r"had not ended after 0\.2 s.*--timeout"):
        shell.run_cell_magic("lakesql", "--timeout 0.2", "SELECT slow")
    assert context.cancelled.is_set()


def test_a_bar_shows_the_tasks_of_a_long_statement_and_gives_way_to_the_result(shell, fake, monkeypatch):
    monkeypatch.setattr(shell, "kernel", object(), raising=False)
    monkeypatch.setattr(progress, "PATIENCE_S", 0)
    bars = []
    drawn = threading.Event()
    real = progress.Progress.show

    def show(self, tasks):
        real(self, tasks)
        bars.append(self._handle)
        drawn.set()

    monkeypatch.setattr(progress.Progress, "show", show)
    fake.action = lambda: drawn.wait(30)
    shown = cell(shell, "", "SELECT slow")
    assert "6 of 20 tasks" in shown[0]
    assert "first 20 rows" in shown[-1]
    assert len({handle.display_id for handle in bars}) == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--display plain --limit 2", "n\n-\n0\n1\nfirst 2 rows, there is more (--limit N shows more)"),
        ("--display json --limit 2", '[\n {"n": 0},\n {"n": 1}\n]\nfirst 2 rows'),
        ("--display none --limit 3", "more than 3 rows, not shown"),
        ("--display none --limit 60", "50 rows, not shown"),
    ],
)
def test_rows_can_be_shown_in_other_ways(shell, fake, line, expected):
    (shown,) = cell(shell, line, "SELECT n FROM t")
    assert shown.startswith(expected)


def test_json_keeps_what_json_knows_and_names_every_column(shell, fake):
    fake.frame = Frame(
        ["a", "a", "b"], [[None, 1.5, {"k": dt.date(2024, 5, 1)}], [True, float("nan"), [b"\x01", Row(x=1)]]]
    )
    with capture_output() as captured:
        shell.run_cell_magic("lakesql", "--display json", "SELECT 1")
    assert captured.outputs[0].data["application/json"] == [
        {"a": None, "a_2": 1.5, "b": {"k": "2024-05-01"}},
        {"a": True, "a_2": "NaN", "b": ["X'01'", {"x": 1}]},
    ]


def drawn(shell, kind, monkeypatch):
    """Runs a cell with a chart; returns what it displayed, of which a terminal's shell would show nothing."""
    shown = []
    monkeypatch.setattr(progress, "display", shown.append)
    shell.run_cell_magic("lakesql", f"--chart {kind}", "SELECT 1")
    return shown


@pytest.mark.parametrize(
    ("kind", "trace"), [("bar", "bar"), ("line", "scatter"), ("area", "scatter"), ("scatter", "scatter")]
)
def test_a_chart_draws_numbers_over_the_first_column(shell, fake, monkeypatch, kind, trace):
    fake.frame = Frame(["day", "n", "m"], [["<b>Mon", 1, 2.5], ["Tue", 3, None]])
    figure, note = drawn(shell, kind, monkeypatch)
    first, second = figure.data
    assert (first.type, first.name, second.name) == (trace, "n", "m")
    assert list(first.y) == [1, 3]
    assert note.message.startswith("2 rows")
    assert fake.frame.taken == [CHART_LIMIT + 1]


def test_texts_in_the_second_column_of_a_chart_are_series(shell, fake, monkeypatch):
    fake.frame = Frame(["day", "kind", "n"], [["Mon", "a", 1], ["Mon", "<img>", 2], ["Tue", "a", 3]])
    figure, _ = drawn(shell, "bar", monkeypatch)
    assert [(s.name, list(s.x)) for s in figure.data] == [("a", ["Mon", "Tue"]), ("&lt;img&gt;", ["Mon"])]


def test_a_chart_without_numbers_is_refused(shell, fake):
    fake.frame = Frame(["day", "kind"], [["Mon", "a"]])
    with pytest.raises(InvalidOptionError, match=r"needs numbers behind the first column.*day, kind"):
        shell.run_cell_magic("lakesql", "--chart bar", "SELECT 1")


def test_time_travel_on_the_line_is_for_queries(shell, fake):
    with pytest.raises(QueryError, match="--at is for queries"):
        shell.run_cell_magic("lakesql", "--at 3", "INSERT INTO t VALUES (1)")
    assert fake.asked == []


def test_instants_are_shown_in_the_time_zone_of_the_session(shell, fake):
    moment = dt.datetime(2013, 2, 8, 12, tzinfo=ZoneInfo("UTC"))
    local = moment.astimezone().replace(tzinfo=None)
    fake.frame = Frame(["at"], [[local], [None]], TimestampType())
    fake.frame.sparkSession = fake.spark
    fake.spark.conf["spark.sql.session.timeZone"] = "America/New_York"
    (shown,) = cell(shell, "", "SELECT at FROM t")
    assert "2013-02-08 07:00:00" in shown


def test_the_lake_is_opened_on_first_use(shell, fake, monkeypatch):
    monkeypatch.setattr("lakekit.session.connect.current", lambda: None)
    monkeypatch.setattr("lakekit.session.connect.connect", lambda: fake)
    cell(shell, "", "SELECT 1")
    assert len(fake.asked) == 1


def test_help_names_every_option(ipython):
    from lakekit.notebook.options import OPTIONS

    text = ipython.find_line_magic("lakesql").__doc__
    assert all(option in text for option in OPTIONS)
