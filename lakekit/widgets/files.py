"""The manifest explorer: partitions, buckets and files of a version, and the sorted runs of one bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ipywidgets as ipw

from lakekit import plot
from lakekit.plot.skips import natural
from lakekit.units import counted, format_bytes
from lakekit.widgets import parts
from lakekit.widgets.base import LakeWidget, button, row, scrolled
from lakekit.widgets.commits import seen_once
from lakekit.widgets.figures import FigureView

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lakekit.table.table import Table

MAX_CHOICES = 1000
"""Partitions, and buckets of one, that can be chosen from a list."""

_MAX_FILES = 200
_STATIC_ROWS = 20
_ALL_ROWS = "all rows"

Row = dict[str, Any]
Place = tuple[str, int | None]


@dataclass
class _State:
    """What is shown: a version, its buckets and the files of one of them."""

    seen: Table
    version: int
    buckets: list[Row]
    files: list[Row]
    manifests: list[Row]


class ManifestExplorer(LakeWidget):
    """What a version of a table is made of; see `manifests()`."""

    def __init__(self, table: Table) -> None:
        """Reads the newest version."""
        super().__init__(table.lake, f"Files of {table.name}")
        self._table = table
        self._state: _State | None = None
        self._map, self._runs = FigureView(), FigureView()
        wide = ipw.Layout(width="min(420px, 90%)")
        self.version = ipw.IntSlider(description="Version", continuous_update=False, layout=wide)
        self.refresh = button("Refresh", "Look for new versions")
        self.colour = ipw.ToggleButtons(
            options=[("deleted rows", "deleted_share"), ("level", "level")],
            style={"button_width": "auto"},
            layout=ipw.Layout(width="max-content"),
        )
        self.partition = ipw.Dropdown(description="Partition", layout=wide)
        self.bucket = ipw.Dropdown(description="Bucket", layout=wide)
        self._files_view, self._manifests_view = ipw.HTML(), ipw.HTML()
        self._filling = False
        self._now("Reading the files", lambda: self._read(None), self._take)
        self._on(self.version, self._travel, "value")
        self._on(self.colour, self._draw_map, "value")
        self._on(self.partition, self._choose_partition, "value")
        self._on(self.bucket, self._draw_bucket, "value")
        self._on(self.refresh, lambda: self._run("Reading the files", lambda: self._read(None), self._take))
        tabs = ipw.Tab(
            [ipw.VBox([self._runs, scrolled(self._files_view)]), scrolled(self._manifests_view, "500px")],
            titles=["Sorted runs", "Log files"],
        )
        self._show(
            row(self.version, self.refresh, ipw.Label("Colour:"), self.colour),
            self._map,
            row(self.partition, self.bucket),
            tabs,
            steering=[self.refresh],
        )

    # Versions

    def _travel(self) -> None:
        if not self._filling:
            version = self.version.value
            self._run("Reading the files", lambda: self._read(version), self._take)

    def _read(self, version: int | None) -> tuple[_State, tuple[int, int], go.Figure]:
        held = self._held()
        at = held[1] if version is None else version
        seen = seen_once(self._table)
        look = seen.inspect
        buckets = look.buckets(version=at).to_pylist()
        state = _State(
            seen, at, buckets, look.files(version=at).to_pylist(), look.manifests(version=at).to_pylist()
        )
        return state, held, plot.buckets(seen, at, colour=self.colour.value)

    def _held(self) -> tuple[int, int]:
        from lakekit.table.versions import held_versions

        return self._lake.runner.run(held_versions, self._table.root)

    def _take(self, found: tuple[_State, tuple[int, int], go.Figure]) -> None:
        self._state, (first, last), figure = found
        self._filling = True
        try:
            self.version.max = max(last, self.version.max)
            self.version.min = first
            self.version.max = last
            self.version.value = self._state.version
            place = self.partition.value, self.bucket.value
            self._fill_partitions(place)
        finally:
            self._filling = False
        self._show_map(figure)
        self._manifests_view.value = _manifests(self._state.manifests)._repr_html_()
        self._draw_bucket()

    def _draw_map(self) -> None:
        if self._state is not None:
            state = self._state
            self._show_map(plot.buckets(state.seen, state.version, colour=self.colour.value))

    def _show_map(self, figure: go.Figure) -> None:
        self._map.draw(figure)
        self._map.when_clicked(self._pick)

    # The bucket

    def _fill_partitions(self, kept: tuple[str | None, int | None]) -> None:
        """Fills the lists, and chooses the bucket that was chosen, or the one with the most runs."""
        known: dict[Place, Row] = {(b["partition"], b["bucket"]): b for b in self._buckets()}
        if kept not in known:
            kept = max(
                known, key=lambda p: (known[p]["runs"], known[p]["deleted_rows"]), default=(None, None)
            )
        names = sorted({partition for partition, _ in known}, key=natural)[:MAX_CHOICES]
        if kept[0] is not None and kept[0] not in names:
            names.append(kept[0])
        self.partition.options = [(name or _ALL_ROWS, name) for name in names]
        self.partition.value = kept[0]
        self._fill_buckets(kept[1])

    def _fill_buckets(self, kept: int | None) -> None:
        members = [b for b in self._buckets() if b["partition"] == self.partition.value][:MAX_CHOICES]
        self.bucket.options = [(_bucket_label(b), b["bucket"]) for b in members]
        self.bucket.value = kept if kept in [b["bucket"] for b in members] else None
        if self.bucket.value is None and members:
            self.bucket.value = max(members, key=lambda b: b["runs"])["bucket"]

    def _buckets(self) -> list[Row]:
        return self._state.buckets if self._state is not None else []

    def _pick(self, tile: int) -> None:
        """Chooses the bucket of the tile that was clicked: a bucket, or a file in one."""
        traces: tuple[Any, ...] = self._map.data
        identity = str(traces[0].ids[tile]).removeprefix(f"{self._table.name}/")
        places = {f"{b['partition']}/bucket {b['bucket']}": b for b in self._buckets()}
        found = places.get(identity) or next((f for f in self._all_files() if f["path"] == identity), None)
        if found is not None and found["partition"] in [name for _, name in self.partition.options]:
            self.partition.value = found["partition"]
            self.bucket.value = found["bucket"]

    def _choose_partition(self) -> None:
        if not self._filling:
            self._filling = True
            try:
                self._fill_buckets(self.bucket.value)
            finally:
                self._filling = False
            self._draw_bucket()

    def _draw_bucket(self) -> None:
        if self._filling or self._state is None:
            return
        self._files_view.value = self._files()._repr_html_()
        if self._members():
            state = self._state
            figure = plot.sorted_runs(state.seen, self.partition.value, self.bucket.value, state.version)
            self._runs.draw(figure)

    def _all_files(self) -> list[Row]:
        return self._state.files if self._state is not None else []

    def _members(self) -> list[Row]:
        place = self.partition.value, self.bucket.value
        return [f for f in self._all_files() if (f["partition"], f["bucket"]) == place]

    def _files(self, limit: int = _MAX_FILES) -> parts.Rows:
        members = sorted(self._members(), key=lambda f: (-(f["level"] or 0), f["modified_at"]))
        columns = ["level", "run", "rows", "deleted", "", "size", "first key", "last key", "file"]
        rows = [
            [
                "other writer" if f["level"] is None else f["level"],
                (f["run_id"] or "")[:8],
                f["rows"],
                f["deleted_rows"],
                parts.bar(f["deleted_share"] or 0),
                format_bytes(f["bytes"]),
                f["key_min"],
                f["key_max"],
                f["path"].rpartition("/")[2],
            ]
            for f in members[:limit]
        ]
        return parts.rows(columns, rows, parts.shown_of(len(rows), len(members), "file"))

    def _parts(self) -> Sequence[parts.Part]:
        if self._state is None:
            return []
        state = self._state
        place = " / ".join([self.partition.value or _ALL_ROWS, f"bucket {self.bucket.value}"])
        return [
            parts.Heading(f"Version {state.version}: partitions and buckets"),
            _largest(state.buckets),
            parts.Heading(f"Files of {place}"),
            self._files(_STATIC_ROWS),
        ]


def _bucket_label(bucket: Row) -> str:
    name = "no bucket" if bucket["bucket"] is None else f"bucket {bucket['bucket']}"
    return f"{name} · {counted(bucket['runs'], 'run')}, {counted(bucket['rows'], 'row')}"


def _largest(buckets: Sequence[Row]) -> parts.Rows:
    total = max((b["bytes"] for b in buckets), default=0)
    columns = ["partition", "bucket", "size", "", "rows", "deleted", "files", "runs"]
    largest = sorted(buckets, key=lambda b: -b["bytes"])[:_STATIC_ROWS]
    rows = [
        [
            b["partition"] or _ALL_ROWS,
            b["bucket"],
            format_bytes(b["bytes"]),
            parts.bar(b["bytes"] / max(total, 1)),
            b["rows"],
            f"{b['deleted_share'] or 0:.1%}",
            b["files"],
            b["runs"],
        ]
        for b in largest
    ]
    return parts.rows(columns, rows, parts.shown_of(len(rows), len(buckets), "bucket") + ", largest first")


def _manifests(manifests: Sequence[Row]) -> parts.Rows:
    columns = ["file", "kind", "version", "written (UTC)", "size", "files added", "files removed"]
    columns += ["new vectors", "rows added", "rows removed"]
    newest = manifests[: -_MAX_FILES - 1 : -1]
    rows = [
        [
            m["path"],
            m["kind"],
            m["version"],
            f"{m['written_at']:%Y-%m-%d %H:%M:%S}",
            format_bytes(m["bytes"]),
            m["files_added"],
            m["files_removed"],
            m["vectors_changed"],
            m["rows_added"],
            m["rows_removed"],
        ]
        for m in newest
    ]
    said = parts.shown_of(len(rows), len(manifests), "file") + " that make up the version, newest first"
    return parts.rows(columns, rows, said)
