"""One look for all figures: readable on a white page and in a dark theme alike."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

TEXT = "#7f7f7f"
"""The grey that has nearly the same contrast on white and on a dark page."""

GRID = "rgba(128,128,128,0.22)"
CLEAR = "rgba(0,0,0,0)"

BLUE = "#3b82c4"
GREEN = "#2a9d6f"
ORANGE = "#e08a1e"
RED = "#d1495b"
PURPLE = "#8e6bbf"
GREY = "#9aa0a6"

LEVELS = {0: ORANGE, 1: BLUE}
"""Colours of the levels of sorted runs; files of other writers have none."""

DELETED_SHARE = [[0.0, "#1f8a5f"], [0.15, "#c9a227"], [0.5, "#e0731e"], [1.0, "#c2303f"]]
"""From no deleted rows to nothing but deleted rows; differences among small shares matter most."""


def figure(title: str, traces: Any = (), **layout: Any) -> go.Figure:
    """Returns a figure in the look of lakekit; `layout` overrides single settings."""
    return style(go.Figure(traces), title, **layout)


def style(target: go.Figure, title: str, **layout: Any) -> go.Figure:
    """Gives a figure the look of lakekit."""
    target.update_layout(
        template="none",
        title={"text": title, "x": 0, "xanchor": "left", "font": {"size": 16}, "xref": "paper"},
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        font={"color": TEXT, "size": 12, "family": "system-ui, sans-serif"},
        margin={"l": 70, "r": 20, "t": 70, "b": 50},
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "bgcolor": CLEAR},
        height=420,
        bargap=0.25,
    )
    axis = {"gridcolor": GRID, "linecolor": GRID, "zeroline": False, "automargin": True}
    target.update_xaxes(**axis)
    target.update_yaxes(**axis)
    target.update_layout(**layout)
    return target


def label(text: str) -> str:
    """Returns text that plotly shows as it is, although it reads a few HTML tags and entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
