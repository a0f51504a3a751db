"""Each widget, used by clicking and with the keyboard."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Locator

    from tests.browser.lab import Lab, Notebook

SETUP = """
import json, pathlib, time
from lakekit import widgets
LOG = {"log-store.enabled": True, "log-store.address": "embedded", "log-store.consistency-guarantee.enabled": True}
lake.create_database("shop", if_not_exists=True)
orders = lake.create_table("shop.orders", "day STRING, id BIGINT, amount DOUBLE, note STRING",
    primary_key=["day", "id"], partition_by=["day"], buckets=3, properties={"compaction.auto": False})
for version in range(4):
    orders.upsert([{"day": f"2024-01-0{1 + i % 3}", "id": i, "amount": i * 1.5, "note": f"version {version}"}
                   for i in range(version * 20, version * 20 + 60)])
orders.delete([{"day": "2024-01-01", "id": 0}])
BAD = ["<script>window.hacked = 1</script>", '<img src=x onerror="window.hacked = 1">',
       '"><a data-commandlinker-command="x">']
bad = lake.create_table("shop.bad", "p STRING, id STRING, `<script>x</script>` STRING", primary_key=["p", "id"],
    partition_by=["p"], buckets=1, comment=BAD[1], properties={**LOG, "log-store.topic": "bad"})
for value in BAD:
    bad.upsert([{"p": value, "id": value, "<script>x</script>": value}])
"""
LONG = 90_000


@pytest.fixture(scope="module")
def notebook(lab: Lab) -> Iterator[Notebook]:
    opened = lab.open_lake("widgets.ipynb")
    opened.run(SETUP)
    before = opened.page.viewport_size
    opened.page.set_viewport_size({"width": 1280, "height": 1500})
    yield opened
    opened.page.set_viewport_size(before)


def show(notebook: Notebook, code: str) -> Locator:
    """Shows a widget; returns it once it is drawn."""
    widget = notebook.run(code).locator(".lakekit-widget").first
    widget.wait_for()
    widget.scroll_into_view_if_needed()
    return widget


def drawn(widget: Locator, figures: int = 1) -> None:
    """Waits until the figures are drawn."""
    expect(widget.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=LONG)
    expect(widget.locator(".js-plotly-plot")).to_have_count(figures)


def press(widget: Locator, name: str) -> None:
    """Presses a button with the keyboard."""
    button = widget.get_by_role("button", name=name, exact=True)
    expect(button).to_be_enabled(timeout=LONG)
    button.focus()
    button.press("Enter")


def click_mark(mark: Locator, x: float, y: float) -> None:
    """Clicks a bar or a tile of a figure, x and y pixels into it, once the figure answers to the mouse there.

    A figure takes clicks only where it hovers, and it does not while it is drawn anew.
    """
    page = mark.page
    figure = mark.locator("xpath=ancestor::*[contains(@class, 'js-plotly-plot')][1]")
    label = figure.locator(".hoverlayer .hovertext").first
    mark.scroll_into_view_if_needed()

    def hovers() -> bool:
        box = mark.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + x + 5, box["y"] + y + 5)
        page.mouse.move(box["x"] + x, box["y"] + y, steps=5)
        page.wait_for_timeout(100)
        return label.is_visible()

    wait_until(hovers, "the label of the mark")
    page.mouse.down()
    page.mouse.up()


def tab(widget: Locator, name: str) -> None:
    widget.locator(".lm-TabBar-tabLabel", has_text=name).click()


def assert_harmless(widget: Locator) -> None:
    """Checks that nothing of the values became part of the page."""
    page = widget.page
    assert page.evaluate("window.hacked") is None
    assert widget.locator("script, img[src='x'], [data-commandlinker-command], [onerror]").count() == 0


def test_snapshots(notebook):
    widget = show(notebook, "widgets.snapshots(orders)")
    drawn(widget)
    bars = widget.locator(".barlayer .point path")
    expect(bars.nth(1)).to_be_attached()
    expect(widget.get_by_text("version 5: first 20 of 119 rows")).to_be_visible()
    handle = widget.get_by_role("slider").first
    handle.focus()
    handle.press("ArrowLeft")
    handle.press("ArrowLeft")
    expect(widget.get_by_text("version 3: first 20 of 100 rows")).to_be_visible(timeout=LONG)
    tab(widget, "Commit")
    expect(widget.get_by_text("rows inserted, updated, deleted")).to_be_visible()
    expect(widget.get_by_text("20, 40, 0")).to_be_visible()
    tab(widget, "Changes")
    press(widget, "Show changes")
    expect(widget.get_by_text("1 change after version 4 up to 5")).to_be_visible(timeout=LONG)
    first = widget.locator("input[type=number]").first
    first.fill("3")
    first.press("Enter")
    press(widget, "Show changes")
    expect(widget.get_by_text("after version 3 up to 5")).to_be_visible(timeout=LONG)
    # The first commit with rows: that which made the table has none. Bars end far below the page: the axis is
    # logarithmic.
    click_mark(bars.nth(1), 3, 6)
    tab(widget, "Rows")
    expect(widget.get_by_text("version 1: first 20 of 60 rows")).to_be_visible(timeout=LONG)
    notebook.screenshots("widget-snapshots", widget)


def test_manifests(notebook):
    widget = show(notebook, "widgets.manifests(orders)")
    drawn(widget, 2)
    expect(widget.locator(".treemaplayer .surface").first).to_be_visible()
    widget.get_by_role("button", name="level", exact=True).click()
    expect(widget.get_by_text("level 0 orange, level 1 blue")).to_be_visible()
    widget.locator("select").nth(0).select_option("day=2024-01-02")
    expect(widget.get_by_text(re.compile("sorted runs of day=2024-01-02")).first).to_be_visible()
    notebook.screenshots("widget-manifests", widget)
    tile = widget.locator(".treemaplayer g.slice", has_text="bucket 1").last.locator("path.surface")
    click_mark(tile, 30, 4)
    expect(widget.get_by_text(re.compile(r"sorted runs of day=2024-01-0\d / bucket 1")).first).to_be_visible()
    tab(widget, "Log files")
    expect(widget.get_by_text("_delta_log/00000000000000000005.json")).to_be_visible()
    handle = widget.get_by_role("slider").first
    handle.focus()
    handle.press("ArrowLeft")
    expect(widget.get_by_text("_delta_log/00000000000000000005.json")).to_have_count(0, timeout=LONG)


def test_skipping(notebook):
    widget = show(notebook, "widgets.skipping(lake)")
    query = widget.locator("textarea")
    query.fill("SELECT * FROM shop.orders WHERE nothing = 1")
    press(widget, "Explain")
    expect(widget.get_by_role("alert")).to_contain_text("nothing", timeout=LONG)
    query.fill("SELECT note FROM shop.orders WHERE day = '2024-01-02' AND id = 7 AND length(note) > 3")
    press(widget, "Explain")
    expect(widget.get_by_text("its partition holds no wanted row").first).to_be_visible(timeout=LONG)
    drawn(widget)
    expect(widget.get_by_role("alert")).to_have_count(0)
    notebook.screenshots("widget-skipping", widget)
    widget.get_by_role("button", name="read", exact=True).click()
    expect(widget.get_by_text("its partition holds no wanted row")).to_have_count(0)


def test_create_table(notebook):
    widget = show(
        notebook,
        "import pandas as pd\n"
        'made = widgets.create_table(lake, pd.DataFrame({"id": [1, 2], "day": ["a", "b"], "amount": [1.5, 2.5]}))\n'
        "made",
    )
    name = widget.get_by_placeholder("database.table").first
    name.press_sequentially("shop.new one")
    expect(widget.get_by_role("alert")).to_contain_text("cannot be the name of a table")
    expect(widget.get_by_role("button", name="Create", exact=True)).to_be_disabled()
    name.fill("shop.made")
    expect(widget.get_by_role("alert")).to_have_count(0)
    widget.get_by_label("key").first.check()
    widget.get_by_label("Insert the rows").check()
    expect(widget.locator("pre")).to_contain_text("PRIMARY KEY (`id`)")
    expect(widget.locator("pre")).to_contain_text("INSERT INTO `shop`.`made`")
    notebook.screenshots("widget-create-table", widget)
    press(widget, "Create")
    expect(widget.get_by_text("Created table shop.made: primary key (id)")).to_be_visible(timeout=LONG)
    expect(notebook.run("made.table.to_df().count()")).to_contain_text("2")


def test_ingestion(notebook):
    notebook.run("""
feed = pathlib.Path("feed"); feed.mkdir(exist_ok=True)
def put(n, first=0):
    (feed / f".{n}").write_text("".join(json.dumps({"id": first + i, "v": f"row {i}"}) + "\\n" for i in range(50)))
    (feed / f".{n}").rename(feed / f"{n}.json")
clicks = lake.create_table("shop.clicks", "id BIGINT, v STRING", primary_key=["id"], buckets=1,
    properties={**LOG, "log-store.topic": "clicks"})
put(1)
rows = lake.spark.readStream.schema("id BIGINT, v STRING").json(str(feed.resolve()))
""")
    widget = show(notebook, "widgets.ingestion(clicks, rows, interval=3)")
    drawn(widget)
    press(widget, "Start")
    expect(widget.get_by_text("running")).to_be_visible(timeout=LONG)
    expect(widget.get_by_text("FileStreamSource")).to_be_visible(timeout=LONG)
    for n in range(2, 6):
        notebook.run(f"put({n}, {n * 20}); time.sleep(1.2)")
    expect(widget.get_by_text("STREAM").first).to_be_visible(timeout=LONG)
    notebook.screenshots("widget-ingestion", widget)
    press(widget, "Pause")
    expect(widget.get_by_text("paused")).to_be_visible(timeout=LONG)
    press(widget, "Resume")
    expect(widget.get_by_text("running")).to_be_visible(timeout=LONG)
    press(widget, "Stop")
    expect(widget.get_by_text("stopped")).to_be_visible(timeout=LONG)
    expect(notebook.run("clicks.to_df().count()")).to_contain_text("150")


def test_live(notebook):
    notebook.run("""
seen = lake.create_table("shop.seen", "id BIGINT, v STRING", primary_key=["id"], buckets=1,
    properties={**LOG, "log-store.topic": "seen"})
seen.upsert([{"id": i, "v": "first"} for i in range(5)])
""")
    widget = show(notebook, "widgets.live(seen)")
    expect(widget.get_by_text("version 1: 5 rows")).to_be_visible()
    press(widget, "Start")
    expect(widget.get_by_text("following")).to_be_visible(timeout=LONG)
    notebook.run("""
from lakekit.ingest.epochs import StreamLog
from lakekit.table.log import TableLog
seen.upsert([{"id": 1, "v": "second"}, {"id": 9, "v": "new"}]); seen.delete([{"id": 2}])
writer = StreamLog(seen, TableLog.of(seen), "writer", patience=0)
writer.send(1, lake.spark.createDataFrame([(77, "broken")], seen.schema).toArrow())
writer.flip(0)
writer.close()
""")
    expect(widget.get_by_text("-D taken back")).to_be_visible(timeout=LONG)
    expect(widget.get_by_text("version 3: 5 rows")).to_be_visible(timeout=LONG)
    notebook.run('seen.emitting("log").upsert([{"id": 50, "v": "only in the log"}])')
    widget.get_by_role("button", name="log", exact=True).click()
    expect(widget.get_by_text("newer changes over it")).to_be_visible(timeout=LONG)
    expect(widget.get_by_text("only in the log")).to_have_count(2, timeout=LONG)
    notebook.screenshots("widget-live", widget)
    press(widget, "Pause")
    expect(widget.get_by_text("paused")).to_be_visible(timeout=LONG)


@pytest.mark.parametrize(
    "code",
    [
        "widgets.snapshots(bad)",
        "widgets.manifests(bad)",
        "widgets.skipping(lake, f\"SELECT * FROM shop.bad WHERE p = '{BAD[1]}'\")",
        "hostile = widgets.create_table(lake, bad.to_df()); hostile.name.value = BAD[0]; hostile",
        'hostile = widgets.live(bad, startup="earliest"); hostile.start(); hostile',
    ],
)
def test_hostile_values_change_nothing_in_the_page(notebook, code):
    widget = show(notebook, code)
    expect(widget.get_by_text(re.compile("window")).first).to_be_attached(timeout=LONG)
    assert_harmless(widget)


def test_a_saved_widget_is_readable_without_its_kernel(notebook, lab):
    """The last test here: it ends the kernel of the others."""
    widget = show(notebook, "widgets.snapshots(orders)")
    drawn(widget)
    notebook.close()
    opened = lab.open("widgets.ipynb")  # with a kernel that knows nothing of the widget
    saved = opened.cell(len(opened.sources()) - 1)
    expect(saved.locator(".lakekit-static")).to_be_visible(timeout=LONG)
    expect(saved.get_by_text("version 5: first 20 of 119 rows")).to_be_visible()
    expect(saved.get_by_text("model not found")).not_to_be_visible()
    opened.screenshots("widget-saved", saved)
    expect(opened.run("'alive'")).to_contain_text("'alive'")
