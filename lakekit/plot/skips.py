"""The figure of a skipping report: which files a query reads, and what spares it the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plotly.subplots import make_subplots

from lakekit.plot.theme import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, label, style
from lakekit.skipping.report import STEPS, SkippingReport
from lakekit.units import counted, format_bytes

if TYPE_CHECKING:
    import plotly.graph_objects as go

_COLOURS = dict(zip((*STEPS, "read"), ("#5c6670", BLUE, PURPLE, ORANGE, RED, GREEN), strict=True))
_NAMES = {step: f"skipped by {step}" for step in STEPS} | {"read": "read"}
_MAX_ROWS = 400

Row = dict[str, Any]


def skipping(report: SkippingReport) -> go.Figure:
    """Draws what a query reads: left, what each step leaves; right, the buckets of each partition.

    A bucket has the colour of the last step that one of its files came to.

    Args:
        report: what `Lake.explain()` returned.
    """
    target = make_subplots(
        rows=1,
        cols=2,
        column_widths=[0.42, 0.58],
        horizontal_spacing=0.06,
        subplot_titles=("bytes left after each step", "partitions and buckets"),
    )
    _steps(target, report)
    rows = _map(target, report)
    condition = " and ".join(report.conditions) or "no condition"
    read, total = report.read, report.total
    title = (
        f"{report.table}: {read.files_left:,} of {counted(total.files_left, 'file')},"
        f" {format_bytes(read.bytes_left)} of {format_bytes(total.bytes_left)} read<br>"
        f"<span style='font-size:12px'>{label(condition[:160])}</span>"
    )
    height = min(max(360, 16 * rows + 170), 900)
    style(target, title, height=height, margin={"t": 110, "b": 80}, showlegend=True)
    target.update_layout(legend={"y": -0.12, "yanchor": "top"})
    return target


def _steps(target: go.Figure, report: SkippingReport) -> None:
    steps = [step for step in report.steps if step.step != "read"]
    names = ["all files" if step.step == "total" else f"after {step.step}" for step in steps]
    texts = [f"{counted(step.files_left, 'file')}, {format_bytes(step.bytes_left)}" for step in steps]
    target.add_bar(
        y=names,
        x=[step.bytes_left for step in steps],
        text=texts,
        textposition="auto",
        orientation="h",
        marker_color=[
            GREY,
            *[_COLOURS["read"] if i == len(steps) - 1 else GREY for i in range(1, len(steps))],
        ],
        hovertext=[_step_note(step) for step in steps],
        hoverinfo="text",
        showlegend=False,
        row=1,
        col=1,
    )
    target.update_yaxes(autorange="reversed", row=1, col=1)
    target.update_xaxes(tickformat="~s", ticksuffix="B", row=1, col=1)


def _step_note(step: Any) -> str:
    lines = [f"{counted(step.files_left, 'file')}, {format_bytes(step.bytes_left)} left"]
    if step.files_skipped or step.bytes_skipped:
        lines.append(
            f"{counted(step.files_skipped, 'file')}, {format_bytes(step.bytes_skipped)} skipped by {step.step}"
        )
    if step.row_groups_skipped:
        lines.append(f"{counted(step.row_groups_skipped, 'row group')} skipped")
    if step.pages_skipped:
        lines.append(f"{counted(step.pages_skipped, 'page')} skipped")
    return "<br>".join(lines)


def _map(target: go.Figure, report: SkippingReport) -> int:
    """Adds a cell for each bucket of each partition; returns how many rows of cells there are."""
    files = report.files.to_pylist()
    partitions = sorted({row["partition"] for row in files}, key=natural)[:_MAX_ROWS]
    buckets = sorted({row["bucket"] for row in files}, key=lambda b: -1 if b is None else b)
    cells: dict[tuple[str, int | None], list[Row]] = {}
    for row in files:
        cells.setdefault((row["partition"], row["bucket"]), []).append(row)
    order = [*STEPS, "read"]
    values, notes = [], []
    for partition in partitions:
        members = [cells.get((partition, bucket), []) for bucket in buckets]
        values.append([_furthest(rows, order) for rows in members])
        notes.append([_cell_note(partition, b, rows) for b, rows in zip(buckets, members, strict=True)])
    colours = [_COLOURS[step] for step in order]
    edges = [(i / len(order), (i + 1) / len(order)) for i in range(len(order))]
    target.add_heatmap(
        z=values,
        x=["all" if bucket is None else str(bucket) for bucket in buckets],
        y=[label(partition) or "all rows" for partition in partitions],
        hovertext=notes,
        hoverinfo="text",
        zmin=-0.5,
        zmax=len(order) - 0.5,
        colorscale=[[edge, colour] for pair, colour in zip(edges, colours, strict=True) for edge in pair],
        showscale=False,
        xgap=2,
        ygap=2 if len(partitions) <= 60 else 0,
        row=1,
        col=2,
    )
    present = {value for row in values for value in row if value is not None}
    for index, step in enumerate(order):
        if index in present:
            # A heatmap has no legend of its own.
            marker = {"color": _COLOURS[step], "symbol": "square", "size": 11}
            target.add_scatter(
                x=[None], y=[None], mode="markers", marker=marker, name=_NAMES[step], row=1, col=2
            )
    target.update_xaxes(type="category", title_text="bucket", showgrid=False, row=1, col=2)
    # Long names of partitions would lie over the bars on the left.
    target.update_yaxes(type="category", autorange="reversed", showgrid=False, side="right", row=1, col=2)
    return len(partitions)


def _furthest(rows: Sequence[Row], order: Sequence[str]) -> int | None:
    return max((order.index(row["skipped_by"] or "read") for row in rows), default=None)


def _cell_note(partition: str, bucket: int | None, rows: Sequence[Row]) -> str:
    place = " / ".join(t for t in (label(partition), "" if bucket is None else f"bucket {bucket}") if t)
    lines = [f"<b>{place or 'all rows'}</b>"]
    for step in (*STEPS, "read"):
        members = [row for row in rows if (row["skipped_by"] or "read") == step]
        if members:
            size = format_bytes(sum(row["bytes"] for row in members))
            lines.append(f"{counted(len(members), 'file')} ({size}) {_NAMES[step]}")
    lines.append(f"{format_bytes(sum(row['bytes_read'] for row in rows))} read")
    return "<br>".join(lines)


def natural(text: str) -> list[Any]:
    """Returns what sorts ``month=2`` before ``month=10``."""
    return [
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", text) if part
    ]
