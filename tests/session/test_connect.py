"""What `connect()` makes of its arguments, and the Lake that it returns."""

import os
import signal
import threading

import pytest

import lakekit
from lakekit.errors import InvalidOptionError, SessionError
from lakekit.session import connect as module
from lakekit.session.runner import LocalRunner


@pytest.mark.parametrize("given", ["~/lake", "./lake/", "file:/data/my%20lake", "/data//lake/../lake"])
def test_a_local_warehouse_is_an_absolute_path(given):
    place = module.normalise(given, None)
    assert os.path.isabs(place)
    assert not place.endswith("/")
    assert "~" not in place
    assert "%" not in place


@pytest.mark.parametrize("remote", [None, "sc://host"])
def test_a_uri_stays_a_uri(remote):
    assert module.normalise("s3a://bucket/lake/", remote) == "s3a://bucket/lake"


def test_a_relative_warehouse_means_nothing_on_a_server():
    with pytest.raises(InvalidOptionError, match=r"'\./lake'.*absolute"):
        module.normalise("./lake", "sc://host")


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_warehouse_is_refused(empty):
    with pytest.raises(InvalidOptionError, match="warehouse"):
        module.normalise(empty, None)


def test_the_token_of_a_remote_url_is_never_shown():
    assert module.server_name("sc://host.example/;token=secret") == "host.example:15002"
    with pytest.raises(InvalidOptionError) as raised:
        module.server_name("https://host/;token=secret")
    assert "secret" not in str(raised.value)


def test_an_unreachable_server_is_named():
    with pytest.raises(SessionError, match=r"127\.0\.0\.1:9 cannot be used"):
        module.open_remote("sc://127.0.0.1:9", None, {})


def test_a_warehouse_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SessionError, match="cannot be made"):
        module._make_folder(str(tmp_path / "file"))


def test_connecting_again_gives_the_same_lake(lake):
    assert lakekit.connect() is lake
    assert lakekit.connect(lake.warehouse + "/") is lake
    assert module.current() is lake


def test_another_warehouse_needs_a_stop_first(lake, tmp_path):
    with pytest.raises(SessionError, match=r"asked for .*other.*stop\(\)"):
        lakekit.connect(tmp_path / "other")


def test_a_server_needs_a_stop_first(lake):
    with pytest.raises(SessionError, match=r"A Lake on a local Spark is open.*stop\(\)"):
        lakekit.connect(remote="sc://host")


def test_settings_of_a_running_session(lake):
    with pytest.raises(SessionError, match=r"other values for spark\.driver\.memory"):
        lakekit.connect(config={"spark.driver.memory": "123m", "spark.sql.ansi.enabled": False})
    assert lake.spark.conf.get("spark.sql.ansi.enabled") == "true"
    lakekit.connect(config={"spark.sql.ansi.enabled": False})
    assert lake.spark.conf.get("spark.sql.ansi.enabled") == "false"
    lakekit.connect(config={"spark.sql.ansi.enabled": True})


def test_the_session_is_as_documented(lake):
    conf = lake.spark.conf
    assert conf.get("spark.sql.session.timeZone") == "UTC"
    assert conf.get("spark.ui.enabled") == "false"
    assert isinstance(lake.runner, LocalRunner)
    assert lake.runner.run(max, 1, 2) == 2
    assert lake.warehouse in repr(lake)
    assert lake.log_file.exists()


def test_relative_paths_in_sql_are_those_of_the_user(lake, tmp_path):
    relative = os.path.relpath(tmp_path / "table", os.getcwd())
    lake.spark.sql("SELECT 1 AS a").write.format("delta").save(relative)
    assert (tmp_path / "table" / "_delta_log").is_dir()


def test_adaptive_execution_keeps_an_explicit_number_of_partitions(lake):
    def ids(batches):
        import pyarrow as pa
        from pyspark import TaskContext

        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"part": [TaskContext.get().partitionId()]})

    few = lake.spark.range(50).repartition(7, "id")
    assert sorted(row.part for row in few.mapInArrow(ids, "part bigint").collect()) == list(range(7))


def test_sql_errors_are_not_also_logged_as_json(lake, capfd):
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        lake.spark.sql("SELECT * FROM no_such_table").collect()
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        lake.spark.sql("SELECT 1 / (id - id) FROM range(3)").collect()
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


def test_an_interrupt_stops_the_jobs_inside(lake, monkeypatch):
    """As in a notebook: PySpark's own handler is gone, and SIGINT is Python's KeyboardInterrupt."""
    tracker = lake.spark.sparkContext.statusTracker()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt_when_running():
        while not tracker.getActiveJobsIds():
            stopped.wait(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    stopped = threading.Event()
    watcher = threading.Thread(target=interrupt_when_running)
    try:
        watcher.start()
        with pytest.raises(KeyboardInterrupt), lake.interruptible():
            lake.spark.sql("SELECT sum(hash(a.id, b.id)) FROM range(1000000) a, range(1000000) b").collect()
        while tracker.getActiveJobsIds():
            stopped.wait(0.05)
    finally:
        stopped.set()
        watcher.join()
        signal.signal(signal.SIGINT, before)
    assert lake.spark.sql("SELECT 1").collect() == [(1,)]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="reads the command line of a process")
def test_secrets_are_neither_on_the_command_line_nor_shown(lake):
    context = lake.spark.sparkContext
    with open(f"/proc/{context._gateway.proc.pid}/cmdline") as command_line:
        arguments = command_line.read()
    assert context._jsc.hadoopConfiguration().get("fs.s3a.secret.key") == "a secret"
    assert "spark.driver.memory" in arguments
    for text in (arguments, lake.log_file.read_text(), repr(lake), repr(vars(lake))):
        assert "a secret" not in text
