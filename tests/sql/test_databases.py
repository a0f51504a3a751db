"""CREATE, DROP and USE of databases."""

import pytest

from lakekit import AlreadyExistsError, DatabaseNotFoundError, InvalidOptionError, QueryError


def test_create_use_drop(lake, run, database):
    run("CREATE DATABASE IF NOT EXISTS sales COMMENT 'the sales'")
    assert lake.catalog.database_comment("sales") == "the sales"
    with pytest.raises(AlreadyExistsError):
        run("CREATE SCHEMA sales")
    run("USE sales")
    assert lake.current_database == "sales"
    run("CREATE TABLE t USING lake AS SELECT 1 AS id")
    run(f"USE DATABASE spark_catalog.{database}")
    assert run("SELECT * FROM sales.t") == [(1,)]
    with pytest.raises(InvalidOptionError, match="not empty"):
        run("DROP DATABASE sales")
    run("DROP SCHEMA sales CASCADE")
    run("DROP DATABASE IF EXISTS sales")
    with pytest.raises(DatabaseNotFoundError):
        run("DROP DATABASE sales")


def test_unknown(run):
    with pytest.raises(DatabaseNotFoundError):
        run("USE nowhere")
    with pytest.raises(DatabaseNotFoundError):
        run("SELECT * FROM nowhere.t")
    with pytest.raises(QueryError, match="LOCATION"):
        run("CREATE DATABASE elsewhere LOCATION '/tmp/elsewhere'")
