"""The notebook measured: ``python -m tests.benchmarks.notebook``.

How long a new kernel takes to its first result, how much memory it has then, and how long figures and widgets take for
a table of 10,000 files in 1,000 commits. A figure's time is until its JSON is made, which is what the browser gets.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import psutil
from IPython.testing.globalipapp import start_ipython
from IPython.utils.capture import capture_output

from tests import many_files

from .report import publish
from .run import HERE, Settings, machine

if TYPE_CHECKING:
    from lakekit.lake import Lake
    from lakekit.table.table import Table

BEGIN, END = "<!-- notebook: written by python -m tests.benchmarks.notebook -->", "<!-- end of notebook -->"
TURNS = 5


def main(arguments: list[str] | None = None) -> int:
    """Measures, prints tables and writes them into README.md."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.notebook", description=__doc__)
    parser.add_argument("--work", type=Path, default=HERE / "work")
    parser.add_argument("--out", type=Path, help="raw figures as JSON; README.md is written only without it")
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        results: dict[str, Any] = {"kernel": first_results(folder)}
        lake = _lake()
        table = many_files.make(lake, "large")
        results |= {"figures": figures(lake, table), "widgets": looks(lake, table)}
        lake.stop()
    results["machine"] = machine(Settings(2, "default", options.work, keep=False))
    publish(results, report(results), "notebook.json", (BEGIN, END), options.out)
    return 0


def first_results(folder: str) -> dict[str, float]:
    """Measures the first cells of a kernel, in seconds, and its memory after them, in bytes."""
    shell = start_ipython()
    shell.run_cell("import lakekit").raise_error()
    found: dict[str, float] = {}
    cells = {
        "`lakekit.connect()`": f"lake = lakekit.connect({str(Path(folder) / 'warehouse')!r})",
        "`%load_ext lakekit`": "%load_ext lakekit",
        "first `SELECT 1` in a `%%lakesql` cell": "%%lakesql\nSELECT 1",
        "the next one": "%%lakesql\nSELECT 2",
    }
    for name, cell in cells.items():
        started = time.monotonic()
        with capture_output():
            shell.run_cell(cell).raise_error()
        found[name] = time.monotonic() - started
    kernel = psutil.Process()
    found["memory of Python"] = kernel.memory_info().rss
    found["memory of the JVM"] = sum(
        child.memory_info().rss for child in kernel.children(recursive=True) if child.name() == "java"
    )
    return found


def _lake() -> Lake:
    from lakekit.session.connect import open_lake

    return open_lake()


def figures(lake: Lake, table: Table) -> dict[str, float]:
    """Measures each figure, in seconds."""
    from lakekit import plot

    report = lake.explain("SELECT * FROM large WHERE day = 'd7'")
    drawn: dict[str, Callable[[], Any]] = {
        "plot.snapshots": lambda: plot.snapshots(table),
        "plot.manifests": lambda: plot.manifests(table),
        "plot.buckets": lambda: plot.buckets(table),
        "plot.sorted_runs": lambda: plot.sorted_runs(table),
        "plot.skipping": lambda: plot.skipping(report),
    }
    return {name: _median(lambda draw=draw: draw().to_json()) for name, draw in drawn.items()}  # type: ignore[misc]


def looks(lake: Lake, table: Table) -> dict[str, float]:
    """Measures how long each explorer takes to be there, in seconds."""
    from lakekit import widgets

    made: dict[str, Callable[[], Any]] = {
        "widgets.snapshots": lambda: widgets.snapshots(table),
        "widgets.manifests": lambda: widgets.manifests(table),
        "widgets.skipping": lambda: widgets.skipping(lake, "SELECT * FROM large WHERE day = 'd7'"),
    }
    return {name: _median(lambda make=make: make().close()) for name, make in made.items()}  # type: ignore[misc]


def _median(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(TURNS):
        started = time.monotonic()
        work()
        seconds.append(time.monotonic() - started)
    return median(seconds)


def report(results: dict[str, Any]) -> str:
    """The figures as Markdown."""
    place, kernel = results["machine"], results["kernel"]
    lines = [
        f"{place['processor']}, {place['cores']} cores, {place['memory_bytes'] / 2**30:.0f} GiB, {place['system']}.",
        "",
        "| in a new kernel | |",
        "| --- | --: |",
        *_rows(kernel),
        "",
        f"| {many_files.COMMITS * many_files.FILES_EACH:,} files, {many_files.COMMITS:,} commits | median of {TURNS} |",
        "| --- | --: |",
        *_rows({f"`{name}`": value for name, value in {**results["figures"], **results["widgets"]}.items()}),
    ]
    return "\n".join(lines)


def _rows(values: dict[str, float]) -> Sequence[str]:
    return [
        f"| {name} | {f'{value / 2**20:,.0f} MiB' if 'memory' in name else f'{value:.2f} s'} |"
        for name, value in values.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
