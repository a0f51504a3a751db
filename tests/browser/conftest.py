"""A real browser on a real JupyterLab with real kernels.

``lab``
    One server and one page for all tests of this folder (`tests.browser.lab.Lab`). ``lab.open("x.ipynb")`` opens
    a notebook, new or of the folder ``lab.server.root``, and returns a `Notebook`; ``lab.open_lake("x.ipynb")``
    has also run ``lake = lakekit.connect(…)`` and ``%load_ext lakekit``, which takes 5 to 15 seconds, the first time
    that this name is opened. So make that a fixture of your module, with ``scope="module"``, and let its tests share
    the kernel.

The notebook: ``run(code)`` adds a cell, waits for it and returns its output area as a Playwright locator;
``start(code)`` does not wait; ``type(code)`` presses the keys; ``run_all()``, ``wait_idle()``,
``theme("dark")``, ``command("notebook:interrupt-kernel")``; ``screenshots("name")`` writes
``build/screenshots/name-light.png`` and ``name-dark.png``. Everything else is ``notebook.page``, Playwright's.

Where a test fails, its report has what is wrong in the page: errors of scripts, and what figures show.

The browser is Debian's Chromium, or the program in `LAKEKIT_CHROMIUM`. Without one these tests are skipped, and
fail where `CI` is set.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import suppress

import pytest

from tests.browser.lab import Lab, Notebook
from tests.browser.server import serve

_FLAGS = [
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
]
_WINDOW = {"width": 1280, "height": 860}

SHOP = """\
%%lakesql
CREATE DATABASE shop;
CREATE TABLE shop.orders (
  day DATE NOT NULL, id BIGINT NOT NULL, customer STRING, amount DECIMAL(9, 2), PRIMARY KEY (day, id)
) USING lake PARTITIONED BY (day) TBLPROPERTIES ('bucket' = '2');
CREATE TABLE shop.clients (client_id BIGINT NOT NULL, name STRING, PRIMARY KEY (client_id)) USING lake;
INSERT INTO shop.orders VALUES (DATE'2026-03-01', 1, 'ada', 5.5), (DATE'2026-03-02', 2, 'bob', 7.25)"""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to the report of a failed test what is wrong in the page."""
    report = yield
    lab = getattr(item, "funcargs", {}).get("lab")
    if lab and report.when == "call" and report.failed:
        with suppress(Exception):  # the test has failed already, the page may be gone
            report.sections.append(("The page", lab.report(f"failed-{item.name}")))
    return report


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser."""
    chosen = os.environ.get("LAKEKIT_CHROMIUM")
    for name in [chosen] if chosen else ["chromium", "chromium-browser", "google-chrome"]:
        if path := shutil.which(name):
            return path
    reason = "No Chromium here: apt-get install chromium, or name one in LAKEKIT_CHROMIUM."
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="package")
def lab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab and a page; for this folder only, because Playwright keeps an event loop in the thread."""
    from playwright.sync_api import sync_playwright

    with serve(tmp_path_factory.mktemp("lab")) as server, sync_playwright() as playwright:
        # Chromium has no sandbox for root.
        browser = playwright.chromium.launch(
            executable_path=chromium, args=_FLAGS, chromium_sandbox=os.geteuid() != 0
        )
        page = browser.new_page(viewport=_WINDOW)
        page.set_default_timeout(30_000)
        yield Lab(server, page)
        browser.close()


@pytest.fixture(scope="module")
def shop(lab: Lab) -> Notebook:
    """A notebook with the tables ``shop.orders`` and ``shop.clients``; modules that use it share its kernel."""
    is_new = not (lab.server.root / "shop.ipynb").exists()
    notebook = lab.open_lake("shop.ipynb")
    if is_new:
        notebook.run(SHOP)
    return notebook
