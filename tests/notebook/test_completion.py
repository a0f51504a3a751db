"""Completion through IPython's completer, as every front end asks for it."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter

from lakekit.notebook.options import OPTIONS


@pytest.fixture(scope="module", autouse=True)
def tables(lake):
    lake.create_database("crm", if_not_exists=True)
    lake.create_table(
        "crm.clients",
        "id BIGINT NOT NULL, name STRING, `last-order` DATE, amount DOUBLE",
        primary_key=["id"],
        buckets=1,
    )
    lake.create_table("crm.calls", "call_id BIGINT NOT NULL, minutes INT", primary_key=["call_id"], buckets=1)
    yield
    lake.drop_database("crm", cascade=True)


@pytest.fixture
def complete(ipython):
    """Completes at the mark `|` and returns the cell's text with each completion put in."""

    def ask(marked):
        before, _, after = marked.partition("|")
        with provisionalcompleter():
            found = list(ipython.Completer.completions(before + after, len(before)))
        return [before[: c.start] + c.text for c in found]

    return ask


def words(texts):
    return [text.replace("\n", " ").split(" ")[-1] for text in texts]


def test_columns_of_the_tables_in_the_statement_come_first(complete):
    found = words(complete("%%lakesql\nSELECT | FROM crm.clients"))
    assert found[:2] == ["id", "name"]
    assert "minutes" not in found
    assert words(complete("%%lakesql\nSELECT na| FROM crm.clients")) == ["name"]


def test_a_column_that_needs_backticks_gets_them(complete):
    assert complete("%%lakesql\nSELECT la| FROM crm.clients")[0] == "%%lakesql\nSELECT `last-order`"


def test_columns_behind_a_table_and_behind_an_alias(complete):
    joined = "FROM crm.clients c JOIN crm.calls ON c.id = call_id"
    assert words(complete(f"%%lakesql\nSELECT c.na| {joined}")) == ["c.name"]
    assert words(complete(f"%%lakesql\nSELECT calls.| {joined}")) == ["calls.call_id", "calls.minutes"]
    assert words(complete("%%lakesql\nSELECT crm.clients.am| FROM crm.clients")) == ["crm.clients.amount"]


def test_columns_of_the_other_statements_are_not_offered(complete):
    text = "%%lakesql\nSELECT 1 FROM crm.calls;\nSELECT am| FROM crm.clients;\nSELECT 2 FROM crm.calls"
    assert words(complete(text)) == ["amount"]


def test_tables_and_databases_behind_from(complete):
    assert words(complete("%%lakesql\nSELECT * FROM cr|"))[:3] == ["crm", "crm.calls", "crm.clients"]
    assert words(complete("%%lakesql\nSELECT * FROM crm.|")) == ["crm.calls", "crm.clients"]
    assert words(complete("%%lakesql\nDELETE FROM crm.cl|")) == ["crm.clients"]


def test_system_tables_behind_a_dollar(complete):
    assert words(complete("%%lakesql\nSELECT * FROM crm.clients$s|")) == ["crm.clients$snapshots"]
    assert "crm.clients$changes" in words(complete("%%lakesql\nSELECT * FROM crm.clients$|"))


def test_keywords_in_the_case_of_the_user(complete):
    assert "WHERE" in words(complete("%%lakesql\nSELECT * FROM crm.clients WHE|"))
    assert "where" in words(complete("%%lakesql\nSELECT * FROM crm.clients whe|"))


def test_variables_behind_a_colon(complete, ipython):
    ipython.user_ns["low_price"], ipython.user_ns["low_thing"] = 5, object()
    assert words(complete("%%lakesql\nSELECT * FROM crm.clients WHERE amount > :low|")) == [":low_price"]


def test_the_options_of_the_magic_on_its_own_line_only(complete):
    assert words(complete("%%lakesql --li|\nSELECT 1")) == ["--limit"]
    assert sorted(words(complete("%%lakesql --|\nSELECT 1"))) == sorted(OPTIONS)
    assert "--limit" not in words(complete("%%lakesql\nSELECT 1 --li|"))
    assert words(complete("%lakesql --li|")) == ["--limit"]


def test_the_values_of_an_option_that_has_a_few(complete):
    assert words(complete("%%lakesql --display |\nSELECT 1")) == ["table", "plain", "json", "none"]
    assert words(complete("%lakesql --explain --chart li|")) == ["line"]
    assert not {"table", "line"} & set(words(complete("%%lakesql --limit |\nSELECT 1")))


def test_the_verbs_of_lake_and_what_they_take(complete):
    assert words(complete("%lake de|")) == ["describe"]
    assert words(complete("%lake describe crm.cl|")) == ["crm.clients"]
    assert words(complete("%lake mode |")) == ["file", "log"]
    assert words(complete("%lakemode l|")) == ["log"]
    assert words(complete("%lake history crm.clients --li|")) == ["--limit"]
    assert words(complete("%lake tables cr|")) == ["crm"]
    assert complete("%lake nothing cr|") == []


def test_table_options_where_they_are_given(complete):
    create = "%%lakesql\nCREATE TABLE t (id INT) USING lake TBLPROPERTIES ("
    assert complete(create + "'log-store.top|") == [create + "'log-store.topic"]
    assert complete(create + "'lake.log-store.top|") == [create + "'lake.log-store.topic"]
    assert "('emit.mode'" in words(complete(create + "|)"))
    assert "file" not in words(complete(create + "'emit.mode' = 'fi|"))
    hint = "%%lakesql\nSELECT * FROM crm.clients /*+ OPTIONS('"
    found = complete(hint + "|") + complete(hint + "sc|")
    assert hint + "scan.startup.mode" in found
    assert hint + "bucket" not in found


def test_sql_on_the_line_of_the_magic(complete):
    assert words(complete("x = 1\n%lakesql SELECT na| FROM crm.clients")) == ["name"]
    assert words(complete("df = %lakesql --limit 5 SELECT * FROM crm.cl|")) == ["crm.clients"]
    assert words(complete("%lakesql x << --explain SELECT na| FROM crm.clients")) == ["name"]


@pytest.mark.parametrize(
    "text",
    ["SELECT 'na|", "SELECT 1 -- na|", "SELECT /* na|", "SELECT 'it''s na|"],
    ids=["string", "line", "block", "quote"],
)
def test_nothing_of_the_lake_in_strings_and_comments(complete, text):
    assert "name" not in words(complete(f"%%lakesql\n{text}\nFROM crm.clients"))


@pytest.mark.parametrize(
    "text", ["(((|", "SELECT FROM WHERE |", "`|", "'''|", "SELECT $|", "crm.clients.x.|", ":|", ";;|"]
)
def test_wrong_sql_breaks_nothing(complete, text, capsys):
    complete(f"%%lakesql\n{text}")
    assert "Traceback" not in capsys.readouterr().err


def test_python_cells_are_completed_as_before(complete, ipython):
    ipython.user_ns["orders_of_may"] = 1
    assert "orders_of_may" in words(complete("orders_of_m|"))
    assert "clients" not in words(complete("cl|"))


def test_no_spark_job_is_started(complete, lake):
    tracker = lake.spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup())
    assert complete("%%lakesql\nSELECT | FROM crm.clients JOIN crm.calls")
    assert set(tracker.getJobIdsForGroup()) == before


def test_loading_the_extension_again_adds_no_second_matcher(ipython, complete):
    ipython.run_line_magic("reload_ext", "lakekit")
    assert words(complete("%%lakesql\nSELECT na| FROM crm.clients")) == ["name"]


def test_without_a_lake_keywords_are_offered_and_nothing_is_opened(complete, monkeypatch):
    monkeypatch.setattr("lakekit.session.connect.current", lambda: None)
    assert words(complete("%%lakesql\nSEL|")) == ["SELECT"]
    assert "name" not in words(complete("%%lakesql\nSELECT na| FROM crm.clients"))
