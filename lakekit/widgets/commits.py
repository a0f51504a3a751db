"""The snapshot explorer: what each commit did, the rows at any version, and what changed between two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import ipywidgets as ipw

from lakekit import plot
from lakekit.errors import InvalidOptionError
from lakekit.plot.commits import commits_in_a_bar
from lakekit.table import changes
from lakekit.units import counted, duration, format_bytes
from lakekit.widgets import parts
from lakekit.widgets.base import LakeWidget, button, row, scrolled
from lakekit.widgets.figures import FigureView

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lakekit.table.table import Table

_STATIC_COMMITS = _STATIC_ROWS = 20
_MARK = "rgba(128,128,128,0.45)"

Row = dict[str, Any]


class SnapshotExplorer(LakeWidget):
    """The history of a table: timeline, time travel, and the changes between two versions; see `snapshots()`."""

    def __init__(self, table: Table, limit: int = 20) -> None:
        """Reads the history and the newest rows."""
        super().__init__(table.lake, f"Snapshots of {table.name}")
        self._table = table
        self._limit = limit
        self._commits: dict[int, Row] = {}
        self._facts = self._rows = self._changes = parts.rows([], [])
        self._figure = FigureView()
        self.version = ipw.IntSlider(
            description="Version", continuous_update=False, layout=ipw.Layout(width="min(600px, 90%)")
        )
        short: dict[str, Any] = {
            "layout": ipw.Layout(width="130px"),
            "style": {"description_width": "auto"},
        }
        self.since = ipw.BoundedIntText(description="From", **short)
        self.until = ipw.BoundedIntText(description="to", **short)
        self.compare = button("Show changes", "The changes after the first version, up to the second")
        self.refresh = button("Refresh", "Look for new commits")
        self._facts_view, self._rows_view, self._changes_view = ipw.HTML(), ipw.HTML(), ipw.HTML()
        self._now("Reading the history", self._read, self._take)
        self._now("Reading rows", lambda: self._read_rows(self.version.value), self._take_rows)
        self._on(self.version, self._travel, "value")
        self._on(self.compare, self._compare)
        self._on(self.refresh, lambda: self._run("Reading the history", self._read, self._take))
        tabs = ipw.Tab(
            [
                scrolled(self._rows_view),
                ipw.VBox([row(self.since, self.until, self.compare), scrolled(self._changes_view)]),
                scrolled(self._facts_view),
            ],
            titles=["Rows", "Changes", "Commit"],
        )
        self._show(self._figure, row(self.version, self.refresh), tabs, steering=[self.compare, self.refresh])

    # The history

    def _read(self) -> tuple[list[Row], go.Figure]:
        seen = seen_once(self._table)
        return seen.inspect.snapshots().to_pylist(), plot.snapshots(seen)

    def _take(self, found: tuple[list[Row], go.Figure]) -> None:
        commits, figure = found
        follows = not self._commits or self.version.value == self.version.max
        self._commits = {commit["version"]: commit for commit in commits}
        first, last = commits[0]["version"], commits[-1]["version"]
        for each in (self.version, self.since, self.until):
            # The bounds must not cross while they move.
            each.max = max(last, each.max)
            each.min = first
            each.max = last
        self.since.value, self.until.value = max(first, last - 1), last
        self._figure.draw(figure)
        step = commits_in_a_bar(len(commits))
        self._figure.when_clicked(
            lambda bar: setattr(self.version, "value", min(first + (bar + 1) * step - 1, last))
        )
        if follows:
            self.version.value = last
        self._mark(self.version.value)

    def _mark(self, version: int) -> None:
        """Marks the version in the figure, and says all about its commit."""
        versions = list(self._commits)
        place = versions.index(version) // commits_in_a_bar(len(versions))
        band = {"type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
        self._figure.layout.shapes = [
            {
                **band,
                "x0": place - 0.5,
                "x1": place + 0.5,
                "fillcolor": _MARK,
                "opacity": 0.4,
                "line_width": 0,
            }
        ]
        self._facts = _about(self._commits[version])
        self._facts_view.value = self._facts._repr_html_()

    # Time travel

    def _travel(self) -> None:
        version = self.version.value
        self._mark(version)
        self._run("Reading rows", lambda: self._read_rows(version), self._take_rows)

    def _read_rows(self, version: int) -> parts.Rows:
        columns, rows, more = parts.fetch(self._table.to_df(version=version), self._limit)
        total = self._commits[version]["rows"]
        count = counted(total, "row") if total is not None else "rows"
        said = f"version {version}: {f'first {len(rows):,} of ' if more else ''}{count}"
        return parts.rows(columns, rows, said)

    def _take_rows(self, rows: parts.Rows) -> None:
        self._rows = rows
        self._rows_view.value = rows._repr_html_()

    # What changed

    def _compare(self) -> None:
        since, until = self.since.value, self.until.value
        if since >= until:
            raise InvalidOptionError.bad_value("From", since, f"a version before {until}")
        self._run("Reading changes", lambda: self._read_changes(since, until), self._take_changes)

    def _read_changes(self, since: int, until: int) -> parts.Rows:
        return changed_rows(self._table, since, until, self._limit * 5)

    def _take_changes(self, rows: parts.Rows) -> None:
        self._changes = rows
        self._changes_view.value = rows._repr_html_()

    def _parts(self) -> Sequence[parts.Part]:
        newest = list(self._commits.values())[: -_STATIC_COMMITS - 1 : -1]
        said = parts.shown_of(len(newest), len(self._commits), "commit")
        shown: list[parts.Part] = [parts.Heading("Commits, newest first"), _timeline(newest, said)]
        shown += [parts.Heading("Rows"), self._rows.head(_STATIC_ROWS)] if self._rows.columns else []
        changed = self._changes.head(_STATIC_ROWS)
        return shown + ([parts.Heading("Changes"), changed] if changed.columns else [])


def seen_once(table: Table) -> Table:
    """Returns a table whose inspection is read once for each version, for figures and tables of the same data."""
    return cast("Table", _Seen(table))


class _Seen:
    """A name and an inspection, which is all that figures ask of a table."""

    def __init__(self, table: Table) -> None:
        """Reads nothing yet."""
        self.name = table.name
        self.inspect = self
        self._table = table
        self._known: dict[tuple[str, int | None], Any] = {}

    def __getattr__(self, what: str) -> Any:
        def look(version: int | None = None) -> Any:
            place = what, version
            if place not in self._known:
                self._known[place] = getattr(self._table.inspect, what)(version=version)
            return self._known[place]

        return look


def changed_rows(table: Table, since: int, until: int, limit: int) -> parts.Rows:
    """Returns the changes after one version up to another, by key, oldest first."""
    from pyspark.sql import functions as F

    from lakekit.names import quote

    frame = table.changes(since=since + 1, until=until)
    keys = [F.col(quote(column)) for column in table.primary_key]
    # -U sorts after +U, and comes before it.
    ordered = frame.orderBy(*keys, changes.VERSION, F.col(changes.KIND).desc())
    named = [changes.KIND, changes.VERSION]
    others = [quote(c) for c in frame.columns if c not in (*named, changes.TIMESTAMP)]
    columns, rows, more = parts.fetch(ordered.select(*named, *others), limit)
    said = f"{'first ' if more else ''}{counted(len(rows), 'change')} after version {since} up to {until}"
    return parts.rows(["kind", "version", *columns[2:]], rows, said, tones=[str(r[0]) for r in rows])


def _timeline(commits: Sequence[Row], said: str) -> parts.Rows:
    columns = [
        "version",
        "time (UTC)",
        "operation",
        "inserted",
        "updated",
        "deleted",
        "took",
        "rows then",
        "writer",
    ]
    counts = ("rows_inserted", "rows_updated", "rows_deleted")
    rows = [
        [
            c["version"],
            _time(c),
            c["operation"],
            *[c[name] for name in counts],
            _took(c),
            c["rows"],
            c["writer"],
        ]
        for c in commits
    ]
    return parts.rows(columns, rows, said)


def _about(commit: Row) -> parts.Rows:
    known = {
        "version": str(commit["version"]),
        "time (UTC)": _time(commit),
        "operation": commit["operation"],
        "writer": commit["writer"],
        "user metadata": commit["user_metadata"],
        "rows inserted, updated, deleted": ", ".join(
            "?" if commit[f"rows_{kind}"] is None else f"{commit[f'rows_{kind}']:,}"
            for kind in ("inserted", "updated", "deleted")
        ),
        "files added, removed": f"{commit['files_added']:,}, {commit['files_removed']:,}",
        "bytes added": format_bytes(commit["bytes_added"]),
        "took": _took(commit),
        "table then": f"{counted(commit['files'], 'file')}, {format_bytes(commit['bytes'])}",
    }
    more = {f"parameter {name}": value for name, value in commit["parameters"] or ()}
    return parts.facts(known | more)


def _time(commit: Row) -> str:
    return f"{commit['committed_at']:%Y-%m-%d %H:%M:%S}"


def _took(commit: Row) -> str | None:
    return None if commit["duration_ms"] is None else duration(commit["duration_ms"] / 1000)
