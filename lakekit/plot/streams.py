"""The figure of an ingestion: how fast it is, and how far behind."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from plotly.subplots import make_subplots

from lakekit.plot.theme import BLUE, GREEN, ORANGE, PURPLE, style

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lakekit.ingest.history import History


def ingestion(history: History) -> go.Figure:
    """Draws rows in and changes out each second, the latency of the log, and how far the files are behind.

    Args:
        history: samples of an ingestion's status.
    """
    samples = list(history)
    x = [dt.datetime.fromtimestamp(s.at, dt.timezone.utc) for s in samples]
    series = (
        ("rows in, per s", GREEN, 1, [s.rows_in_per_s for s in samples]),
        ("changes to the log, per s", BLUE, 1, [s.changes_out_per_s for s in samples]),
        ("log latency, ms", PURPLE, 2, [s.log_latency_ms for s in samples]),
        ("file lag, s", ORANGE, 3, [s.file_lag_s for s in samples]),
    )
    target = make_subplots(rows=1, cols=3, horizontal_spacing=0.07)
    for name, colour, column, y in series:
        target.add_scatter(
            x=x, y=y, name=name, mode="lines", line={"color": colour, "width": 2}, row=1, col=column
        )
    style(target, "", height=240, margin={"l": 50, "r": 10, "t": 40, "b": 30})
    target.update_yaxes(rangemode="tozero", nticks=5)
    target.update_xaxes(nticks=4, tickangle=0, tickformat="%H:%M:%S")
    return target
