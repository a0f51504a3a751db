"""Figures of a table's history: its commits, and the files of the log that make up a version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plotly.subplots import make_subplots

from lakekit.plot.theme import BLUE, GREEN, ORANGE, RED, label, style
from lakekit.units import counted, format_bytes

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lakekit.table.table import Table

MAX_BARS = 800
"""Commits that get a bar of their own; of more, neighbours share one."""

_NAMED_TICKS = 24

Row = dict[str, Any]


def snapshots(table: Table, version: int | None = None) -> go.Figure:
    """Draws what each commit did: rows inserted, updated and deleted, files added and removed.

    Rows are on a logarithmic axis, so that a load of millions and an update of ten are both seen.

    Args:
        table: the table.
        version: the last version to show; the newest by default.
    """
    rows = _grouped(table.inspect.snapshots(version=version).to_pylist())
    x = list(range(len(rows)))
    notes = [_commit_note(row) for row in rows]
    target = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.1, row_heights=[0.62, 0.38])
    for kind, colour in (("inserted", GREEN), ("updated", BLUE), ("deleted", RED)):
        # A bar of nothing has no place on a logarithmic axis.
        counts = [row[f"rows_{kind}"] or None for row in rows]
        target.add_bar(
            x=x,
            y=counts,
            name=f"rows {kind}",
            marker_color=colour,
            hovertext=notes,
            offsetgroup=kind,
            row=1,
            col=1,
        )
    added = [row["files_added"] for row in rows]
    removed = [-row["files_removed"] for row in rows]
    # In the middle of a commit's place, which the figures share.
    for name, counts, colour in (("files added", added, ORANGE), ("files removed", removed, "#7a5c99")):
        target.add_bar(
            x=x,
            y=counts,
            name=name,
            marker_color=colour,
            hovertext=notes,
            offsetgroup="updated",
            row=2,
            col=1,
        )
    target.update_traces(hoverinfo="text")
    style(target, f"{table.name}: commits", height=480, barmode="group")
    target.update_yaxes(type="log", title_text="rows", dtick=1, row=1, col=1)
    target.update_yaxes(
        title_text="files", zeroline=True, zerolinecolor="rgba(128,128,128,0.5)", row=2, col=1
    )
    target.update_xaxes(**_version_ticks(rows))
    target.update_xaxes(title_text="version", row=2, col=1)
    return target


def manifests(table: Table, version: int | None = None) -> go.Figure:
    """Draws the files of the Delta log that make up a version: the last checkpoint and the commits after it.

    Args:
        table: the table.
        version: the version; the newest by default.
    """
    rows = table.inspect.manifests(version=version).to_pylist()[-MAX_BARS:]
    names = [f"{row['kind']} {row['version']}" for row in rows]
    notes = [_manifest_note(row) for row in rows]
    target = make_subplots(
        rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.06, subplot_titles=("data files", "rows")
    )
    files = (("files_added", "added", GREEN), ("vectors_changed", "new deletion vector", ORANGE))
    for column, name, colour in files:
        counts = [row[column] for row in rows]
        target.add_bar(y=names, x=counts, name=name, marker_color=colour, orientation="h", row=1, col=1)
    gone = [-row["files_removed"] for row in rows]
    target.add_bar(y=names, x=gone, name="removed", marker_color=RED, orientation="h", row=1, col=1)
    for column, colour, symbol in (("rows_added", GREEN, "circle-open"), ("rows_removed", RED, "x-thin")):
        # Rows differ by orders of magnitude: points on a logarithmic axis, where nothing has no place.
        counts = [row[column] or None for row in rows]
        marker = {"color": colour, "size": 11, "symbol": symbol, "line": {"width": 2.5, "color": colour}}
        target.add_scatter(y=names, x=counts, mode="markers", marker=marker, showlegend=False, row=1, col=2)
    target.update_traces(hovertext=notes, hoverinfo="text")
    shown = "" if version is None else f", version {version}"
    height = min(max(320, 24 * len(rows) + 150), 1600)
    style(
        target, f"{table.name}: files of the log{shown}", height=height, barmode="relative", margin={"t": 90}
    )
    target.update_layout(legend={"y": 1.06 if height > 500 else 1.1})
    target.update_yaxes(type="category", autorange="reversed")
    target.update_xaxes(type="log", dtick=1, row=1, col=2)
    return target


def commits_in_a_bar(commits: int) -> int:
    """Returns how many neighbours share a bar of `snapshots`."""
    return max(1, -(-commits // MAX_BARS))


def _grouped(rows: Sequence[Row]) -> list[Row]:
    """Sums up neighbours where there are too many commits for a bar each."""
    step = commits_in_a_bar(len(rows))
    if step == 1:
        return list(rows)
    groups = (rows[start : start + step] for start in range(0, len(rows), step))
    return [_sum(group) for group in groups]


def _sum(group: Sequence[Row]) -> Row:
    last = group[-1]
    total = {
        name: sum(row[name] or 0 for row in group)
        for name in last
        if name in ("duration_ms", "bytes_added") or name.startswith(("rows_", "files_"))
    }
    operations = sorted({row["operation"] or "?" for row in group})
    return {**last, **total, "first_version": group[0]["version"], "operation": ", ".join(operations)}


def _version_ticks(rows: Sequence[Row]) -> Row:
    """Returns the axis of versions; few commits are named by what they did."""
    step = max(1, -(-len(rows) // _NAMED_TICKS))
    places = list(range(0, len(rows), step))
    texts = [str(rows[i]["version"]) for i in places]
    if step == 1:
        texts = [
            f"{t}<br>{label((rows[i]['operation'] or '').lower())}"
            for t, i in zip(texts, places, strict=True)
        ]
    return {"tickmode": "array", "tickvals": places, "ticktext": texts}


def _commit_note(row: Row) -> str:
    first = row.get("first_version", row["version"])
    versions = (
        f"version {row['version']}" if first == row["version"] else f"versions {first} to {row['version']}"
    )
    lines = [
        f"<b>{versions}: {label(row['operation'] or 'unknown operation')}</b>",
        f"{row['committed_at']:%Y-%m-%d %H:%M:%S} UTC",
        f"rows inserted {_count(row['rows_inserted'])}",
        f"rows updated {_count(row['rows_updated'])}, deleted {_count(row['rows_deleted'])}",
        f"files: {row['files_added']:,} added ({format_bytes(row['bytes_added'])}), {row['files_removed']:,} removed",
        f"then: {_count(row['rows'])} rows in {counted(row['files'], 'file')}, {format_bytes(row['bytes'])}",
    ]
    if row["duration_ms"] is not None:
        lines.append(f"took {row['duration_ms'] / 1000:.1f} s")
    return "<br>".join(lines)


def _manifest_note(row: Row) -> str:
    lines = [
        f"<b>{label(row['path'])}</b>",
        f"{format_bytes(row['bytes'])}, written {row['written_at']:%Y-%m-%d %H:%M:%S} UTC",
        f"files: {row['files_added']:,} added, {row['files_removed']:,} removed",
        f"deletion vectors: {row['vectors_changed']:,} new",
        f"rows: {_count(row['rows_added'])} added, {_count(row['rows_removed'])} removed",
    ]
    if row["key_min"]:
        lines += [f"keys from {label(row['key_min'])}", f"to {label(row['key_max'])}"]
    return "<br>".join(lines)


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"
