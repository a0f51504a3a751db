"""SET and RESET of lakekit's options."""

import pytest

from lakekit import InvalidOptionError


def test_set_and_reset(lake, run, orders):
    assert run("SET lake.read.mode = log") == [("lake.read.mode", "log")]
    assert run("SET arctic.read.mode") == [("lake.read.mode", "log")]
    assert run("SELECT count(*) FROM orders") == [(4,)]  # a table without a log is its files
    with pytest.raises(InvalidOptionError, match="log"):
        run("SELECT * FROM orders /*+ OPTIONS('read.mode' = 'log') */")
    assert run("SELECT count(*) FROM orders /*+ OPTIONS('read.mode' = 'file') */") == [(4,)]
    run("RESET lake.read.mode")
    assert lake.settings == {}
    assert run("SELECT count(*) FROM orders") == [(4,)]


@pytest.mark.parametrize(
    "statement", ["SET lake.read.mod = file", "SET lake.read.mode = tape", "SET lake.bucket = 4"]
)
def test_refused(lake, run, statement):
    with pytest.raises(InvalidOptionError):
        run(statement)
    assert lake.settings == {}


def test_sparks_own_settings(lake, run):
    run("SET spark.sql.shuffle.partitions = 3")
    assert lake.spark.conf.get("spark.sql.shuffle.partitions") == "3"
    run("RESET spark.sql.shuffle.partitions")
