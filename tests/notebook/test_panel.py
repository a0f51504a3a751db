"""What the side panel is told."""

from __future__ import annotations

import json

import pytest

from lakekit.notebook import panel


@pytest.fixture(scope="module", autouse=True)
def tables(lake):
    lake.create_database("depot", if_not_exists=True)
    lake.create_table(
        "depot.parts",
        "day DATE NOT NULL, id BIGINT NOT NULL, name STRING COMMENT '<b>what</b>', price DECIMAL(9,2)",
        primary_key=["day", "id"],
        partition_by=["day"],
        buckets=3,
        comment="Spare parts",
        properties={
            "log-store.enabled": True,
            "log-store.topic": "parts",
            "log-store.address": "127.0.0.1:9",
        },
    )
    lake.create_table("depot.notes", "text STRING")
    yield
    lake.drop_database("depot", cascade=True)


def ask(*opened, **options):
    value = panel.answer(opened, **options)._repr_json_()
    json.dumps(value)  # plain JSON, as it goes to the front end
    return value


def tables_of(answer, database):
    (found,) = [d for d in answer["databases"] if d["name"] == database]
    return {table["name"]: table for table in found["tables"]}


def test_databases_tables_and_what_a_table_is():
    found = tables_of(ask(), "depot")
    assert list(found) == ["notes", "parts"]
    parts = found["parts"]["details"]
    assert [(c["column"], c["type"], c["key"], c["partition"]) for c in parts["columns"]] == [
        ("day", "date", 1, 1),
        ("id", "bigint", 2, None),
        ("name", "string", None, None),
        ("price", "decimal(9,2)", None, None),
    ]
    assert parts["columns"][2]["comment"] == "<b>what</b>"
    assert (parts["key"], parts["partitions"], parts["buckets"]) == (["day", "id"], ["day"], 3)
    assert (parts["version"], parts["comment"]) == (0, "Spare parts")
    assert parts["log"] == {"topic": "parts", "address": "127.0.0.1:9"}
    assert (found["notes"]["details"]["key"], found["notes"]["details"]["log"]) == ([], None)


def test_the_lake_and_the_name_it_has_in_the_notebook(lake, ipython):
    ipython.user_ns.pop("lake", None)
    ipython.user_ns["sea"] = lake
    about = ask()["lake"]
    assert (about["warehouse"], about["remote"], about["database"]) == (lake.warehouse, None, "default")
    assert about["variable"] == "sea"
    ipython.user_ns["lake"] = lake
    assert ask()["lake"]["variable"] == "lake"
    del ipython.user_ns["sea"], ipython.user_ns["lake"]


def test_a_new_commit_is_seen(lake):
    lake.table("depot.notes").upsert([{"text": "a"}])
    assert tables_of(ask(), "depot")["notes"]["details"]["version"] == 1


def test_when_there_are_too_many_tables_those_that_are_open_have_details(monkeypatch):
    monkeypatch.setattr(panel, "BUDGET_S", -1)
    found = tables_of(ask("depot.notes", "gone.table"), "depot")
    assert found["notes"]["details"]["columns"][0]["column"] == "text"
    assert found["parts"]["details"] is None


def test_a_table_that_cannot_be_read_says_so_and_the_others_are_shown(lake):
    lake.create_table("depot.broken", "a INT")
    root = lake.table("depot.broken").root
    with open(f"{root}/_delta_log/{0:020}.json", "w") as log:
        log.write("{")
    found = tables_of(ask(), "depot")
    assert found["broken"]["error"]
    assert found["parts"]["details"]
    lake.drop_table("depot.broken")


def test_no_spark_job_is_started(lake):
    tracker = lake.spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup())
    ask("depot.parts")
    assert set(tracker.getJobIdsForGroup()) == before


def test_without_a_lake_nothing_is_opened(monkeypatch):
    monkeypatch.setattr("lakekit.session.connect.current", lambda: None)
    assert ask() == {"lake": None}
