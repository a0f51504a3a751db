"""What the side panel and completion know of a remote session's lake."""

from __future__ import annotations

import pytest

from lakekit.notebook import panel
from lakekit.notebook.sql_completion import complete_sql


@pytest.fixture(scope="module", autouse=True)
def tables(remote_lake):
    remote_lake.create_database("far")
    remote_lake.create_table("far.away", "id BIGINT NOT NULL, name STRING", primary_key=["id"], buckets=1)
    yield
    remote_lake.drop_database("far", cascade=True)


def away(lake, *opened, **options):
    databases = panel.contents(lake, opened, **options)["databases"]
    (table,) = next(d["tables"] for d in databases if d["name"] == "far")
    return table


def test_names_come_at_once_and_columns_when_a_table_is_opened(remote_lake):
    assert away(remote_lake) == {"name": "away", "full_name": "far.away", "details": None}
    details = away(remote_lake, "far.away")["details"]
    assert [column["column"] for column in details["columns"]] == ["id", "name"]
    assert (details["key"], details["buckets"], details["version"]) == (["id"], 1, 0)


def test_details_are_read_again_only_when_a_person_asks(remote_lake):
    away(remote_lake, "far.away", fresh=True)
    before = away(remote_lake, "far.away")["details"]["version"]
    remote_lake.table("far.away").upsert([{"id": before, "name": "a"}])
    assert away(remote_lake, "far.away")["details"]["version"] == before
    assert away(remote_lake, "far.away", fresh=True)["details"]["version"] == before + 1


def test_completion_of_tables_and_columns(remote_lake):
    text = "SELECT na FROM far.away"
    assert complete_sql(remote_lake, text, len("SELECT na"), [])[1] == [("name", "column")]
    assert complete_sql(remote_lake, "FROM far.", len("FROM far."), [])[1] == [("away", "table")]
