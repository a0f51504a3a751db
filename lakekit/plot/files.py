"""Figures of a table's files: a map of partitions and buckets, and the sorted runs of one bucket."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import plotly.graph_objects as go

from lakekit.errors import InvalidOptionError, NotFoundError
from lakekit.plot.theme import DELETED_SHARE, GREY, LEVELS, figure, label
from lakekit.units import counted, format_bytes

if TYPE_CHECKING:
    from lakekit.table.table import Table

MAX_TILES = 1500
"""Tiles of the map, as a rule; of more, the small ones in a partition or bucket become one."""

_PARENT = "#6b7280"
MAX_FILES_OF_RUNS = 400
MAX_RUNS = 150

Colour = Literal["deleted_share", "level"]
Row = dict[str, Any]


def buckets(table: Table, version: int | None = None, *, colour: Colour = "deleted_share") -> go.Figure:
    """Draws partitions, in them buckets, in them files; the area is the size in bytes.

    Args:
        table: the table.
        version: the version; the newest by default.
        colour: what the colour says: the share of deleted rows, or the level of the sorted run.

    Raises:
        InvalidOptionError: if `colour` is neither.
    """
    if colour not in ("deleted_share", "level"):
        raise InvalidOptionError.bad_value("colour", colour, "deleted_share or level")
    tiles = _tiles(str(table.name), table.inspect.files(version=version).to_pylist())
    if colour == "level":
        parents = {tile.parent for tile in tiles}
        # Only what holds nothing smaller has a level.
        marker: Row = {
            "colors": [_PARENT if tile.id in parents else _level_colour(tile.levels) for tile in tiles]
        }
    else:
        marker = {
            "colors": [tile.deleted / max(tile.rows + tile.deleted, 1) for tile in tiles],
            "colorscale": DELETED_SHARE,
            "cmin": 0,
            "cmax": 1,
            "colorbar": {
                "title": {"text": "deleted"},
                "tickformat": ".0%",
                "thickness": 12,
                "outlinewidth": 0,
            },
        }
    trace = go.Treemap(
        ids=[tile.id for tile in tiles],
        parents=[tile.parent for tile in tiles],
        labels=[tile.name for tile in tiles],
        values=[tile.bytes for tile in tiles],
        customdata=[tile.note() for tile in tiles],
        branchvalues="total",
        marker={**marker, "line": {"width": 0.5, "color": "rgba(255,255,255,0.6)"}, "pad": {"t": 16}},
        outsidetextfont={"color": "#ffffff"},
        hovertemplate="%{customdata}<extra></extra>",
        tiling={"pad": 2},
        pathbar={"visible": True},
    )
    shown = "" if version is None else f", version {version}"
    what = "share of deleted rows" if colour == "deleted_share" else "level 0 orange, level 1 blue"
    title = f"{table.name}: partitions, buckets, files{shown} ({what})"
    return figure(title, [trace], height=480, margin={"l": 10, "r": 10, "t": 50, "b": 10})


def sorted_runs(
    table: Table, partition: str | None = None, bucket: int | None = None, version: int | None = None
) -> go.Figure:
    """Draws the sorted runs of one bucket as ranges of keys: where they overlap, compaction has work to do.

    Args:
        table: the table.
        partition: the partition as `inspect.buckets()` names it, such as ``month=2``.
        bucket: the bucket. Without partition or bucket, the one with the most runs is drawn.
        version: the version; the newest by default.

    Raises:
        NotFoundError: if there is no such bucket.
    """
    files = table.inspect.files(version=version).to_pylist()
    rows = _of_one_bucket(str(table.name), files, partition, bucket)
    place = " / ".join(t for t in (rows[0]["partition"], f"bucket {rows[0]['bucket']}") if t)
    runs = _runs(rows)[-MAX_RUNS:]
    axis = _KeyAxis.of([row for _, members in runs for row in members])
    target = figure(f"{table.name}: sorted runs of {label(place)}", barmode="overlay", bargap=0.3)
    seen: set[str] = set()
    for position, (run_label, members) in enumerate(runs):
        spans = members if len(rows) <= MAX_FILES_OF_RUNS else [_merged(members, axis)]
        level = members[0]["level"]
        group = "other writers" if level is None else f"level {level}"
        bars = [axis.span(row) for row in spans]
        target.add_bar(
            y=[position] * len(bars),
            base=[low for low, _ in bars],
            x=[high - low for low, high in bars],
            orientation="h",
            name=group,
            legendgroup=group,
            showlegend=group not in seen,
            marker={"color": LEVELS.get(level, GREY), "line": {"width": 1, "color": "rgba(255,255,255,0.7)"}},
            hovertext=[_run_note(run_label, row) for row in spans],
            hoverinfo="text",
        )
        seen.add(group)
    names = [_run_name(members) for _, members in runs]
    # One run alone would fill the figure.
    span = [-0.5, max(len(runs), 3) - 0.5]
    target.update_yaxes(tickmode="array", tickvals=list(range(len(runs))), ticktext=names, range=span)
    target.update_xaxes(title_text=f"key: {label(axis.name)}", **axis.ticks())
    target.update_layout(height=min(30 * max(len(runs), 3) + 170, 1400))
    return target


@dataclass
class _Tile:
    """A rectangle of the map, with the sums of what is in it; `name` is what plotly shows."""

    id: str
    parent: str
    name: str
    rows: int = 0
    deleted: int = 0
    bytes: int = 0
    files: int = 0
    merged: int = 0
    levels: frozenset[int | None] = frozenset()

    def take(self, row: Row) -> None:
        self.rows += row["rows"] or 0
        self.deleted += row["deleted_rows"]
        self.bytes += row["bytes"]
        self.files += 1
        self.levels |= {row["level"]}

    def add(self, other: _Tile) -> None:
        self.rows += other.rows
        self.deleted += other.deleted
        self.bytes += other.bytes
        self.files += other.files
        self.levels |= other.levels

    def note(self) -> str:
        share = self.deleted / max(self.rows + self.deleted, 1)
        levels = ", ".join("other writer" if n is None else str(n) for n in sorted(self.levels, key=str))
        return (
            f"<b>{label(self.id)}</b><br>{counted(self.rows, 'row')}, {self.deleted:,} deleted ({share:.1%})<br>"
            f"{counted(self.files, 'file')}, {format_bytes(self.bytes)}<br>level {levels}"
        )


def _tiles(table: str, rows: Sequence[Row]) -> list[_Tile]:
    """Returns the tiles, parents first; where there are too many, the small ones of a parent are one tile."""
    root, *levels = _tile_levels(table, rows)
    tiles = list(root.values())
    for level in levels:
        known = {tile.id for tile in tiles}
        members = sorted((t for t in level.values() if t.parent in known), key=lambda t: -t.bytes)
        room = max(MAX_TILES - len(tiles), 0)
        tiles += members[:room]
        if len(members) > room:
            return tiles + _others(members[room:])
    return tiles


def _tile_levels(table: str, rows: Sequence[Row]) -> list[dict[str, _Tile]]:
    """Returns the tiles of the table, of partitions, of buckets, and of files."""
    levels: list[dict[str, _Tile]] = [{table: _Tile(table, "", label(table))}, {}, {}, {}]
    for row in rows:
        partition = row["partition"] or "all rows"
        bucket = "no bucket" if row["bucket"] is None else f"bucket {row['bucket']}"
        level = "other writer" if row["level"] is None else f"level {row['level']}"
        steps = [
            (table, label(table)),
            (f"{table}/{partition}", label(partition)),
            (f"{table}/{partition}/{bucket}", bucket),
            (f"{table}/{row['path']}", f"{level}<br>{counted(row['rows'] or 0, 'row')}"),
        ]
        parent = ""
        for tiles, (identity, shown) in zip(levels, steps, strict=True):
            tiles.setdefault(identity, _Tile(identity, parent, shown)).take(row)
            parent = identity
    return levels


def _others(tiles: Sequence[_Tile]) -> list[_Tile]:
    """Sums up the tiles of each parent."""
    sums: dict[str, _Tile] = {}
    for tile in tiles:
        total = sums.setdefault(tile.parent, _Tile(f"{tile.parent}/others", tile.parent, ""))
        total.add(tile)
        total.merged += 1
        total.name = f"{total.merged:,} others"
    return list(sums.values())


def _level_colour(levels: frozenset[int | None]) -> str:
    """Returns the colour of a level; what holds several is grey."""
    only = next(iter(levels)) if len(levels) == 1 else None
    return GREY if only is None else LEVELS.get(only, GREY)


def _of_one_bucket(table: str, files: Sequence[Row], partition: str | None, bucket: int | None) -> list[Row]:
    """Returns the files of the bucket that is asked for; of several, of that with the most runs."""
    found: dict[tuple[str, int | None], list[Row]] = {}
    for row in files:
        if partition in (None, row["partition"]) and bucket in (None, row["bucket"]):
            found.setdefault((row["partition"], row["bucket"]), []).append(row)
    if not found:
        wanted = " / ".join(t for t in (partition, None if bucket is None else f"bucket {bucket}") if t)
        raise NotFoundError(
            f"Table {table} has no files{f' in {wanted}' if wanted else ''}.",
            "Its partitions and buckets are in table.inspect.buckets().",
        )
    return max(found.values(), key=lambda rows: (len(_runs(rows)), sum(row["deleted_rows"] for row in rows)))


def _runs(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Returns the runs with their files, lowest in the picture first: high levels, then old runs."""
    runs: dict[str, list[Row]] = {}
    for row in rows:
        runs.setdefault(row["run_id"] or row["path"], []).append(row)
    return sorted(runs.items(), key=lambda run: (-(run[1][0]["level"] or 0), _age(run[1])))


def _age(members: Sequence[Row]) -> Any:
    return min(row["modified_at"] for row in members)


def _run_name(members: Sequence[Row]) -> str:
    rows = sum(row["rows"] or 0 for row in members)
    deleted = sum(row["deleted_rows"] for row in members)
    return counted(rows, "row") + (f", {deleted:,} deleted" if deleted else "")


def _run_note(run: str, row: Row) -> str:
    share = row["deleted_share"] or 0
    return (
        f"<b>run {label(run.rpartition('/')[2][:8])}</b><br>{counted(row['rows'] or 0, 'row')},"
        f" {row['deleted_rows']:,} deleted ({share:.1%}), {format_bytes(row['bytes'])}<br>"
        f"keys from {label(row['key_min'] or '?')}<br>to {label(row['key_max'] or '?')}"
    )


def _merged(members: Sequence[Row], axis: _KeyAxis) -> Row:
    """Returns one row for all files of a run."""
    rows = sum(row["rows"] or 0 for row in members)
    deleted = sum(row["deleted_rows"] for row in members)
    return {
        **members[0],
        "rows": rows,
        "deleted_rows": deleted,
        "deleted_share": deleted / max(rows + deleted, 1),
        "bytes": sum(row["bytes"] for row in members),
        "key_min": min(members, key=lambda row: axis.span(row)[0])["key_min"],
        "key_max": max(members, key=lambda row: axis.span(row)[1])["key_max"],
    }


class _KeyAxis:
    """Places keys on a line: by the first key column that differs among the files.

    Numbers and dates keep their distances; of other values only the order is shown.
    """

    def __init__(
        self, name: str, values: Sequence[Any], place: Callable[[Any], float], margin: float
    ) -> None:
        self.name = name
        self._values = values
        self._place = place
        self._margin = margin

    @classmethod
    def of(cls, rows: Sequence[Row]) -> _KeyAxis:
        keys = [json.loads(row[end]) for row in rows for end in ("key_min", "key_max") if row[end]]
        names = [name for name in (keys[0] if keys else {}) if len({str(key.get(name)) for key in keys}) > 1]
        name = names[0] if names else next(iter(keys[0] if keys else {}), "key")
        values = sorted(
            {key[name] for key in keys if key.get(name) is not None}, key=lambda v: (str(type(v)), v)
        )
        if values and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
            # A whole number stands for the range around it, so that a single one can be seen.
            whole = all(isinstance(v, int) for v in values)
            width = max(float(values[-1]) - float(values[0]), 1.0)
            return cls(name, (), float, 0.4 if whole else width / 200)
        order = {value: float(place) for place, value in enumerate(values)}
        return cls(name, values, order.__getitem__, 0.2)

    def span(self, row: Row) -> tuple[float, float]:
        """Returns where a file begins and ends; one without bounds spans nothing."""
        if not row["key_min"] or not row["key_max"]:
            return 0.0, 0.0
        low, high = json.loads(row["key_min"])[self.name], json.loads(row["key_max"])[self.name]
        return self._place(low) - self._margin, self._place(high) + self._margin

    def ticks(self) -> Row:
        if not self._values:
            return {}
        step = max(1, len(self._values) // 12)
        shown = range(0, len(self._values), step)
        return {
            "tickmode": "array",
            "tickvals": list(shown),
            "ticktext": [label(str(self._values[i])[:24]) for i in shown],
        }
