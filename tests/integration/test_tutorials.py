"""The tutorials as they are kept, and the program that runs one headless; tests/browser runs them all."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys

import nbformat
import pytest

from tests.tutorials import (
    FIGURE,
    FOLDER,
    RUNNER,
    TUTORIALS,
    assert_presentable,
    assert_ran_whole,
    assert_stands_alone,
    outputs,
    wait_for_brokers,
)


def name(path):
    return path.stem


def test_the_index_lists_the_tutorials_in_their_order():
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert TUTORIALS
    assert re.findall(r"\]\((\w+\.ipynb)\)", index) == [tutorial.name for tutorial in TUTORIALS]


@pytest.mark.parametrize("tutorial", TUTORIALS[3:4], ids=name)  # tests/browser runs them all
def test_a_tutorial_runs_headless_and_its_page_stands_alone(tutorial, tmp_path):
    command = [sys.executable, str(RUNNER), str(tutorial), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    page = (tmp_path / tutorial.stem / f"{tutorial.stem}.html").read_text(encoding="utf-8")
    assert f"as HTML    {tmp_path / tutorial.stem / tutorial.stem}.html" in done.stdout
    assert_stands_alone(page)
    executed = nbformat.read(tmp_path / tutorial.stem / tutorial.name, as_version=4)
    assert_ran_whole(executed)
    assert_presentable(executed)
    wait_for_brokers(tmp_path)


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=name)
def test_the_page_of_a_tutorial_stands_alone(tutorial):
    to_html = runpy.run_path(str(RUNNER))["to_html"]
    assert_stands_alone(to_html(nbformat.read(tutorial, as_version=4), tutorial.stem))


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=name)
def test_a_tutorial_is_kept_with_outputs_that_any_viewer_shows(tutorial):
    notebook = nbformat.read(tutorial, as_version=4)
    nbformat.validate(notebook)
    assert_ran_whole(notebook)
    assert_presentable(notebook)
    for output in outputs(notebook):
        data = output.get("data", {})
        assert FIGURE not in data or "image/png" in data
    assert tutorial.stat().st_size < 2_000_000
