"""Figures inside widgets: a plotly figure that is drawn anew in place."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go


class FigureView(go.FigureWidget):  # type: ignore[misc]  # plotly has no types
    """A figure that takes the content of others."""

    _drawing = threading.RLock()  # a click may draw while the background does

    def __init__(self, *args: Any, **settings: Any) -> None:
        """Takes what a figure takes; it is as wide as its place."""
        super().__init__(*args, **settings)
        self._config = {"displaylogo": False, "displayModeBar": False}
        self._autosize: dict[str, bool] = {}
        self.observe(self._fit, "_js2py_traceDeltas")

    def draw(self, figure: go.Figure) -> None:
        """Shows another figure in its place."""
        with self._drawing, self.batch_update():
            self.data = ()
            self.add_traces(list(figure.data))
            self.update_layout(figure.layout.to_plotly_json() | self._autosize, overwrite=True)

    def _fit(self, _drawn: Any) -> None:
        """Takes the width of its place: plotly draws before it has one, and would stay as wide as it was."""
        if not self._autosize:
            self._autosize = {"autosize": True}
            self.update_layout(self._autosize)

    def when_clicked(self, handler: Callable[[int], None]) -> None:
        """Calls a handler with the number of the point that is clicked; holds for what is drawn now."""

        def clicked(_trace: Any, points: Any, _state: Any) -> None:
            if points.point_inds:
                handler(points.point_inds[0])

        traces: tuple[Any, ...] = self.data
        for trace in traces:
            trace.on_click(clicked)
