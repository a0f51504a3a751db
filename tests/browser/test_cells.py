"""SQL cells: their colours, completion, results, and the stop button."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

LONG_QUERY = "%%lakesql\nSELECT count(*) FROM range(100000000000000) WHERE sha2(string(id), 512) < '0'"

# The colours of the words of a cell, each as the name of the theme's variable that has it.
COLOURS = """cell => {
    const style = getComputedStyle(document.body), probe = document.createElement('i'), names = {};
    document.body.append(probe);
    for (const name of ['keyword', 'string', 'number', 'comment', 'meta', 'attribute']) {
        probe.style.color = style.getPropertyValue(`--jp-mirror-editor-${name}-color`);
        names[getComputedStyle(probe).color] = name;
    }
    probe.remove();
    const found = {}, walker = document.createTreeWalker(cell.querySelector('.cm-content'), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const { data, parentElement } = walker.currentNode;
        for (const word of data.trim().split(/\\s+/)) found[word] = names[getComputedStyle(parentElement).color];
    }
    return found;
}"""


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_sql_cell_has_the_colours_of_sql_in_both_themes(shop, theme):
    shop.theme(theme)
    code = "%%lakesql --limit 5\nSELECT count(*), 'a # b' FROM shop.orders$files WHERE id > 41 -- why"
    colours = shop.cell(shop.add(code)).evaluate(COLOURS)
    assert {colours[word] for word in ("SELECT", "FROM", "WHERE")} == {"keyword"}
    assert (colours["%%lakesql"], colours["--limit"]) == ("meta", "attribute")
    assert (colours["41"], colours["b'"], colours["why"]) == ("number", "string", "comment")


def test_the_colours_follow_the_magic(shop):
    index = shop.add("import os\nFROM = 1")
    cell, source = (
        shop.cell(index),
        "() => window.jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel",
    )
    assert cell.evaluate(COLOURS)["import"] == "keyword"
    assert cell.evaluate(COLOURS)["FROM"] != "keyword"
    shop.page.evaluate(f"{source}.updateSource(0, 0, '%%lakesql\\n')")
    expect(cell.locator(".cm-line").first).to_have_text("%%lakesql")
    assert cell.evaluate(COLOURS)["FROM"] == "keyword"
    assert cell.evaluate(COLOURS)["os"] != "keyword"
    shop.page.evaluate(f"{source}.updateSource(0, 10, '')")
    expect(cell.locator(".cm-line").first).to_have_text("import os")
    assert cell.evaluate(COLOURS)["import"] == "keyword"
    assert cell.evaluate(COLOURS)["FROM"] != "keyword"


def test_sql_on_a_line_magic_has_its_colours_and_the_python_around_it_too(shop):
    colours = shop.cell(shop.add("import os\n%lakesql SELECT 'x' FROM shop.orders\nimport re")).evaluate(
        COLOURS
    )
    assert (colours["SELECT"], colours["'x'"], colours["FROM"]) == ("keyword", "string", "keyword")
    assert colours["import"] == "keyword"
    assert colours["os"] is None


def test_tab_offers_columns_in_a_sql_cell(shop):
    cell = shop.type("%%lakesql\nSELECT cust FROM shop.orders")
    for _ in " FROM shop.orders":
        shop.page.keyboard.press("ArrowLeft")
    shop.page.keyboard.press("Tab")
    expect(shop.page.locator(".jp-Completer .jp-Completer-match")).to_have_text(["customer"])
    shop.page.keyboard.press("Enter")
    expect(cell.locator(".cm-content")).to_contain_text("SELECT customer FROM shop.orders")


def test_tab_lists_the_tables_of_a_database(shop):
    cell = shop.type("%%lakesql\nSELECT * FROM shop.")
    shop.page.keyboard.press("Tab")
    items = shop.page.locator(".jp-Completer .jp-Completer-item")
    expect(items).to_have_count(2)
    assert items.locator(".jp-Completer-match").all_inner_texts() == ["clients", "orders"]
    shop.screenshots("completion")
    items.nth(1).click()
    expect(cell.locator(".cm-content")).to_contain_text("SELECT * FROM shop.orders")


def test_a_cell_shows_its_rows_as_a_table(shop):
    output = shop.run("%%lakesql\nSELECT id, customer, amount FROM shop.orders ORDER BY id")
    assert output.locator("th").all_inner_texts() == ["id", "customer", "amount"]
    assert output.locator("tbody tr").all_inner_texts() == ["1\tada\t5.50", "2\tbob\t7.25"]
    shop.screenshots("result-table")


@pytest.mark.parametrize("way", ["button", "keys"])
def test_interrupting_cancels_a_query_and_the_session_stays_usable(shop, way):
    index = shop.start(LONG_QUERY)
    shop.wait_busy()
    if way == "button":
        shop.page.get_by_role("button", name="Interrupt the kernel").click()
    else:
        shop.cell(index).locator(".jp-InputPrompt").first.click()
        shop.page.keyboard.press("i")
        shop.page.keyboard.press("i")
    shop.wait_idle()
    expect(shop.cell(index)).to_contain_text("Interrupted: the statement was cancelled.")
    output = shop.run("%%lakesql\nSELECT 41 + 1 AS answer")
    assert output.locator("tbody td").all_inner_texts() == ["42"]
