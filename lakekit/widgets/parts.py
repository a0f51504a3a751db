"""Pieces of a widget that are plain HTML or text: tables, code, messages. Every value is escaped here.

The same pieces make the live widget and its static form, so they need neither scripts nor style sheets.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from lakekit.notebook.display import Note, ResultTable, fetch
from lakekit.units import counted

if TYPE_CHECKING:
    from lakekit.errors import LakeError

KIND_TONES = {"+I": "42,157,111", "+U": "59,130,196", "-U": "224,138,30", "-D": "209,73,91"}
"""The colour of each row kind, as red, green and blue; behind text of any colour it is thinned."""

RETRACTED = "retracted"
_BAR_CELLS = 12
_PRE = (
    "margin:4px 0;padding:6px 10px;white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.4;"
    "font-family:var(--jp-code-font-family,monospace);font-size:var(--jp-code-font-size,13px);color:inherit;"
    "background:rgba(128,128,128,.12);border-radius:3px"
)
_ERROR = "border-left:3px solid #d1495b;padding:3px 10px;margin:4px 0;line-height:1.4;white-space:pre-wrap"
_SMALL = "opacity:.75;font-size:90%"


class Part(Protocol):
    """What a static form is made of."""

    def _repr_html_(self) -> str: ...


@dataclass(frozen=True, repr=False)
class Rows(ResultTable):
    """A table with a line about it, and perhaps a colour behind each row.

    Attributes:
        said: the line under the table.
        tones: for each row a key of `KIND_TONES`, with `RETRACTED` after it for a change that was taken back.
    """

    said: str = ""
    tones: Sequence[str] = ()

    @property
    def note(self) -> str:
        """The line under the table."""
        return self.said

    def head(self, limit: int) -> Rows:
        """Returns the first rows, for a static form."""
        if len(self.rows) <= limit:
            return self
        said = f"{self.said} ({limit} shown)"
        return replace(self, rows=self.rows[:limit], tones=self.tones[:limit], said=said)

    def _repr_html_(self) -> str:
        return f'<div style="line-height:1.4">{super()._repr_html_()}</div>'

    def _row_attributes(self, number: int) -> str:
        return _tone(self.tones[number]) if self.tones else ""


def _tone(tone: str) -> str:
    kind, _, more = tone.partition(" ")
    colour = KIND_TONES.get(kind)
    if colour is None:
        return ""
    struck = ";text-decoration:line-through" if more == RETRACTED else ""
    return f' style="background:rgba({colour},.18);box-shadow:inset 3px 0 rgb({colour}){struck}"'


@dataclass(frozen=True)
class Code:
    """Text as it is, such as SQL."""

    text: str

    def _repr_html_(self) -> str:
        return f'<pre style="{_PRE}">{html.escape(self.text)}</pre>'

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Heading:
    """The name of what follows."""

    text: str

    def _repr_html_(self) -> str:
        return f'<div style="font-weight:600;margin:8px 0 2px;line-height:1.4">{html.escape(self.text)}</div>'

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Failure:
    """An error in a few words: what happened and what to do."""

    message: str
    hint: str = ""

    @classmethod
    def of(cls, error: LakeError) -> Failure:
        """Returns what is shown of an error."""
        return cls(error.message, error.hint)

    def _repr_html_(self) -> str:
        mono = ";font-family:var(--jp-code-font-family,monospace)" if "\n" in self.message else ""
        hint = f'<div style="{_SMALL}">{html.escape(self.hint)}</div>' if self.hint else ""
        return (
            f'<div role="alert" style="{_ERROR}"><div style="font-size:95%{mono}">'
            f"{html.escape(self.message)}</div>{hint}</div>"
        )

    def __repr__(self) -> str:
        return f"{self.message}\nHint: {self.hint}" if self.hint else self.message


def rows(columns: Sequence[str], values: Sequence[Sequence[Any]], said: str = "", **more: Any) -> Rows:
    """Returns a table that is shown whole."""
    return Rows(columns=columns, rows=values, more=False, seconds=0.0, said=said, **more)


def facts(values: dict[str, Any]) -> Rows:
    """Returns a table of names and values; those that are None are left out."""
    return rows(["", ""], [[name, value] for name, value in values.items() if value is not None])


def bar(share: float) -> str:
    """Draws a share from 0 to 1 in characters, which every page shows."""
    full = round(max(0.0, min(share, 1.0)) * _BAR_CELLS)
    return "█" * full + "░" * (_BAR_CELLS - full)


def shown_of(shown: int, total: int, what: str) -> str:
    """Says how many of all are shown."""
    return counted(total, what) if shown == total else f"{shown:,} of {counted(total, what)} shown"


def local(value: Any) -> Any:
    """Returns a time as SQL shows it: that of the session, without its zone."""
    return value.replace(tzinfo=None) if getattr(value, "tzinfo", None) is not None else value


def as_html(parts: Sequence[Part]) -> str:
    """Returns the parts as one piece of HTML."""
    return f'<div class="lakekit-static" style="line-height:1.4">{"".join(part._repr_html_() for part in parts)}</div>'


def as_text(parts: Sequence[Part]) -> str:
    """Returns the parts as plain text."""
    return "\n".join(repr(part) for part in parts)


__all__ = [
    "KIND_TONES", "RETRACTED", "Code", "Failure", "Heading", "Note", "Part", "Rows", "as_html", "as_text", "bar",
    "facts", "fetch", "local", "rows", "shown_of",
]  # fmt: skip
