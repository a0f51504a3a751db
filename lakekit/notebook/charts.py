"""Figures of the rows of a query: what ``%%lakesql --chart`` draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import plotly.graph_objects as go

from lakekit.errors import InvalidOptionError
from lakekit.notebook.display import is_numeric
from lakekit.plot.theme import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, figure, label

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Literal["bar", "line", "area", "scatter"]

_COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, GREY)
_TRACES: dict[str, Callable[..., Any]] = {
    "bar": lambda **line: go.Bar(marker_color=line.pop("colour"), **line),
    "line": lambda **line: go.Scatter(mode="lines+markers", line_color=line.pop("colour"), **line),
    "area": lambda **line: go.Scatter(mode="lines", stackgroup="all", line_color=line.pop("colour"), **line),
    "scatter": lambda **line: go.Scatter(mode="markers", marker_color=line.pop("colour"), **line),
}
MAX_SERIES = 20
"""Series that are drawn; of more texts in the second column, the rest is left out and said so."""


def chart(columns: Sequence[str], rows: Sequence[Sequence[Any]], kind: Kind = "bar") -> go.Figure:
    """Draws the numbers of a result over its first column.

    Each column of numbers is a series. If the second column holds texts, each of them is a series instead.

    Args:
        columns: the names.
        rows: the values.
        kind: "bar", "line", "area" or "scatter".

    Raises:
        InvalidOptionError: for another kind, or if no column but the first holds numbers.
    """
    if kind not in _TRACES:
        raise InvalidOptionError.bad_value("chart", kind, ", ".join(_TRACES))
    numbers = [i for i in range(1, len(columns)) if is_numeric([row[i] for row in rows])]
    if not numbers:
        raise InvalidOptionError(
            f"A chart needs numbers behind the first column, and the columns are: {', '.join(columns)}.",
            "Select what belongs on the x axis first, then numbers.",
        )
    series = _by_text(rows, numbers[0]) if numbers[0] > 1 else {}
    if not series:
        series = {columns[i]: ([row[0] for row in rows], [row[i] for row in rows]) for i in numbers}
    shown = list(series.items())[:MAX_SERIES]
    left_out = f" ({len(series) - MAX_SERIES} more series are not drawn)" if len(series) > MAX_SERIES else ""
    title = f"{', '.join(columns[i] for i in numbers)} by {columns[0]}{left_out}"
    traces = [
        _TRACES[kind](x=x, y=y, name=label(name), colour=_COLOURS[i % len(_COLOURS)])
        for i, (name, (x, y)) in enumerate(shown)
    ]
    return figure(label(title), traces, showlegend=len(shown) > 1, barmode="group")


def _by_text(rows: Sequence[Sequence[Any]], number: int) -> dict[str, tuple[list[Any], list[Any]]]:
    """Returns x and y of each text in the second column."""
    series: dict[str, tuple[list[Any], list[Any]]] = {}
    for row in rows:
        x, y = series.setdefault(str(row[1]), ([], []))
        x.append(row[0])
        y.append(row[number])
    return series
