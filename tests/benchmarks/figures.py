"""Draws the raw figures with plotly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from .report import Row, by_size, figure, rows, steps
from .systems import NAMES, REFERENCE
from .workload import short

# The palette of Okabe and Ito, which colour-blind people can tell apart, and grey.
_PALETTE = (
    "#0072b2",
    "#e69f00",
    "#d55e00",
    "#009e73",
    "#56b4e9",
    "#004d80",
    "#cc79a7",
    "#7a3b69",
    "#8c959f",
    "#444444",
)
COLOURS = dict(zip(NAMES, _PALETTE, strict=True))


def draw(results: Mapping[str, Any], folder: Path) -> list[Path]:
    """Writes the figures into `folder` as SVG and returns their paths."""
    races = [entry for entry in results["cases"] if entry["kind"] == "race"]
    growing = [entry for entry in results["cases"] if entry["kind"] == "memory"]
    made = {}
    if races:
        made["times"] = _times(races)
        made["upserts"] = _upserts(races)
    if growing:
        made["memory"] = _memory(max(growing, key=lambda entry: entry["dataset"]["keys"]))
    if len(growth := by_size(races)) > 1:
        made["growth"] = _growth(growth)
    paths = []
    for name, drawing in made.items():
        path = folder / f"{name}.svg"
        height = drawing.layout.height
        legend = {"orientation": "h", "yref": "container", "yanchor": "top", "y": 1 - 35 / height}
        title = {"yref": "container", "yanchor": "top", "y": 1 - 10 / height}
        drawing.update_layout(template="plotly_white", font={"size": 12}, legend=legend, title=title)
        drawing.update_layout(margin={"t": 90})
        drawing.write_image(path)
        paths.append(path)
    return paths


def _times(entries: list[Mapping[str, Any]]) -> go.Figure:
    """Bars of the main measures on a logarithmic axis, one row of bars for each case."""
    titles = [entry["title"] for entry in entries]
    drawing = make_subplots(
        rows=len(entries),
        cols=1,
        subplot_titles=titles,
        shared_xaxes=True,
        vertical_spacing=0.25 / (len(entries) + 3),
    )
    for number, entry in enumerate(entries, start=1):
        shown = [row for row in rows(entry) if row.unit == "s" and _is_main(row)]
        for name in (name for name in NAMES if name in entry["systems"]):
            bar = go.Bar(
                name=entry["systems"][name]["title"],
                x=[row.label.replace("`", "") for row in shown],
                y=[figure(row, name, entry) for row in shown],
                marker_color=COLOURS[name],
                showlegend=number == 1,
            )
            drawing.add_trace(bar, row=number, col=1)
    drawing.update_yaxes(type="log", title="seconds", dtick=1)
    drawing.update_layout(title="Medians; shorter is better", width=1200, height=300 + 260 * len(entries))
    return drawing


def _is_main(row: Row) -> bool:
    return not row.label.endswith((", first", ", last", "by key")) and "filter" not in row.label


def _upserts(entries: list[Mapping[str, Any]]) -> go.Figure:
    """Seconds of each batch, in order."""
    titles = [entry["title"] for entry in entries]
    drawing = make_subplots(rows=1, cols=len(entries), subplot_titles=titles, shared_yaxes=True)
    for number, entry in enumerate(entries, start=1):
        for name in (name for name in NAMES if name in entry["systems"]):
            batches = steps(entry["systems"][name], "upsert")
            line = go.Scatter(
                name=entry["systems"][name]["title"],
                x=[f"{i}: {short(e['rows'])}" for i, e in enumerate(batches, start=1)],
                y=[e["seconds"] for e in batches],
                mode="lines+markers",
                line={"color": COLOURS[name]},
                showlegend=number == 1 and bool(batches),
            )
            drawing.add_trace(line, row=1, col=number)
    drawing.update_yaxes(type="log", title="seconds", dtick=1)
    drawing.update_layout(title="Upsert of each batch", width=max(420 * len(entries), 700), height=450)
    return drawing


def _growth(lines: Mapping[int, Mapping[int, float]]) -> go.Figure:
    """Seconds of a batch against the size of the table."""
    drawing = go.Figure()
    for colour, (batch, points) in zip(_PALETTE, sorted(lines.items()), strict=False):
        x, y = zip(*sorted(points.items()), strict=True)
        name = f"batch of {short(batch)} rows"
        drawing.add_scatter(name=name, x=x, y=y, mode="lines+markers", line={"color": colour})
    drawing.update_xaxes(type="log", title="keys in the table")
    drawing.update_yaxes(type="log", title="seconds, median")
    drawing.update_layout(title="Upserts of lakekit as the table grows", width=800, height=450)
    return drawing


def _memory(entry: Mapping[str, Any]) -> go.Figure:
    """Peak memory against the size of the batch."""
    drawing = go.Figure()
    for name in (name for name in NAMES if name in entry["systems"]):
        batches = [e for e in steps(entry["systems"][name], "upsert") if e["memory"]]
        parts = (("jvm", "JVM", "solid"), ("workers", "Python workers", "dash"))
        for part, label, dash in parts if name == REFERENCE else parts[:1]:
            line = go.Scatter(
                name=f"{entry['systems'][name]['title']}: {label}",
                x=[e["rows"] for e in batches],
                y=[e["memory"][part] / 1e6 for e in batches],
                mode="lines+markers",
                line={"color": COLOURS[name], "dash": dash},
            )
            drawing.add_trace(line)
    drawing.update_xaxes(type="log", title="rows in the batch")
    drawing.update_yaxes(title="MB", rangemode="tozero")
    drawing.update_layout(title="Peak resident memory of an upsert", width=800, height=450)
    return drawing
