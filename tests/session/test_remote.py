"""A Lake on a real Spark Connect server."""

import operator
import os
import re

import pytest

import lakekit
from lakekit import errors
from lakekit.session.connect import open_remote
from lakekit.session.runner import ClusterRunner


def test_functions_run_on_the_cluster_with_this_code(remote_lake):
    runner = remote_lake.runner
    assert isinstance(runner, ClusterRunner)
    assert runner.run(operator.mul, 6, 7) == 42
    assert runner.run(os.getpid) != os.getpid()
    # The shipped package, not one that happens to be installed there.
    assert re.search(r"/lakekit-\w+\.zip/lakekit/__init__\.py$", runner.run(lambda: lakekit.__file__))


def test_large_arguments_and_results(remote_lake):
    data = os.urandom(20_000_000)
    assert remote_lake.runner.run(bytes.__add__, data, b"!") == data + b"!"


def test_errors_come_back_as_themselves(remote_lake):
    with pytest.raises(errors.TableNotFoundError, match="Did you mean 'orders'"):
        remote_lake.runner.run(_raise, errors.TableNotFoundError.of("order", ["orders"]))
    with pytest.raises(FileNotFoundError):
        remote_lake.runner.run(open, "/no/such/file")


def test_an_error_that_cannot_be_pickled_still_says_what_happened(remote_lake):
    def fail():
        class Local(Exception):  # noqa: N818
            def __reduce__(self):
                raise TypeError

        raise Local("inside")

    with pytest.raises(errors.LakeError, match="Local: inside"):
        remote_lake.runner.run(fail)


def test_a_dead_worker_is_a_session_error(remote_lake):
    with pytest.raises(errors.SessionError, match="A task on the Spark server failed"):
        remote_lake.runner.run(os._exit, 3)


def test_the_repr_has_the_server_and_no_more(remote_lake, connect_server):
    assert repr(remote_lake).endswith(f"remote='{connect_server.url.removeprefix('sc://')}')")


def test_the_session_of_a_lake_serves_a_second_one(remote_lake, connect_server):
    again = open_remote(connect_server.url, connect_server.warehouse, {"spark.sql.ansi.enabled": "true"})
    assert again.spark is remote_lake.spark
    again.stop()
    assert remote_lake.spark.sql("SELECT 1").collect() == [(1,)]


def test_settings_that_the_server_fixed(remote_lake, connect_server):
    with pytest.raises(errors.SessionError, match=r"other values for spark\.driver\.memory"):
        open_remote(connect_server.url, connect_server.warehouse, {"spark.driver.memory": "9g"})


def test_a_server_without_delta_is_refused(plain_connect_server):
    with pytest.raises(errors.SessionError) as raised:
        open_remote(plain_connect_server.url, None, {})
    assert "without Delta: it lacks spark.sql.extensions=" in raised.value.message
    assert "io.delta:delta-spark_2.13" in raised.value.hint


def _raise(error):
    raise error


# The workers cannot import a test: such functions travel by value.
_raise.__module__ = "__main__"
