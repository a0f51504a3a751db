"""Values, names and comments that would be markup change nothing in the page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.test_panel import Panel

ATTACKS = [
    "<script>window.hurt=1</script>",
    "<img src=x onerror=window.hurt=1>",
    '<a class="jp-toolbar" data-commandlinker-command="lakekit:show" data-commandlinker-args="{}">x</a>',
    '"><svg onload=window.hurt=1>',
    "</td></table><iframe srcdoc='<script>top.hurt=1</script>'>",
]
# A column's name may hold no blank and no '='.
COLUMN = "<script>window.hurt</script><img/onerror>"
# JupyterLab itself makes `<a>` without an address of what looks like a path in an error.
MARKUP = "script, img, svg, iframe, a[href], [data-commandlinker-command]"


@pytest.fixture
def unhurt(shop):
    shop.page.evaluate("() => { window.hurt = undefined; }")
    yield shop
    assert shop.page.evaluate("() => window.hurt") is None


@pytest.mark.parametrize("attack", ATTACKS)
def test_as_value_and_as_column_of_a_result(unhurt, attack):
    unhurt.run(f"attack = {attack!r}")
    output = unhurt.run(
        f"%%lakesql\nSELECT :attack AS `{attack}`, named_struct('a', :attack), array(:attack)"
    )
    assert output.locator("th").first.inner_text() == attack
    assert output.locator("td").first.inner_text() == attack
    assert output.locator(".jp-OutputArea-output").locator(MARKUP).count() == 0


def test_in_an_error(unhurt):
    output = unhurt.run(f"%%lakesql\nSELECT `{ATTACKS[1]}` FROM `{ATTACKS[0]}`", ok=False)
    assert "onerror" in output.inner_text() or "script" in output.inner_text()
    assert output.locator(".jp-OutputArea-output").locator(MARKUP).count() == 0


def test_as_column_and_comment_in_the_panel(unhurt):
    panel = Panel(unhurt)
    unhurt.run(
        "from pyspark.sql.types import *\n"
        f"field = StructField({COLUMN!r}, StringType(), True, {{'comment': {ATTACKS[1]!r}}})\n"
        f"hostile = lake.create_table('shop.hostile', StructType([field]), comment={ATTACKS[0]!r})"
    )
    panel.row("table", "hostile").click()
    expect(panel.row("column", COLUMN)).to_be_visible()
    assert panel.row("column", COLUMN).locator(".lakekit-Row-name").get_attribute("title") == ATTACKS[1]
    assert panel.element.locator(".lakekit-Tree").locator(MARKUP).count() == 0
    panel.choose("hostile", "Insert a Query")
    assert unhurt.sources()[-1] == f"%%lakesql\nSELECT `{COLUMN}`\nFROM shop.hostile\nLIMIT 20"
    unhurt.screenshots("panel-hostile")
