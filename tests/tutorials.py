"""The tutorials, and what is asked of a notebook that was run."""

from __future__ import annotations

import fcntl
import re
from pathlib import Path
from typing import Any

from lakekit.logstore.broker import FOLDER as BROKER
from tests.waiting import wait_until

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
RUNNER = FOLDER / "run.py"
TUTORIALS = sorted(FOLDER.glob("*.ipynb"))
FIGURE = "application/vnd.plotly.v1+json"

_MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|Users|tmp|work|opt|usr|var)/\w|[A-Z]:\\\\")


def outputs(notebook: Any) -> list[Any]:
    """Returns the outputs of all cells."""
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def figures(notebook: Any) -> int:
    """Returns how many figures the cells have shown."""
    return sum(FIGURE in output.get("data", {}) for output in outputs(notebook))


def assert_ran_whole(notebook: Any) -> None:
    """Asserts that each cell ran once, in order, and nothing failed."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    failed = [f"{o.ename}: {o.evalue}" for o in outputs(notebook) if o.output_type == "error"]
    assert not failed
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))


def assert_presentable(notebook: Any) -> None:
    """Asserts that the outputs have no paths of a machine and no warnings."""
    assert not _MACHINE_PATH.search(_texts(notebook))
    warned = [output.text for output in outputs(notebook) if output.get("name") == "stderr"]
    assert not warned


def assert_stands_alone(page: str) -> None:
    """Asserts that a page draws its figures and loads nothing from elsewhere."""
    assert "Plotly.newPlot" in page
    assert not re.search(r"<(?:script|link)\b[^>]*\b(?:src|href)=[\"']?http", page)


def wait_for_brokers(folder: Path) -> None:
    """Waits until no embedded Kafka runs whose data is below `folder`: its keeper holds the lock."""
    for lock in folder.rglob(f"{BROKER}/keeper.lock"):
        with lock.open("ab") as handle:
            wait_until(lambda handle=handle: _taken(handle), f"the end of the Kafka of {lock.parent}")


def _taken(handle: Any) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _texts(notebook: Any) -> str:
    """The text of all outputs, without pictures."""
    texts = []
    for output in outputs(notebook):
        texts.append(output.get("text", ""))
        texts += [str(value) for kind, value in output.get("data", {}).items() if kind != "image/png"]
    return "\n".join(texts)
