"""The side panel "Lake"."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect


class Panel:
    """The panel, open."""

    def __init__(self, notebook):
        self.notebook, self.page = notebook, notebook.page
        self.element = self.page.locator("#lakekit-panel")
        notebook.command("lakekit:show")
        expect(self.element).to_be_visible()

    def row(self, kind, name):
        name_is = self.page.locator(".lakekit-Row-name").get_by_text(name, exact=True)
        return self.element.locator(f'.lakekit-Row[data-kind="{kind}"]').filter(has=name_is)

    def choose(self, table, entry):
        self.row("table", table).click(button="right")
        self.page.locator(".lm-Menu-item").get_by_text(entry, exact=True).click()

    def badges(self, row):
        return row.locator(".lakekit-Badge").all_inner_texts()


@pytest.fixture
def panel(shop):
    shown = Panel(shop)
    yield shown
    shown.element.get_by_label("Filter").fill("")


def test_tables_with_their_key_buckets_and_version(panel):
    expect(panel.row("database", "shop")).to_be_visible()
    assert panel.badges(panel.row("table", "orders")) == ["2 buckets", "v1"]
    panel.row("table", "orders").click()
    expect(panel.row("column", "customer")).to_contain_text("string")
    assert panel.badges(panel.row("column", "day")) == ["key", "partition"]
    assert panel.badges(panel.row("column", "id")) == ["key"]
    panel.notebook.screenshots("panel")
    panel.row("table", "orders").click()
    expect(panel.row("column", "customer")).to_have_count(0)


def test_a_table_that_a_cell_makes_and_one_that_it_drops(panel):
    panel.notebook.run(
        "%%lakesql\nCREATE TABLE shop.returns (id BIGINT NOT NULL, PRIMARY KEY (id)) USING lake"
    )
    expect(panel.row("table", "returns")).to_be_visible()
    panel.notebook.run("%%lakesql\nDROP TABLE shop.returns")
    expect(panel.row("table", "returns")).to_have_count(0)


def test_a_commit_raises_the_version(panel):
    panel.notebook.run("%%lakesql\nINSERT INTO shop.clients VALUES (7, 'eve')")
    expect(panel.row("table", "clients")).to_contain_text("v1")


def test_the_filter_finds_tables_and_columns(panel):
    panel.element.get_by_label("Filter").fill("clien")
    expect(panel.row("table", "clients")).to_be_visible()
    expect(panel.row("table", "orders")).to_have_count(0)
    panel.element.get_by_label("Filter").fill("custom")
    expect(panel.row("column", "customer")).to_be_visible()
    expect(panel.row("table", "clients")).to_have_count(0)
    panel.element.get_by_label("Filter").fill("nothing")
    expect(panel.element).to_contain_text("No table or column has that name.")


def test_the_menu_adds_the_code_that_runs(panel):
    panel.choose("orders", "Preview Rows")
    panel.notebook.wait_idle()
    assert panel.notebook.sources()[-1] == "%%lakesql\nSELECT * FROM shop.orders LIMIT 20"
    panel.choose("orders", "Show Snapshots")
    panel.notebook.wait_idle()
    index = len(panel.notebook.sources()) - 1
    assert panel.notebook.sources()[index] == (
        'import lakekit.plot\n\nlakekit.plot.snapshots(lake.table("shop.orders"))'
    )
    expect(panel.notebook.cell(index).locator(".js-plotly-plot")).to_be_visible()
    panel.choose("orders", "Show Manifests")
    panel.notebook.wait_idle()
    expect(panel.notebook.cell(index + 1).locator(".js-plotly-plot")).to_be_visible()


def test_the_menu_inserts_a_query_without_running_it(panel):
    before = panel.notebook.sources()
    panel.choose("orders", "Insert a Query")
    query = "%%lakesql\nSELECT day, id, customer, amount\nFROM shop.orders\nLIMIT 20"
    assert panel.notebook.sources() == [*before, query]
    expect(panel.notebook.cell(len(before)).locator(".jp-InputPrompt")).to_have_text("[ ]:")


def test_the_tree_can_be_used_with_the_keyboard(panel):
    rows = panel.element.get_by_role("treeitem")
    panel.row("database", "shop").focus()
    names = rows.locator(".lakekit-Row-name").all_inner_texts()
    panel.page.keyboard.press("ArrowDown")
    panel.page.keyboard.press("ArrowRight")
    expect(panel.row("table", "clients")).to_have_attribute("aria-expanded", "true")
    panel.page.keyboard.press("ArrowRight")
    expect(panel.row("column", "client_id")).to_be_focused()
    panel.page.keyboard.press("ArrowLeft")
    expect(panel.row("table", "clients")).to_be_focused()
    panel.page.keyboard.press("ArrowLeft")
    expect(panel.row("table", "clients")).to_have_attribute("aria-expanded", "false")
    panel.page.keyboard.press("Home")
    assert rows.first.evaluate("row => row === document.activeElement")
    assert rows.locator(".lakekit-Row-name").all_inner_texts() == names


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("bare", "The Python of this kernel has no lakekit."),
        ("julia", "The kernel of this notebook runs julia; lakekit needs Python."),
    ],
)
def test_a_kernel_that_cannot_load_lakekit_is_told_why(lab, kernel, message):
    notebook = lab.open(f"{kernel}.ipynb", kernel=kernel)
    panel = Panel(notebook)
    expect(panel.element).to_contain_text(message)
    expect(panel.element.get_by_role("button", name="Load lakekit")).to_have_count(0)
    notebook.close()
    expect(panel.element).to_contain_text("Open a notebook to see the tables of its lake.")


def test_a_kernel_that_has_loaded_lakekit_but_has_no_lake_is_offered_one(lab):
    notebook = lab.open("closed.ipynb")
    panel = Panel(notebook)
    notebook.run("%load_ext lakekit")
    expect(panel.element).to_contain_text("No lake is open in this kernel.")
    expect(panel.element.get_by_role("button", name="Open the lake")).to_be_visible()
    notebook.close()


def test_a_kernel_that_has_not_loaded_lakekit_is_offered_to(lab):
    notebook = lab.open("fresh.ipynb")
    panel = Panel(notebook)
    load = panel.element.get_by_role("button", name="Load lakekit")
    expect(load).to_be_visible()
    output = notebook.run("import sys\n'lakekit' in sys.modules, 'pyspark' in sys.modules")
    assert output.locator(".jp-OutputArea-output").inner_text() == "(False, False)"
    notebook.screenshots("panel-offer")
    load.click()
    notebook.wait_idle()
    assert notebook.sources()[-1] == "import lakekit\n\n%load_ext lakekit\nlake = lakekit.connect()"
    expect(panel.element).to_contain_text("no tables")
