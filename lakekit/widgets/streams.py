"""The ingestion panel: steers a stream into a table, and shows how fast it is and how far behind."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ipywidgets as ipw

from lakekit import plot
from lakekit.errors import SessionError
from lakekit.ingest.history import History
from lakekit.ingest.ingestion import Status
from lakekit.units import duration, format_bytes
from lakekit.widgets import parts
from lakekit.widgets.base import LakeWidget, button, row, scrolled
from lakekit.widgets.figures import FigureView

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.ingest.ingestion import Ingestion
    from lakekit.table.table import Table

_COLOURS = {"running": "#2a9d6f", "paused": "#e08a1e", "failed": "#d1495b"}
_PATH = re.compile(r"(?:\w+:)?/\S*(/[^/\]\s]+)")
"""A path, of which the last part is enough."""
_OVER = ("stopped", "failed")
_DOES = {
    "start": ("stopped", "failed"),
    "pause": ("running",),
    "resume": ("paused",),
    "stop": ("running", "paused"),
    "flush": ("running",),
}
"""Each button, and the states in which it can be used."""


class IngestionPanel(LakeWidget):
    """What a stream into a table does; see `ingestion()`."""

    def __init__(
        self,
        table: Table,
        handle: Ingestion | None,
        begin: Callable[[], Ingestion],
        rows: DataFrame,
        period: float = 1.0,
    ) -> None:
        """Looks at the ingestion, and follows it if it runs."""
        super().__init__(table.lake, f"Ingestion into {table.name}")
        self._table = table
        self._handle = handle
        self._begin = begin
        self._rows = rows
        self._period = period
        self._history = History()
        self._follower: threading.Thread | None = None
        self._over = threading.Event()
        self._figure = FigureView(plot.ingestion(self._history))
        self._status_view, self._commits_view = ipw.HTML(), ipw.HTML()
        self.start = button("Start", "Go on where the checkpoint says", style="primary")
        self.pause = button("Pause", "Stop taking rows; the files get what the log has")
        self.resume = button("Resume", "Go on taking rows")
        self.stop = button("Stop", "End; a later start goes on from here")
        self.flush = button("Flush", "Commit to the files now what the log has")
        self._buttons = {name: getattr(self, name) for name in _DOES}
        for name, each in self._buttons.items():
            self._on(each, lambda name=name: self._steer(name))  # type: ignore[misc]
        self._look()
        self._show(
            self._status_view,
            row(*self._buttons.values()),
            self._figure,
            scrolled(self._commits_view),
        )
        self._follow()

    @property
    def handle(self) -> Ingestion | None:
        """The ingestion; None if it was not started yet."""
        return self._handle

    # Steering

    def _steer(self, name: str) -> None:
        def act() -> None:
            if self._handle is None:
                self._handle = self._begin()
            else:
                getattr(self._handle, name)()

        if self._handle is None and name != "start":
            raise SessionError("The ingestion has not been started.", "Press Start.")
        doing = {"stop": "Stopping"}.get(name, f"{name.removesuffix('e').capitalize()}ing")
        self._run(doing, act, lambda _: self._follow())

    def _set_busy(self, busy: bool) -> None:
        super()._set_busy(busy)
        self._enable(self._status().state, busy)

    def _enable(self, state: str, busy: bool) -> None:
        for name, each in self._buttons.items():
            each.disabled = busy or state not in _DOES[name]

    # Following

    def _follow(self) -> None:
        """Begins to look once a period, unless that is done already."""
        state = self._look()
        with self._lock:
            # What was shown decides: an ingestion that ends after that look is looked at once more.
            if self._follower is None and not self._closed and state not in _OVER:
                self._follower = threading.Thread(target=self._watch, name="lakekit-panel", daemon=True)
                self._follower.start()

    def _watch(self) -> None:
        """Looks until the widget is closed or the ingestion has ended."""
        while not self._over.wait(self._period):
            try:
                state = self._look()
            except Exception as error:
                self._fail(error, self._title)
                state = "failed"
            with self._lock:
                if state in _OVER:
                    self._follower = None
                    return

    def _look(self) -> str:
        """Shows what the ingestion is doing; returns its state."""
        status = self._status()
        self._history.add(status)
        self._status_view.value = self._state(status) + self._summary(status)._repr_html_()
        self._commits_view.value = _commits(status)._repr_html_()
        self._draw()
        if not self.busy:
            self._enable(status.state, False)
        if status.error is not None and self._failure is None:
            self._say(parts.Failure(status.error))
        return status.state

    def _draw(self) -> None:
        drawn = plot.ingestion(self._history)
        with self._figure.batch_update():
            pairs: Iterable[tuple[Any, Any]] = zip(self._figure.data, drawn.data, strict=True)
            for old, new in pairs:
                old.x, old.y = new.x, new.y

    def _status(self) -> Status:
        return self._handle.status if self._handle is not None else Status("stopped")

    def _state(self, status: Status) -> str:
        colour = _COLOURS.get(status.state, "#9aa0a6")
        dot = f'<span style="color:{colour}">●</span>'
        return f'<div role="status" style="line-height:1.4">{dot} {status.state}</div>'

    def _summary(self, status: Status) -> parts.Rows:
        known = {
            "source": self._source(),
            "rows in": f"{status.rows_in:,}",
            "changes to the log": f"{status.changes_out:,}",
            "rows the files do not have yet": f"{status.pending_rows:,}",
            "log latency": f"{status.log_latency_ms[-1]:.0f} ms" if status.log_latency_ms else None,
            "file lag": duration(status.file_lag_s),
        }
        return parts.facts(known)

    def _source(self) -> str:
        """Returns what the stream reads, as Spark calls it once it has read; its columns before that."""
        query = self._handle._query if self._handle is not None else None
        progress: Mapping[str, Any] | None = query.lastProgress if query is not None else None
        names = [_PATH.sub(r"…\1", source["description"]) for source in (progress or {}).get("sources", ())]
        return ", ".join(names) or f"columns {', '.join(self._rows.columns)}"

    def close(self) -> None:
        """Ends the widget; the ingestion goes on."""
        self._over.set()
        super().close()

    def _parts(self) -> Sequence[parts.Part]:
        status = self._status()
        state = parts.Note(f"state: {status.state}")
        error = [parts.Failure(status.error)] if status.error and self._failure is None else []
        return [state, self._summary(status), parts.Heading("Last commits"), _commits(status), *error]


def of_handle(handle: Ingestion) -> IngestionPanel:
    """Returns the panel of an ingestion that was started."""
    return IngestionPanel(handle.table, handle, handle.start, handle._rows)


def of_table(table: Table, rows: DataFrame, options: Mapping[str, Any]) -> IngestionPanel:
    """Returns the panel of an ingestion that its Start button starts."""
    return IngestionPanel(table, None, lambda: table.write_stream(rows, **options), rows)


def _commits(status: Status) -> parts.Rows:
    columns = ["version", "operation", "inserted", "updated", "deleted", "files", "size", "took"]
    rows = [
        [
            c.version,
            c.operation,
            c.rows_inserted,
            c.rows_updated,
            c.rows_deleted,
            c.files_added,
            format_bytes(c.bytes_added),
            duration(c.duration_ms / 1000),
        ]
        for c in reversed(status.commits)
    ]
    said = "last commits to the files, newest first" if rows else "no commit to the files yet"
    return parts.rows(columns, rows, said)
