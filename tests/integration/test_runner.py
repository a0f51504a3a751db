"""The runner of the tutorials, over small notebooks without Spark."""

from __future__ import annotations

import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.tutorials import RUNNER


@pytest.fixture
def run(tmp_path):
    def call(*sources, options=()):
        path = tmp_path / "small.ipynb"
        nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), path)
        command = [sys.executable, str(RUNNER), str(path), "--out", str(tmp_path / "out"), *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)

    return call


def test_the_page_holds_its_figures_and_what_draws_them(run, tmp_path):
    done = run(
        "import plotly.graph_objects as go\n"
        "go.Figure(go.Bar(y=[1, 2]), layout_title_text='<b>see https://example.org</b>')"
    )
    assert done.returncode == 0, done.stderr
    assert "1 code cells, 1 figures" in done.stdout
    assert "out/small/small.html" in done.stdout
    page = (tmp_path / "out" / "small" / "small.html").read_text(encoding="utf-8")
    head, body = page.split("</head>", 1)
    assert "plotly.js v" in head
    assert body.count("Plotly.newPlot") == 1
    assert "<script src=" not in page.replace('"', "")


def test_of_a_widget_the_static_form_is_kept(run, tmp_path):
    live = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/html": "<b>as it was</b>"}
    done = run(f"class Widget:\n    def _repr_mimebundle_(self, **asked):\n        return {live}\n\nWidget()")
    assert done.returncode == 0, done.stderr
    assert "<b>as it was</b>" in (tmp_path / "out" / "small" / "small.html").read_text(encoding="utf-8")
    executed = nbformat.read(tmp_path / "out" / "small" / "small.ipynb", as_version=4)
    kept = executed.cells[0].outputs[0].data
    assert kept["text/html"] == live["text/html"]
    assert not any("widget" in kind for kind in kept)


def test_a_cell_that_fails_is_told_and_the_rest_is_kept(run, tmp_path):
    done = run("print('as far as this')", "raise ValueError('a clear reason')", "print('never')")
    assert done.returncode == 1
    assert "a clear reason" in done.stdout
    assert "\x1b[" not in done.stdout
    page = (tmp_path / "out" / "small" / "small.html").read_text(encoding="utf-8")
    assert "as far as this" in page


def test_each_run_begins_in_an_empty_folder_and_leaves_the_notebook_alone(run, tmp_path):
    count = "import pathlib\nassert not pathlib.Path('left').exists()\npathlib.Path('left').touch()"
    assert run(count).returncode == 0
    assert run(count).returncode == 0
    assert nbformat.read(tmp_path / "small.ipynb", as_version=4).cells[0].outputs == []
