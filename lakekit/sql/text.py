"""SQL text that remembers where each part of it came from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Union

Part = Union[str, "SqlText"]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text with its place in what the user wrote.

    Attributes:
        text: the text.
        origin: where it begins in the user's text; None for text that stands for nothing there.
        verbatim: whether it is the user's own, so that its letters have places too.
    """

    text: str
    origin: int | None
    verbatim: bool


@dataclass(frozen=True)
class Edit:
    """Replaces the span ``[start, end)`` of a text."""

    start: int
    end: int
    replacement: Part


class SqlText:
    """SQL composed of the user's own text and of generated text.

    Spark reports errors by positions in the text it got; `origin` leads back to what the user wrote.
    """

    __slots__ = ("_pieces", "_text")

    def __init__(self, pieces: Iterable[_Piece] = ()) -> None:
        """Joins pieces; use `user`, `generated` or `join`."""
        self._pieces = tuple(p for p in pieces if p.text)
        self._text = "".join(p.text for p in self._pieces)

    @classmethod
    def user(cls, text: str, origin: int = 0) -> SqlText:
        """Returns what the user wrote, beginning at `origin` of the whole."""
        return cls([_Piece(text, origin, True)])

    @classmethod
    def generated(cls, text: str, origin: int | None = None) -> SqlText:
        """Returns generated text; errors in it are shown at `origin`."""
        return cls([_Piece(text, origin, False)])

    @classmethod
    def join(cls, parts: Iterable[Part], separator: str = "") -> SqlText:
        """Joins texts; plain strings are generated text."""
        pieces: list[_Piece] = []
        for index, part in enumerate(parts):
            if index and separator:
                pieces.append(_Piece(separator, None, False))
            pieces.extend(_as_text(part)._pieces)
        return cls(pieces)

    def __str__(self) -> str:
        return self._text

    def __len__(self) -> int:
        return len(self._text)

    def __add__(self, other: Part) -> SqlText:
        return SqlText([*self._pieces, *_as_text(other)._pieces])

    def __radd__(self, other: str) -> SqlText:
        return SqlText.generated(other) + self

    def span(self, start: int, end: int) -> SqlText:
        """Returns the text of ``[start, end)``."""
        pieces: list[_Piece] = []
        position = 0
        for piece in self._pieces:
            low, high = max(start - position, 0), min(end - position, len(piece.text))
            if low < high:
                origin = piece.origin
                if origin is not None and piece.verbatim:
                    origin += low
                pieces.append(_Piece(piece.text[low:high], origin, piece.verbatim))
            position += len(piece.text)
        return SqlText(pieces)

    def replace(self, edits: Sequence[Edit]) -> SqlText:
        """Returns the text with every span replaced; a plain replacement keeps the place of its span."""
        parts: list[Part] = []
        position = 0
        for edit in sorted(edits, key=lambda e: (e.start, e.end)):
            parts.append(self.span(position, edit.start))
            new = edit.replacement
            parts.append(SqlText.generated(new, self.origin(edit.start)) if isinstance(new, str) else new)
            position = edit.end
        parts.append(self.span(position, len(self._text)))
        return SqlText.join(parts)

    def origin(self, position: int) -> int | None:
        """Returns the place in the user's text of a position in this text, if it has one."""
        start = 0
        for piece in self._pieces:
            if start <= position < start + len(piece.text):
                if piece.origin is None or not piece.verbatim:
                    return piece.origin
                return piece.origin + position - start
            start += len(piece.text)
        if self._pieces and self._pieces[-1].verbatim:
            last = self._pieces[-1]
            return None if last.origin is None else last.origin + len(last.text)
        return None


def _as_text(part: Part) -> SqlText:
    return SqlText.generated(part) if isinstance(part, str) else part
