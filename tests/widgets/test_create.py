"""The table creator."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from lakekit import widgets
from lakekit.widgets.creator import PAGE
from tests.pages import HOSTILE
from tests.widgets.conftest import assert_harmless, settle, shown, static

ROWS = pd.DataFrame({"id": [1, 2], "day": ["a", "b"], "amount": [1.5, None]})


def fill(widget, name, columns=(), **more):
    """Types a table into the form; columns are (name, type, ticks)."""
    widget.name.value = name
    for number, (column, kind, ticks) in enumerate(columns):
        if number == len(widget.columns.children):
            widget.add.click()
        fields = widget.columns.children[number].children
        fields[0].value, fields[1].value = column, kind
        for box in fields[2:5]:
            box.value = box.description in ticks
    for field, value in more.items():
        getattr(widget, field).value = value
    return widget


def test_the_form_makes_the_sql_and_the_button_runs_it(lake):
    widget = widgets.create_table(lake)
    assert widget.create.disabled
    columns = [
        ("dt", "DATE", {"key", "partition"}),
        ("id", "bigint", {"key"}),
        ("price", "DECIMAL(10, 2)", {"not null"}),
    ]
    fill(widget, "widgets.made", columns, comment="It's new", buckets="3")
    assert widget.sql_text == (
        "CREATE TABLE `widgets`.`made` (\n  `dt` DATE,\n  `id` BIGINT,\n  `price` DECIMAL(10,2) NOT NULL,\n"
        "  PRIMARY KEY (`dt`, `id`)\n)\nUSING lake\nPARTITIONED BY (`dt`)\nCOMMENT 'It\\'s new'\n"
        "TBLPROPERTIES (\n  'bucket' = '3'\n)"
    )
    assert widget.sql_text in static(widget).texts
    assert not lake.catalog.exists(lake.catalog.resolve("widgets.made"))
    widget.create.click()
    settle(widget)
    assert "Created table widgets.made: primary key (dt, id), 3 buckets." in shown(widget)
    table = widget.table
    assert (table.primary_key, table.partition_by, table.buckets) == (("dt", "id"), ("dt",), 3)
    assert table.comment == "It's new"
    assert [f.nullable for f in table.schema] == [False, False, False]
    widget.create.click()
    settle(widget)
    assert "'widgets.made' exists already" in shown(widget)


def test_columns_come_from_rows_which_can_be_inserted(lake):
    widget = fill(widgets.create_table(lake, ROWS), "widgets.filled")
    assert [c.name for c in widget._draft.columns] == ["id", "day", "amount"]
    assert "INSERT" not in widget.sql_text
    lines = widget.columns.children
    lines[0].children[2].value = True
    lines[1].children[0].value = "tag"
    lines[2].children[1].value = "DECIMAL(10,2)"
    widget.insert.value = True
    assert "INSERT INTO `widgets`.`filled` (`id`, `tag`, `amount`)" in widget.sql_text
    assert "`day` AS `tag`,\n  CAST(`amount` AS DECIMAL(10,2)) AS `amount`" in widget.sql_text
    widget.create.click()
    settle(widget)
    assert "2 rows inserted" in shown(widget)
    rows = widget.table.to_df().orderBy("id").collect()
    assert [(r.id, r.tag, r.amount and str(r.amount)) for r in rows] == [(1, "a", "1.50"), (2, "b", None)]
    assert not [t.name for t in lake.spark.catalog.listTables() if t.name.startswith("lakekit_rows")]


def test_rows_that_do_not_fit_leave_the_table_and_say_so(lake):
    widget = fill(widgets.create_table(lake, ROWS), "widgets.misfit", insert=True)
    widget.columns.children[1].children[1].value = "INT"
    widget.create.click()
    settle(widget)
    assert "Created table widgets.misfit" in shown(widget)
    assert 'role="alert"' in widget._message.value
    assert widget.table.to_df().count() == 0


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_columns_come_from_a_file(lake, tmp_path, kind):
    path = tmp_path / f"rows.{kind}"
    writers = {
        "csv": lambda: ROWS.to_csv(path, index=False),
        "json": lambda: path.write_text(
            "\n".join(json.dumps(r) for r in ROWS.to_dict("records")).replace("NaN", "null")
        ),
        "parquet": lambda: ROWS.to_parquet(path, index=False),
    }
    writers[kind]()
    widget = widgets.create_table(lake)
    widget.path.value = str(path)
    widget.read.click()
    settle(widget)
    assert {c.name: c.type for c in widget._draft.columns}.items() >= {
        "day": "STRING",
        "amount": "DOUBLE",
    }.items()


def test_a_file_that_cannot_be_read_is_an_error_in_the_widget(lake, tmp_path):
    widget = widgets.create_table(lake)
    widget.path.value = "rows.xlsx"
    widget.read.click()
    assert "'File' cannot be 'rows.xlsx'" in shown(widget)
    widget.path.value = str(tmp_path / "missing.csv")
    widget.read.click()
    settle(widget)
    assert "PATH_NOT_FOUND" in shown(widget)
    assert "Traceback" not in shown(widget)
    assert not widget.read.disabled


@pytest.mark.parametrize(
    ("name", "columns", "more", "part", "said"),
    [
        ("bad name", [("id", "INT", {})], {}, "name", "cannot be the name of a table"),
        ("t", [("id", "INTT", {})], {}, "columns", "Column 'id'"),
        ("t", [("id", "INT", {}), ("ID", "INT", {})], {}, "columns", "differ by more than"),
        ("t", [("a b", "INT", {})], {}, "columns", "cannot be the name of a column"),
        ("t", [("m", "ARRAY<INT>", {"key"})], {}, "key", "no order that every reader agrees on"),
        ("t", [("a", "INT", {"key"}), ("b", "INT", {"partition"})], {}, "partitions", "does not contain"),
        ("t", [("a", "INT", {"key"})], {"buckets": "many"}, "buckets", "cannot be 'many'"),
        ("t", [("a", "INT", {"key"})], {"expected_rows": "-1"}, "buckets", "expected-rows"),
        ("t", [("a", "INT", {})], {"buckets": "2"}, "buckets", "without a primary key has no buckets"),
        ("t", [("a", "INT", {"key"})], {"log_store": True, "address": "nowhere"}, "log", "log-store.address"),
        ("t", [("a", "INT", {"key"})], {"log_store": True, "topic": "a topic"}, "log", "log-store.topic"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(lake, name, columns, more, part, said):
    widget = fill(widgets.create_table(lake), name, columns, **more)
    assert said in widget._errors[part].value.replace("&#x27;", "'")
    assert [other for other, view in widget._errors.items() if view.value] == [part]
    assert widget.create.disabled
    assert widget.sql_text == ""


def test_buckets_are_suggested(lake):
    widget = fill(
        widgets.create_table(lake), "widgets.large", [("id", "BIGINT", {"key"}), ("v", "STRING", {})]
    )
    few = widget._buckets_known
    assert f"'bucket' = '{few}'" in widget.sql_text
    widget.expected_rows.value = "1000000000"
    assert "'bucket' = '38'" in widget.sql_text
    assert "38 (suggested)" in widget.buckets.placeholder
    assert "'expected-rows' = '1000000000'" in widget.sql_text


def test_the_log_store(lake):
    widget = fill(widgets.create_table(lake), "widgets.logged", [("id", "BIGINT", {"key"})], log_store=True)
    for text in ("'log-store.enabled' = 'true'", "'log-store.topic' = 'widgets.logged'", "'embedded'"):
        assert text in widget.sql_text
    assert widget._log_fields.layout.display == ""


def test_columns_are_added_and_removed(lake):
    widget = fill(widgets.create_table(lake, ROWS), "widgets.some")
    widget.columns.children[1].children[2].value = True
    widget.columns.children[1].children[-1].click()
    assert "day" not in widget.sql_text
    assert "PRIMARY KEY" not in widget.sql_text
    widget.add.click()
    assert "cannot be the name of a column" in shown(widget)
    widget.columns.children[-1].children[0].value = "note"
    assert "`note` STRING" in widget.sql_text


def test_many_columns_come_in_pages(lake):
    wide = pd.DataFrame({f"c{n}": [n] for n in range(2 * PAGE + 5)})
    widget = fill(widgets.create_table(lake, wide), "widgets.wide")
    assert len(widget.columns.children) == PAGE
    widget.on.click()
    widget.on.click()
    widget.on.click()
    assert [line.children[0].value for line in widget.columns.children] == [
        f"c{2 * PAGE + n}" for n in range(5)
    ]
    assert f"columns {2 * PAGE + 1} to {2 * PAGE + 5} of {2 * PAGE + 5}" in shown(widget)
    widget.columns.children[0].children[0].value = "renamed"
    assert "`renamed` BIGINT" in widget.sql_text


@pytest.mark.parametrize("bad", HOSTILE)
def test_hostile_texts_are_only_text(lake, bad):
    column = bad.replace(" ", "").replace("(", "").replace(")", "").replace("=", "")
    widget = fill(widgets.create_table(lake), "widgets.harmless", [(column, "INT", {"key"})], comment=bad)
    assert f"`{column}` INT" in widget.sql_text
    assert bad in widget.sql_text
    assert_harmless(widget)
    fill(widget, bad, [(bad, bad, set())], topic=bad, log_store=True, buckets=bad, path=bad)
    widget.read.click()
    assert_harmless(widget)


def test_quotes_cannot_leave_their_place_in_the_sql(lake):
    evil = "x`,`y"
    widget = fill(
        widgets.create_table(lake),
        "widgets.quoted",
        [("id", "INT", {"key"})],
        comment="\\'; DROP TABLE t; --",
    )
    widget.columns.children[0].children[0].value = evil.replace(",", "")
    widget.create.click()
    settle(widget)
    assert widget.table.comment == "\\'; DROP TABLE t; --"
    assert widget.table.schema.names == ["x``y"]
