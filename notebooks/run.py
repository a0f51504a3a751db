"""Runs tutorial notebooks headless, and writes each as an HTML page that needs no internet.

    python notebooks/run.py                             # the first tutorial
    python notebooks/run.py notebooks/01_keyed_table.ipynb --out build/notebooks
    python notebooks/run.py --save                      # for maintainers: also keeps the outputs in the notebook

A notebook runs in a new folder of its own, where its warehouse stays to be looked at.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

HERE = Path(__file__).resolve().parent
PLOTLY = "application/vnd.plotly.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
CELL_TIMEOUT = 600
IMAGE = {"width": 900}


def main() -> int:
    """Runs the notebooks of the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, default=[HERE / "01_keyed_table.ipynb"])
    parser.add_argument(
        "--out", type=Path, default=Path("build") / "notebooks", help="folder for the results"
    )
    parser.add_argument(
        "--save", action="store_true", help="keep the outputs in the notebook (needs kaleido)"
    )
    arguments = parser.parse_args()
    failed = [path for path in arguments.notebooks if not run(path, arguments.out, arguments.save)]
    return 1 if failed else 0


def run(path: Path, out: Path, save: bool = False) -> bool:
    """Executes one notebook, writes it to ``out/<name>/`` with its HTML, prints a summary; True if it passed."""
    folder = out.resolve() / path.stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"Running {shown(path)} …", flush=True)
    notebook = nbformat.read(path, as_version=4)
    started = time.monotonic()
    error = execute(notebook, folder)
    seconds = time.monotonic() - started
    for data in output_data(notebook):
        # Without a kernel a widget is its static form.
        data.pop(WIDGET, None)
    executed, page = folder / path.name, folder / f"{path.stem}.html"
    nbformat.write(notebook, executed)
    page.write_text(to_html(notebook, path.stem), encoding="utf-8")
    if error:
        print(f"{path.name} failed after {seconds:.0f} s:\n\n{error}\n\nAs far as it came: {shown(page)}")
        return False
    if save:
        nbformat.write(with_images(without_traces(notebook)), path)
    summarise(notebook, folder, seconds)
    print(f"  notebook   {shown(executed)}\n  as HTML    {shown(page)}")
    return True


def execute(notebook: nbformat.NotebookNode, folder: Path) -> str:
    """Executes the cells in place, in `folder`; returns what went wrong, or an empty text."""
    # Figures as data: they become pictures here, once for the page and not once for each figure.
    environment = os.environ | {"PLOTLY_RENDERER": "plotly_mimetype"}
    # The kernel of this interpreter, whatever is registered under the name python3.
    kernel = AsyncKernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    client = NotebookClient(
        notebook,
        km=kernel,
        timeout=CELL_TIMEOUT,
        store_widget_state=False,
        # Kernels may warn about their transport, which here stays on this machine.
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        client.execute(env=environment)
    except CellExecutionError as error:
        return re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    return ""


def to_html(notebook: nbformat.NotebookNode, title: str) -> str:
    """Returns the notebook as one HTML page with its figures, and the code to draw them, inside."""
    from nbconvert import HTMLExporter
    from plotly.io import to_html as figure_to_html
    from plotly.offline import get_plotlyjs

    page = nbformat.from_dict(notebook)
    for data in figures(page):
        data["text/html"] = figure_to_html(data.pop(PLOTLY), include_plotlyjs=False, full_html=False)
    html, _ = HTMLExporter().from_notebook_node(page, {"metadata": {"name": title}})
    head, body = html.split("</head>", 1)
    # Nothing in these pages needs the scripts that nbconvert would load from elsewhere.
    head = re.sub(r"<script\b.*?</script>", lambda m: "" if "http" in m[0] else m[0], head, flags=re.DOTALL)
    return f"{head}<script>{get_plotlyjs()}</script>\n</head>{body}"


def with_images(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Adds a picture to each figure, for viewers that draw none."""
    import base64

    from plotly.io import to_image

    for data in figures(notebook):
        picture = to_image(data[PLOTLY], format="png", **IMAGE)
        data["image/png"] = base64.b64encode(picture).decode()
    return notebook


def without_traces(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Removes when and in what environment it ran, so that two runs differ only in what they show."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    return notebook


def figures(notebook: nbformat.NotebookNode) -> list[dict[str, Any]]:
    """Returns the data of each output that is a figure."""
    return [data for data in output_data(notebook) if PLOTLY in data]


def output_data(notebook: nbformat.NotebookNode) -> list[dict[str, Any]]:
    """Returns the data of all outputs, by media type."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"] for output in outputs if "data" in output]


def summarise(notebook: nbformat.NotebookNode, folder: Path, seconds: float) -> None:
    """Prints what the notebook made: its tables as they are in the Delta logs, and the time."""
    from lakekit.storage.log import open_log
    from lakekit.units import format_bytes

    cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    print(f"\nDone in {seconds:.0f} s: {cells} code cells, {len(figures(notebook))} figures.")
    for log_folder in sorted(folder.glob("**/_delta_log")):
        root = log_folder.parent
        log = open_log(str(root))
        snapshot, commits = log.snapshot(), log.commits()
        files = list(snapshot.files.values())
        rows, size = sum(f.live_records or 0 for f in files), sum(f.size for f in files)
        span = (commits[-1].timestamp - commits[0].timestamp) / 1000
        name = root.name if root.parent.suffix != ".db" else f"{root.parent.stem}.{root.name}"
        print(
            f"  table      {name}: {rows:,} rows, {len(commits)} commits in {span:.0f} s, "
            f"{len(files)} files, {format_bytes(size)}\n  stored in  {shown(root)}"
        )


def shown(path: Path) -> str:
    """Returns a path as people look for it: from the current folder if it is below."""
    full = path.resolve()
    return str(full.relative_to(Path.cwd())) if full.is_relative_to(Path.cwd()) else str(full)


if __name__ == "__main__":
    sys.exit(main())
