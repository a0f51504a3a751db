"""Runs the first tutorial from start to end and says what came out: the work of `make demo`."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "notebooks" / "01_keyed_table.ipynb"
OUT = ROOT / "build" / "demo"
SUMMARY = "summary"
"""Tag of the cells whose printed text is shown here."""


def main() -> int:
    """Executes the notebook in a fresh folder; returns the exit code."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    # The page must show its figures without a network: plotly's code goes into it.
    os.environ.setdefault("PLOTLY_RENDERER", "notebook")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(
        notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(OUT)}}
    )
    print(f"Running {NOTEBOOK.relative_to(ROOT)} …", flush=True)
    start = time.monotonic()
    failure = None
    try:
        client.execute()
    except CellExecutionError as error:
        failure = error
    seconds = time.monotonic() - start
    page = OUT / f"{NOTEBOOK.stem}.html"
    html, _ = HTMLExporter().from_notebook_node(notebook)
    page.write_text(html, encoding="utf-8")
    if failure is not None:
        print(f"The notebook stopped with {failure.ename}: {failure.evalue}", file=sys.stderr)
        print(f"What ran until then: {page}", file=sys.stderr)
        return 1
    print("\n".join(summary(notebook)))
    print(f"The notebook took {seconds:.0f} s. It is here, with its figures: {page}")
    return 0


def summary(notebook: nbformat.NotebookNode) -> list[str]:
    """Returns what the cells tagged as summary printed."""
    cells = [cell for cell in notebook.cells if SUMMARY in cell.metadata.get("tags", ())]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    return [output.text.rstrip() for output in outputs if output.output_type == "stream"]


if __name__ == "__main__":
    sys.exit(main())
