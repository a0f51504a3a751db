"""What a result looks like: an HTML table in a notebook, aligned text in a terminal.

Every value, column name and message is escaped here. Colours are left to the page (dark theme included).
"""

from __future__ import annotations

import datetime as dt
import html
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from lakekit.units import counted, duration, format_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAX_CELL = 300
"""Characters of one value that are shown; the rest is cut off with an ellipsis."""

_MAX_TEXT_CELL = 60
_TABLE = "border-collapse:collapse;margin:0;font-variant-numeric:tabular-nums"
_LINE = "border-bottom:1px solid rgba(128,128,128,{strength})"
_HEAD = "text-align:{align};padding:3px 10px;white-space:nowrap;" + _LINE.format(strength=0.6)
_CELL = "text-align:{align};padding:2px 10px;white-space:{wrap};" + _LINE.format(strength=0.2)
_LONG_CELL = "pre-wrap;min-width:24em"
_NOTE = "margin-top:4px;font-size:85%;opacity:.75"


@dataclass(frozen=True)
class ResultTable:
    """The rows of one statement that are shown, and a line about them.

    Attributes:
        columns: the names, which may repeat.
        rows: the values, at most the limit.
        more: whether the query has rows that are not here.
        seconds: the time from the start of the statement to its rows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    more: bool
    seconds: float

    @property
    def note(self) -> str:
        """The line under the table: how many rows, whether there is more, and how long it took."""
        count = counted(len(self.rows), "row")
        shown = f"first {count}, there is more (--limit N shows more)" if self.more else count
        return f"{shown} · {duration(self.seconds)}"

    def _repr_html_(self) -> str:
        aligns = ["right" if numeric else "left" for numeric in self._numeric()]
        head = "".join(
            f'<th style="{_HEAD.format(align=a)}">{html.escape(c)}</th>'
            for c, a in zip(self.columns, aligns, strict=True)
        )
        body = "".join(
            f"<tr{self._row_attributes(number)}>"
            + "".join(_html_cell(v, a) for v, a in zip(row, aligns, strict=True))
            + "</tr>"
            for number, row in enumerate(self.rows)
        )
        return (
            f'<div class="lakekit-result"><div style="overflow-x:auto"><table style="{_TABLE}">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
            f'<div style="{_NOTE}">{html.escape(self.note)}</div></div>'
        )

    def _row_attributes(self, number: int) -> str:  # noqa: ARG002
        """Returns the attributes of a row's tag, with a blank before them."""
        return ""

    def __repr__(self) -> str:
        texts = [[_one_line(text(v)) for v in row] for row in self.rows]
        names = [_one_line(c) for c in self.columns]
        widths = [max([len(n), *(len(row[i]) for row in texts)]) for i, n in enumerate(names)]
        numeric = self._numeric()

        def line(values: Sequence[str]) -> str:
            cells = (v.rjust(w) if n else v.ljust(w) for v, w, n in zip(values, widths, numeric, strict=True))
            return " | ".join(cells).rstrip()

        rule = "-+-".join("-" * w for w in widths)
        return "\n".join([line(names), rule, *map(line, texts), self.note])

    def _numeric(self) -> list[bool]:
        """Tells of each column whether it holds numbers."""
        return [is_numeric([row[i] for row in self.rows]) for i in range(len(self.columns))]


@dataclass(frozen=True)
class PlainText:
    """Text that is shown as it is, in a font whose letters are equally wide."""

    content: str

    def __repr__(self) -> str:
        return self.content


@dataclass(frozen=True)
class JsonRows:
    """The rows of a result as JSON, one object each; of columns with one name, the later ones get a number."""

    table: ResultTable

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"application/json": self.records(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        lines = ",\n".join(" " + json.dumps(r, ensure_ascii=False) for r in self.records())
        return f"[\n{lines}\n]\n{self.table.note}" if lines else f"[]\n{self.table.note}"

    def records(self) -> list[dict[str, Any]]:
        """The rows; dates, times, decimals and bytes are text."""
        seen: Counter[str] = Counter()
        names = []
        for name in self.table.columns:
            seen[name] += 1
            names.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
        return [{n: plain(v) for n, v in zip(names, row, strict=True)} for row in self.table.rows]


@dataclass(frozen=True)
class Note:
    """One line about a statement that has no rows to show."""

    message: str

    def _repr_html_(self) -> str:
        return f'<div class="lakekit-result" style="{_NOTE}">{html.escape(self.message)}</div>'

    def __repr__(self) -> str:
        return self.message


def fetch(frame: DataFrame, limit: int) -> tuple[list[str], list[list[Any]], bool]:
    """Returns column names, at most `limit` rows, and whether there are more; one Spark job."""
    columns = list(frame.columns)
    if not columns:
        return columns, [], False
    from pyspark.sql.types import TimestampType

    rows = [list(row) for row in frame.take(limit + 1)]
    instants = [i for i, f in enumerate(frame.schema.fields) if isinstance(f.dataType, TimestampType)]
    if instants:
        # PySpark hands out the time of this machine; SQL means that of the session.
        zone = ZoneInfo(frame.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC")
        for row in rows:
            for i in instants:
                row[i] = row[i] and row[i].astimezone(zone).replace(tzinfo=None)
    return columns, rows[:limit], len(rows) > limit


def commit_note(commit: Mapping[str, Any]) -> str:
    """Says what a write did, from the fields of `lakekit.table.commit.Commit`; what did not happen is left out."""
    parts = [f"{commit['operation']}, version {commit['version']}"]
    if commit["skipped"]:
        parts[0] = (
            f"{commit['operation']}: nothing was committed, the table stays at version {commit['version']}"
        )
    for kind in ("inserted", "updated", "deleted", "late"):
        if count := commit[f"rows_{kind}"]:
            what = "late and ignored" if kind == "late" else kind
            parts.append(f"{counted(count, 'row')} {what}")
    if count := commit["files_added"]:
        parts.append(f"{counted(count, 'file')} added ({format_bytes(commit['bytes_added'])})")
    if count := commit["files_removed"]:
        parts.append(f"{counted(count, 'file')} removed")
    return " · ".join(parts)


def text(value: Any) -> str:
    """Says one value of a row as text, the way Spark SQL prints it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return (
            repr(value)
            if math.isfinite(value)
            else {"nan": "NaN", "inf": "Infinity"}.get(str(value), "-Infinity")
        )
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, (bytes, bytearray)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(k)}: {text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple):  # a Row, which is a named tuple in all but type
        names = getattr(value, "__fields__", None) or getattr(value, "_fields", None)
        parts = [text(v) for v in value]
        return (
            "{" + ", ".join(f"{n}: {p}" for n, p in zip(names, parts, strict=True) if n) + "}"
            if names
            else str(parts)
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    return str(value)


def plain(value: Any) -> Any:
    """Returns a value of a row as JSON has it."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else text(value)
    if isinstance(value, dict):
        return {text(k): plain(v) for k, v in value.items()}
    if hasattr(value, "asDict"):
        return {k: plain(v) for k, v in value.asDict().items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return text(value)


def _html_cell(value: Any, align: str) -> str:
    shown = text(value)
    style = _CELL.format(align=align, wrap="pre" if len(shown) <= _MAX_TEXT_CELL else _LONG_CELL)
    if value is None:
        return f'<td style="{style};opacity:.5;font-style:italic">null</td>'
    if len(shown) > MAX_CELL:
        shown = shown[:MAX_CELL] + "…"
    return f'<td style="{style}">{html.escape(shown)}</td>'


def _one_line(value: str) -> str:
    flat = "".join(c if c.isprintable() else " " for c in value)
    return flat if len(flat) <= _MAX_TEXT_CELL else flat[: _MAX_TEXT_CELL - 1] + "…"


def is_numeric(values: Sequence[Any]) -> bool:
    """Tells whether values, of which some may be None, are numbers."""
    known = [v for v in values if v is not None]
    return bool(known) and all(
        isinstance(v, (int, float, Decimal)) and not isinstance(v, bool) for v in known
    )
