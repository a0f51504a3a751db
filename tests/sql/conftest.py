"""A database of its own for each module of SQL tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import lakekit

Run = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def database(lake: lakekit.Lake, request: pytest.FixtureRequest) -> Iterator[str]:
    """The current database, empty at first and dropped at the end."""
    name = request.module.__name__.rsplit(".", maxsplit=1)[-1]
    before = lake.current_database
    lake.create_database(name)
    lake.use(name)
    yield name
    lake.use(before)
    lake.drop_database(name, cascade=True)


@pytest.fixture(scope="module")
def run(lake: lakekit.Lake, database: str) -> Run:
    """Runs SQL in the module's database and returns the rows as tuples."""

    def runs(query: str, /, **params: object) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in lake.sql(query, **params).collect()]

    return runs


def fresh(lake: lakekit.Lake, table: str) -> bool:
    """Whether a table is there as it was first filled; if not, it is dropped."""
    name = lake.catalog.resolve(table)
    if lake.catalog.exists(name) and lake.table(table).version == 1:
        return True
    lake.drop_table(table, if_exists=True)
    return False


@pytest.fixture
def orders(lake: lakekit.Lake, run: Run) -> str:
    """A keyed table with four rows, partitioned and in three buckets; made again if a test changed it."""
    if fresh(lake, "orders"):
        return "orders"
    run(
        """CREATE TABLE orders (id BIGINT, dt STRING, amount DECIMAL(10, 2), note STRING,
           PRIMARY KEY (id, dt) NOT ENFORCED) USING lake PARTITIONED BY (dt)
           CLUSTERED BY (id, dt) INTO 3 BUCKETS TBLPROPERTIES ('compaction.auto' = 'false')"""
    )
    run(
        "INSERT INTO orders VALUES (1, 'a', 10, 'x'), (2, 'a', 20, 'y'), (3, 'b', 30, NULL), (4, 'b', 40, 'z')"
    )
    return "orders"
