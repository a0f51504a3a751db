"""``%lake`` and its verbs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakekit.errors import InvalidOptionError, LakeError, NotFoundError, QueryError
from lakekit.notebook import magics
from lakekit.notebook.doctor import examine


@pytest.fixture
def shell(ipython, lake, monkeypatch):
    """A notebook whose open lake has one table, in a database of its own."""
    monkeypatch.chdir(Path(lake.warehouse).parent)
    lake.create_database("verbs", if_not_exists=True)
    table = lake.create_table(
        "verbs.orders",
        "id BIGINT NOT NULL, day STRING, `<b>` INT",
        primary_key=["id", "day"],
        partition_by=["day"],
        buckets=1,
    )
    table.set_comment("the <i>amount</i>", column="<b>")
    table.upsert([{"id": i, "day": "mon", "<b>": i} for i in range(5)])
    table.upsert([{"id": 1, "day": "mon", "<b>": 9}])
    before = set(ipython.user_ns)
    yield ipython
    for name in set(ipython.user_ns) - before:
        del ipython.user_ns[name]
    lake.drop_database("verbs", cascade=True)


def lake_line(shell, line):
    """Runs ``%lake`` and returns what it displayed, as text and as HTML."""
    shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(magics, "display", shown.append)
        assert shell.run_line_magic("lake", line) is None
    (output,) = shown
    return repr(output), output._repr_html_()


def test_connect_opens_a_lake_and_names_it(shell, lake):
    text, _ = lake_line(shell, "connect ./warehouse")
    assert shell.user_ns["lake"] is lake
    assert text.startswith(f"lake: {lake.warehouse} over a local Spark 4")


def test_tables_are_listed_with_what_they_are_made_of(shell):
    text, _ = lake_line(shell, "tables verbs")
    head, _, row, note = text.splitlines()
    assert [cell.strip() for cell in head.split("|")][:5] == [
        "table",
        "primary key",
        "partitioned by",
        "buckets",
        "version",
    ]
    assert [cell.strip() for cell in row.split("|")][:5] == ["verbs.orders", "id, day", "day", "1", "3"]
    assert note.startswith("1 row")
    assert "verbs.orders" in lake_line(shell, "tables")[0]


def test_describe_shows_columns_and_escapes_names(shell):
    text, page = lake_line(shell, "describe verbs.orders")
    assert "primary key 2, partition 1" in text
    assert "<b>" in text
    assert "&lt;b&gt;" in page
    assert "&lt;i&gt;amount" in page
    assert "<i>" not in page


def test_history_shows_the_newest_commits_first(shell):
    text, _ = lake_line(shell, "history verbs.orders --limit 2")
    rows = [line.split("|") for line in text.splitlines()[2:4]]
    assert [row[0].strip() for row in rows] == ["3", "2"]
    assert [row[4].strip() for row in rows] == ["1", "0"]
    assert "there is more" in text


def test_compact_says_what_it_did(shell, lake):
    text, _ = lake_line(shell, "compact verbs.orders")
    assert text.startswith("COMPACT, version 4 · 1 file added")
    assert lake.table("verbs.orders").version == 4


def test_mode_is_said_and_chosen(shell):
    assert "file" in lake_line(shell, "mode")[0]
    assert "log" in lake_line(shell, "mode log")[0]
    assert lake_line(shell, "mode file")[0] == "Queries read mode file"


def test_a_stream_is_ingested_and_listed(shell, lake):
    shell.user_ns["events"] = (
        lake.spark.readStream.format("rate")
        .load()
        .selectExpr("value AS id", "'tue' AS day", "cast(value AS INT) AS `<b>`")
    )
    for _ in range(2):  # the second time it goes on, and its first handle is not listed any more
        handle = shell.run_line_magic("lake", "ingest events into verbs.orders --interval 0.5")
        try:
            assert handle.status.state == "running"
            listed = lake_line(shell, "ingest")[0]
            assert re.search(r"verbs\.orders +\| running", listed)
            assert listed.count("verbs.orders") == 1
        finally:
            handle.stop()


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("", QueryError, "needs a verb. There are: connect, tables"),
        ("tabels", QueryError, "no verb 'tabels'. Did you mean 'tables'"),
        ("describe", InvalidOptionError, "required: table.*Usage: %lake describe table"),
        ("history verbs.orders --limit 0", InvalidOptionError, "no number above 0"),
        ("mode both", InvalidOptionError, "invalid choice: 'both'"),
        ("describe verbs.order", NotFoundError, "verbs.orders"),
        ("ingest event into verbs.orders", NotFoundError, "no variable 'event'"),
        ("ingest events verbs.orders", QueryError, "into database.table"),
        ("describe 'verbs", QueryError, "Close the quotation mark"),
    ],
)
def test_what_cannot_be_is_said_with_a_hint(shell, line, kind, message):
    with pytest.raises(kind, match=message):
        shell.run_line_magic("lake", line)


def test_the_doctor_finds_this_machine_well(shell, lake):
    text, _ = lake_line(shell, "doctor")
    for thing in ("Java", "Packages", "Delta's jars", "Memory", "Lake", "Warehouse"):
        assert any(line.split("|")[0].strip() == thing and "ok" in line for line in text.splitlines()), thing


def test_the_doctor_says_what_is_missing_and_starts_nothing(lake, monkeypatch, tmp_path):
    monkeypatch.setenv("LAKEKIT_CACHE", str(tmp_path / "none"))
    found = {check.name: check for check in examine(None)}
    assert found["Delta's jars"].state == "warning"
    assert "python -m lakekit.session" in found["Delta's jars"].fix
    assert not (tmp_path / "none").exists()
    assert "Lake" not in found

    def no_java():
        raise LakeError("Spark needs Java.", "Install one.")

    monkeypatch.setattr("lakekit.session.java.find_java", no_java)
    java = next(check for check in examine(lake) if check.name == "Java")
    assert (java.state, java.found, java.fix) == ("missing", "Spark needs Java.", "Install one.")


def test_the_doctor_finds_a_kafka_that_does_not_answer(lake, shell):
    lake.create_table("verbs.logged", "id BIGINT", primary_key=["id"])
    table = lake.table("verbs.logged")
    try:
        table.set_properties(
            {"log-store.enabled": True, "log-store.address": "127.0.0.1:9", "log-store.topic": "logged"}
        )
    except LakeError:
        pytest.fail("the log can be named before it is reached")
    check = next(c for c in examine(lake) if c.name == "Log of verbs.logged")
    assert check.state == "missing"
    assert "127.0.0.1:9" in check.found
