"""The skipping explorer: what a query reads of a table, and why not the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ipywidgets as ipw

from lakekit import plot
from lakekit.errors import QueryError
from lakekit.skipping.report import SkippingReport
from lakekit.units import counted, format_bytes
from lakekit.widgets import parts
from lakekit.widgets.base import LakeWidget, button, row, scrolled
from lakekit.widgets.figures import FigureView

if TYPE_CHECKING:
    from lakekit.lake import Lake

_MAX_FILES = 200
_STATIC_FILES = 20
_ALL, _READ, _SKIPPED = "all files", "read", "skipped"

_WHY = {
    "partition": "its partition holds no wanted row",
    "bucket": "wanted keys are in other buckets",
    "file statistics": "minimum and maximum of the file exclude them",
    "row groups": "minimum and maximum of each row group exclude them",
    "page index": "minimum and maximum of each page exclude them",
}

Row = dict[str, Any]


class SkippingExplorer(LakeWidget):
    """What a query reads, and why not more; see `skipping()`. The query is only explained, never run."""

    def __init__(self, lake: Lake, sql: str | None, params: Mapping[str, object]) -> None:
        """Explains the query, if there is one."""
        super().__init__(lake, "What a query reads")
        self._params = dict(params)
        self._reports: list[SkippingReport] = []
        self.sql = ipw.Textarea(
            value=sql or "",
            placeholder="SELECT … FROM … WHERE …",
            rows=4,
            layout=ipw.Layout(width="min(900px, 98%)"),
        )
        self.sql.add_class("lakekit-sql")
        self.explain = button("Explain", "Find out what the query reads, without running it", style="primary")
        self.table = ipw.Dropdown(description="Table", layout=ipw.Layout(display="none"))
        self.which = ipw.ToggleButtons(options=[_ALL, _READ, _SKIPPED], style={"button_width": "auto"})
        self._steps_view, self._files_view = ipw.HTML(), ipw.HTML()
        self._figure = FigureView()
        self._result = ipw.VBox()
        if sql is not None:
            self._now("Explaining the query", lambda: self._explained(sql), self._take)
        self._on(self.explain, self._ask)
        self._on(self.table, self._draw, "value")
        self._on(self.which, self._list_files, "value")
        self._show(self.sql, row(self.explain, self.table), self._result, steering=[self.explain])

    def _ask(self) -> None:
        sql = self.sql.value
        if not sql.strip():
            raise QueryError("There is no query to explain.", "Write a SELECT into the box.")
        self._run("Explaining the query", lambda: self._explained(sql), self._take)

    def _explained(self, sql: str) -> list[SkippingReport]:
        named = parameters_in(sql)
        found = self._lake.explain(sql, **{name: v for name, v in self._params.items() if name in named})
        return found if isinstance(found, list) else [found]

    def _take(self, reports: list[SkippingReport]) -> None:
        self._reports = reports
        self.table.layout.display = "" if len(reports) > 1 else "none"
        self.table.options = [(f"{r.table}, version {r.version}", n) for n, r in enumerate(reports)]
        self._draw()
        self._result.children = [self._figure, self._steps_view, self.which, scrolled(self._files_view)]

    def _draw(self) -> None:
        report = self._chosen()
        if report is not None:
            self._figure.draw(plot.skipping(report))
            self._steps_view.value = parts.as_html(_why(report))
            self._list_files()

    def _chosen(self) -> SkippingReport | None:
        number = self.table.value or 0
        return self._reports[number] if number < len(self._reports) else None

    def _list_files(self) -> None:
        report = self._chosen()
        if report is not None:
            self._files_view.value = _files(report, self.which.value, _MAX_FILES)._repr_html_()

    def _parts(self) -> Sequence[parts.Part]:
        shown: list[parts.Part] = [parts.Code(self.sql.value)] if self.sql.value else []
        for report in self._reports:
            shown += [parts.Heading(f"{report.table}, version {report.version}"), *_why(report)]
            shown.append(_files(report, _ALL, _STATIC_FILES))
        return shown


def parameters_in(sql: str) -> set[str]:
    """Returns the names of the parameters that stand in a query."""
    from lakekit.sql import parameters

    return set(parameters.names(sql))


def _why(report: SkippingReport) -> list[parts.Part]:
    """Returns the steps with what each spared, and the conditions that were of use or not."""
    total = max(report.total.bytes_left, 1)
    rows = []
    for step in report.steps:
        ends = step.step in ("total", "read")
        files, size = (step.files_left, step.bytes_left) if ends else (step.files_skipped, step.bytes_skipped)
        inside = [(step.row_groups_skipped, "row group"), (step.pages_skipped, "page")]
        name = {"total": "all files", "read": "read"}.get(step.step, f"skipped by {step.step}")
        name += "".join(f" ({counted(n, what)})" for n, what in inside if n)
        rows.append([name, files, format_bytes(size), parts.bar(size / total)])
    steps = parts.rows(["step", "files", "size", ""], rows)
    used = f"Skips by: {', '.join(report.conditions)}" if report.conditions else "No condition skips anything"
    unused = [parts.Note(f"Not of use: {text} ({reason})") for text, reason in report.not_usable]
    buckets = [] if report.buckets is None else [parts.Note(_buckets(report.buckets))]
    return [steps, parts.Note(used), *unused, *buckets]


def _buckets(numbers: Sequence[int]) -> str:
    listed = ", ".join(str(n) for n in numbers[:20])
    return f"Buckets with wanted keys: {listed}{', …' if len(numbers) > 20 else ''}"


def _files(report: SkippingReport, which: str, limit: int) -> parts.Rows:
    files = report.files.to_pylist()
    wanted = [f for f in files if which == _ALL or (f["skipped_by"] is None) == (which == _READ)]
    # What is read comes first, and most of it first.
    wanted.sort(
        key=lambda f: (f["skipped_by"] is not None, -f["bytes_read"], f["partition"], f["bucket"] or 0)
    )
    columns = ["partition", "bucket", "level", "outcome", "size", "size read", "rows read", "row groups read"]
    columns += ["pages read", "file"]
    rows = [
        [
            f["partition"] or "all rows",
            f["bucket"],
            f["level"],
            _outcome(f),
            format_bytes(f["bytes"]),
            format_bytes(f["bytes_read"]),
            f["rows_read"],
            _read_of(f["row_groups"], f["row_groups_skipped"]),
            _read_of(f["pages"], f["pages_skipped"]),
            f["path"].rpartition("/")[2],
        ]
        for f in wanted[:limit]
    ]
    return parts.rows(columns, rows, parts.shown_of(len(rows), len(wanted), "file"))


def _outcome(file: Row) -> str:
    step = file["skipped_by"]
    return "read" if step is None else f"skipped by {step}: {_WHY[step]}"


def _read_of(total: int | None, skipped: int | None) -> str:
    return "" if total is None else f"{total - (skipped or 0):,} of {total:,}"
