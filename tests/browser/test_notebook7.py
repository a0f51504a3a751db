"""The same in Jupyter Notebook 7, which is made of JupyterLab's parts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.test_cells import COLOURS
from tests.browser.test_panel import Panel


@pytest.fixture(scope="module")
def classic(lab, shop):  # its kernel
    return lab.open_in_notebook_7("shop.ipynb")


def test_a_sql_cell_has_the_colours_of_sql(classic):
    colours = classic.cell(classic.add("%%lakesql --limit 5\nSELECT 'a' FROM shop.orders")).evaluate(COLOURS)
    assert (colours["SELECT"], colours["FROM"], colours["'a'"]) == ("keyword", "keyword", "string")
    assert (colours["%%lakesql"], colours["--limit"]) == ("meta", "attribute")


def test_tab_offers_columns(classic):
    cell = classic.type("%%lakesql\nSELECT * FROM shop.orders WHERE cust")
    classic.page.keyboard.press("Tab")
    expect(classic.page.locator(".jp-Completer .jp-Completer-match")).to_have_text(["customer"])
    classic.page.keyboard.press("Enter")
    expect(cell.locator(".cm-content")).to_contain_text("WHERE customer")


def test_a_cell_runs_and_the_panel_shows_its_tables(classic):
    output = classic.run("%%lakesql\nSELECT count(*) AS n FROM shop.orders")
    assert output.locator("tbody td").all_inner_texts() == ["2"]
    expect(Panel(classic).row("table", "orders")).to_be_visible()
    classic.screenshots("notebook-7")
