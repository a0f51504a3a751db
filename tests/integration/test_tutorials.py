"""The tutorials run from start to end; what they assert is in their cells."""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from lakekit.logstore.broker import FOLDER as BROKER

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
TUTORIALS = sorted(FOLDER.glob("*.ipynb"))
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|Users|tmp|work|opt|usr|var)/\w|[A-Z]:\\\\")
BROKER_END_S = 60


def name(path):
    return path.stem


def test_the_index_lists_the_tutorials_in_their_order():
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert TUTORIALS
    assert re.findall(r"\]\((\w+\.ipynb)\)", index) == [tutorial.name for tutorial in TUTORIALS]


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=name)
def test_a_tutorial_runs_and_its_page_stands_alone(tutorial, tmp_path):
    command = [sys.executable, str(FOLDER / "run.py"), str(tutorial), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    page = (tmp_path / tutorial.stem / f"{tutorial.stem}.html").read_text(encoding="utf-8")
    assert f"as HTML    {tmp_path / tutorial.stem / tutorial.stem}.html" in done.stdout
    assert "Plotly.newPlot" in page
    assert not re.search(r"<(?:script|link)\b[^>]*\b(?:src|href)=[\"']?http", page)
    executed = nbformat.read(tmp_path / tutorial.stem / tutorial.name, as_version=4)
    assert not MACHINE_PATH.search(_outputs(executed))
    assert "stderr" not in {output.get("name") for output in _all_outputs(executed)}
    for lock in tmp_path.rglob(f"{BROKER}/keeper.lock"):
        _wait_for_end(lock)


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=name)
def test_a_tutorial_is_kept_with_outputs_that_any_viewer_shows(tutorial):
    notebook = nbformat.read(tutorial, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for output in _all_outputs(notebook):
        data = output.get("data", {})
        assert output.output_type != "error"
        assert "application/vnd.plotly.v1+json" not in data or "image/png" in data
    assert not MACHINE_PATH.search(_outputs(notebook))
    assert tutorial.stat().st_size < 2_000_000


def _wait_for_end(lock):
    """Waits until no embedded Kafka runs that the tutorial started: its keeper holds the lock."""
    deadline = time.monotonic() + BROKER_END_S
    with lock.open("ab") as handle:
        while True:
            try:
                return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                assert time.monotonic() < deadline, "the Kafka of the tutorial still runs"
                time.sleep(0.1)


def _all_outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def _outputs(notebook):
    """The text of all outputs, without pictures."""
    texts = []
    for output in _all_outputs(notebook):
        texts.append(output.get("text", ""))
        texts += [str(value) for kind, value in output.get("data", {}).items() if kind != "image/png"]
    return "\n".join(texts)
