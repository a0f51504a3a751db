"""What is left of a widget in a saved notebook, and what is said where widgets cannot be."""

from __future__ import annotations

import subprocess
import sys

import nbformat
import pytest
from nbconvert import HTMLExporter, MarkdownExporter

from lakekit import widgets


@pytest.fixture
def exported(orders):
    """Returns a function that exports a notebook whose only output is a widget, as it is saved without its state."""
    bundle = widgets.snapshots(orders)._repr_mimebundle_()
    output = nbformat.v4.new_output("display_data", bundle)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=[output])])
    return lambda exporter: exporter.from_notebook_node(notebook)[0]


@pytest.mark.parametrize("exporter", [HTMLExporter, MarkdownExporter])
def test_an_exported_notebook_shows_the_tables(exported, exporter):
    page = exported(exporter())
    assert "4 commits" in page
    assert "version 3: 4 rows" in page
    assert page.count("<table") == 2
    assert "application/vnd.jupyter.widget-view+json" not in page


def test_the_text_form_tells_the_same(orders):
    bundle = widgets.snapshots(orders)._repr_mimebundle_()
    lines = bundle["text/plain"].splitlines()
    assert lines[:2] == ["Snapshots of widgets.orders", "Commits, newest first"]
    assert [word.strip() for word in lines[2].split("|")][:3] == ["version", "time (UTC)", "operation"]
    assert "4 commits" in lines
    assert "model_id" in bundle["application/vnd.jupyter.widget-view+json"]
    assert repr(widgets.snapshots(orders).static()) == bundle["text/plain"]


def test_a_missing_package_is_named():
    code = """
import sys
from lakekit import SetupError
for missing in ("ipywidgets", "anywidget", "plotly"):
    kept = dict(sys.modules)
    sys.modules[missing] = None
    try:
        import lakekit.widgets
    except SetupError as error:
        print(error)
    sys.modules.clear()
    sys.modules.update(kept)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert [line.split()[4] for line in said] == ["ipywidgets,", "anywidget,", "plotly,"]
    assert all("lakekit[notebook]" in line for line in said)
