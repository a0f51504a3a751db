"""The tutorials in JupyterLab, as people run them: open, run all cells, look. They assert their own results."""

from __future__ import annotations

import nbformat
import pytest
from playwright.sync_api import expect

from tests.tutorials import TUTORIALS, assert_presentable, assert_ran_whole, figures, wait_for_brokers

TUTORIAL_S = 600
"""How long a tutorial may run where other tests run beside it."""


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_in_the_browser(lab, tutorial):
    notebook = lab.open(tutorial.name)
    notebook.command("notebook:clear-all-cell-outputs")
    notebook.run_all(seconds=TUTORIAL_S)
    notebook.command("docmanager:save")
    done = nbformat.read(lab.server.root / tutorial.name, as_version=4)
    assert_ran_whole(done)
    assert_presentable(done)
    panel = notebook.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    drawn = panel.locator(".js-plotly-plot:not(.jupyter-widgets *) .main-svg:first-child")
    expect(drawn).to_have_count(figures(done))
    expect(panel.get_by_text("Error displaying widget")).to_have_count(0)
    notebook.screenshots(f"tutorial-{tutorial.stem}")
    notebook.close()
    wait_for_brokers(lab.server.root)
