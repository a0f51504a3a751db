"""The live view: the newest changes of the log beside the rows of the table, read from the files or from both."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import ipywidgets as ipw

from lakekit.names import quote
from lakekit.units import counted
from lakekit.widgets import parts
from lakekit.widgets.base import LakeWidget, button, row, scrolled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.logstore.tail import LogRow, Tail
    from lakekit.table.table import Table

_STATIC_ROWS = 20
_DRAW_S = 0.4
_LOOK_S = 1.0
_FRESH_S = 3.0
_LEGEND = "+I inserted, -U and +U old and new row, -D deleted"
_TAKEN_BACK = "taken back"


class LiveView(LakeWidget):
    """The log of a table as it comes, beside its rows; see `live()`."""

    def __init__(self, table: Table, rows: int = 50, tail: Mapping[str, Any] | None = None) -> None:
        """Reads the rows; the log is read from `start()` on."""
        super().__init__(table.lake, f"Log and files of {table.name}")
        self._table = table
        self._limit = rows
        self._tail_options = dict(tail or {})
        self._changes: deque[LogRow] = deque(maxlen=rows)
        self._counts: dict[str, int] = {}
        self._columns = list(table.schema.names)
        self._positions: dict[int, int] | None = None
        self._seen: tuple[Any, ...] = ()
        self._read_at = 0.0
        self._rows = parts.rows([], [])
        self._follower: threading.Thread | None = None
        self._pausing = threading.Event()
        self._build()
        self._now("Reading rows", self._read, self._take)
        self._draw_log()

    def _build(self) -> None:
        self.start_button = button("Start", "Follow the log", style="primary")
        self.pause_button = button("Pause", "Stop following; start goes on from there")
        self.pause_button.disabled = True
        self.mode = ipw.ToggleButtons(
            options=[("file", "file"), ("log", "log")],
            tooltips=["The newest version of the files", "The files, with the log's newer changes over them"],
            style={"button_width": "auto"},
            layout=ipw.Layout(width="max-content"),
        )
        self.key_fields = {
            name: ipw.Text(
                description=name, continuous_update=False, placeholder="any", layout=ipw.Layout(width="220px")
            )
            for name in self._table.primary_key
        }
        self.find = button("Find", "The rows of this key")
        self._log_view, self._rows_view = ipw.HTML(), ipw.HTML()
        self._on(self.start_button, self.start)
        self._on(self.pause_button, self.pause)
        self._on(self.mode, self._reread, "value")
        self._on(self.find, self._reread)
        for each in self.key_fields.values():
            self._on(each, self._reread, "value")
        half = ipw.Layout(flex="1 1 380px", min_width="0", overflow="hidden")
        log = ipw.VBox(
            [_heading("Log"), row(self.start_button, self.pause_button), scrolled(self._log_view, "420px")],
            layout=half,
        )
        search = row(*self.key_fields.values(), self.find) if self.key_fields else ipw.HBox()
        where = row(ipw.Label("Read from:"), self.mode)
        files = ipw.VBox(
            [_heading("Rows"), where, search, scrolled(self._rows_view, "420px")],
            layout=half,
        )
        self._show(ipw.HBox([log, files], layout=ipw.Layout(flex_flow="row wrap")))

    # The log

    @property
    def following(self) -> bool:
        """Whether the log is being followed."""
        return self._follower is not None

    def start(self) -> None:
        """Follows the log: from where the table's options say, or from where `pause()` left off."""
        with self._lock:
            if self._follower is None and not self._closed:
                self._pausing.clear()
                self._follower = threading.Thread(target=self._follow, name="lakekit-live", daemon=True)
                self.start_button.disabled, self.pause_button.disabled = True, False
                self._say(None)
                self._follower.start()

    def pause(self) -> None:
        """Stops following."""
        self._pausing.set()

    def _follow(self) -> None:
        # A loop of its own: that of the notebook stands still while a cell runs.
        try:
            asyncio.run(self._tail())
        except Exception as error:
            self._fail(error, "Reading the log")
        with self._lock:
            self._follower = None
            self.start_button.disabled, self.pause_button.disabled = False, True
        self._draw_log()

    async def _tail(self) -> None:
        options = self._tail_options
        if self._positions is not None:
            kept = {k: v for k, v in options.items() if k not in ("startup", "timestamp", "offsets")}
            options = {**kept, "startup": "specific-offsets", "offsets": self._positions}
        tail = self._table.tail(**options)
        async with tail:
            self._positions = tail.positions
            self._draw_log()
            await self._pump(tail)

    async def _pump(self, tail: Tail) -> None:
        """Takes changes until it is to pause; shows them now and then, and looks for new versions."""
        coming = asyncio.ensure_future(anext(tail))
        drawn = looked = 0.0
        fresh = False
        try:
            while not self._pausing.is_set():
                await asyncio.wait({coming}, timeout=_DRAW_S / 2)
                if coming.done():
                    self._count(coming.result())
                    fresh = True
                    coming = asyncio.ensure_future(anext(tail))
                now = time.monotonic()
                if fresh and now - drawn >= _DRAW_S:
                    self._positions = tail.positions
                    self._draw_log()
                    drawn, fresh = now, False
                if now - looked >= _LOOK_S:
                    looked = now
                    self._look()
        finally:
            coming.cancel()
            with suppress(asyncio.CancelledError):
                await coming
            self._positions = tail.positions

    def _count(self, change: LogRow) -> None:
        self._changes.append(change)
        kind = _TAKEN_BACK if change.is_retraction else change.kind
        self._counts[kind] = self._counts.get(kind, 0) + 1

    def _draw_log(self) -> None:
        self._log_view.value = self._log()._repr_html_()

    def _log(self) -> parts.Rows:
        newest = list(self._changes)[::-1]
        values = [
            [
                f"{c.kind} {_TAKEN_BACK}" if c.is_retraction else c.kind,
                *[parts.local(c.row.get(name)) for name in self._columns],
                f"{c.timestamp:%H:%M:%S}",
            ]
            for c in newest
        ]
        tones = [f"{c.kind} {parts.RETRACTED}" if c.is_retraction else c.kind for c in newest]
        seen = ", ".join(f"{n:,} {kind}" for kind, n in sorted(self._counts.items()))
        state = "following" if self.following else "paused" if self._positions is not None else "not started"
        said = f"{state} · {seen or 'no change yet'} · {_LEGEND}, struck through: {_TAKEN_BACK}"
        return parts.rows(["kind", *self._columns, "time (UTC)"], values, said, tones=tones)

    # The rows

    def _look(self) -> None:
        """Reads the rows again if there is something new where they come from."""
        # Reading the log over the files is work: not for every change.
        due = self.mode.value == "file" or time.monotonic() - self._read_at >= _FRESH_S
        if due and not self.busy and self._state() != self._seen:
            self._run("Reading rows", self._read, self._take, quiet=True)

    def _state(self) -> tuple[Any, ...]:
        """Returns what the rows depend on."""
        changes = sum(self._counts.values()) if self.mode.value == "log" else 0
        return self.mode.value, self._table.version, changes

    def _reread(self) -> None:
        self._run("Reading rows", self._read, self._take)

    def _read(self) -> tuple[tuple[Any, ...], parts.Rows]:
        state, mode = self._state(), self.mode.value
        version = self._table.version
        frame = self._table.to_df(version=version) if mode == "file" else self._table.freshest()
        wanted = {name: each.value.strip() for name, each in self.key_fields.items() if each.value.strip()}
        columns, values, more = parts.fetch(self._of_key(frame, wanted), self._limit)
        if wanted:
            count = counted(len(values), "row") + " with this key"
        elif more:
            count = f"first {counted(len(values), 'row')}"
        else:
            count = counted(len(values), "row")
        if mode == "file" and more and not wanted:
            count += f" of {sum(self._table.inspect.partitions(version=version)['rows'].to_pylist()):,}"
        over = " with the log's newer changes over it" if mode == "log" else ""
        return state, parts.rows(columns, values, f"version {version}{over}: {count}")

    def _of_key(self, frame: DataFrame, wanted: Mapping[str, str]) -> DataFrame:
        from pyspark.sql import functions as F

        for name, text in wanted.items():
            frame = frame.where(F.col(quote(name)) == F.lit(text).cast(frame.schema[name].dataType))
        return frame

    def _take(self, found: tuple[tuple[Any, ...], parts.Rows]) -> None:
        self._seen, self._rows = found
        self._read_at = time.monotonic()
        self._rows_view.value = self._rows._repr_html_()

    def close(self) -> None:
        """Ends the widget and its reader."""
        self._closed = True
        self.pause()
        follower = self._follower
        if follower is not None and follower is not threading.current_thread():
            follower.join(_LOOK_S)
        super().close()

    def _parts(self) -> Sequence[parts.Part]:
        return [
            parts.Heading("Log, newest first"),
            self._log().head(_STATIC_ROWS),
            parts.Heading("Rows"),
            self._rows.head(_STATIC_ROWS),
        ]


def _heading(text: str) -> ipw.HTML:
    return ipw.HTML(parts.Heading(text)._repr_html_())
