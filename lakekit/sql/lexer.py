"""The tokens of Spark SQL, with the places where they stand in the text.

Statements are found and changed by spans of the text the user wrote, so that every expression reaches Spark letter by
letter. That asks for the exact places and for Spark's own rules of strings, comments and names, and for nothing more:
a text that is no SQL still has tokens, and Spark says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted identifier"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    HINT = "hint"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its span ``[start, end)`` in the text."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The word in upper case; empty for anything but a word."""
        return self.text.upper() if self.kind is Kind.WORD else ""

    @property
    def is_identifier(self) -> bool:
        """Whether it can be (part of) a name."""
        return self.kind is Kind.WORD or self.kind is Kind.QUOTED

    @property
    def name(self) -> str:
        """The identifier without its backticks."""
        return self.text[1:-1].replace("``", "`") if self.kind is Kind.QUOTED else self.text

    def at(self, symbol: str) -> bool:
        """Whether it is this symbol."""
        return self.kind is Kind.SYMBOL and self.text == symbol


# A '$' inside a word is no Spark, but names a system table such as orders$files.
_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<line>--(?:\\\n|[^\r\n])*)
  | (?P<comment>/\*)
  | (?P<string>[rR]'[^']*(?:'|\Z) | [rR]"[^"]*(?:"|\Z)
             | '(?:[^'\\]|\\.|'')*(?:'|\Z) | "(?:[^"\\]|\\.|"")*(?:"|\Z))
  | (?P<quoted>`(?:[^`]|``)*(?:`|\Z))
  | (?P<number>\d+\.\d*(?:[eE][+-]?\d+)?[a-zA-Z]* | (?<![\w`)\].])\.\d+(?:[eE][+-]?\d+)?[a-zA-Z]*
             | \d+[eE][+-]?\d+[a-zA-Z]* | \d+(?:[lLsSyYdDfF]|[bB][dD])?(?!\w))
  | (?P<word>\w+(?:\$\w+)?)
  | (?P<symbol><=>|<=|>=|<>|!=|==|=>|->|\|\||\|>|::|:=|.)
    """,
    re.VERBOSE | re.DOTALL,
)

_KINDS = {
    "string": Kind.STRING,
    "quoted": Kind.QUOTED,
    "number": Kind.NUMBER,
    "word": Kind.WORD,
    "symbol": Kind.SYMBOL,
}

_COMMENT_EDGE = re.compile(r"/\*|\*/")


def tokenize(text: str) -> list[Token]:
    """Returns the tokens of a text, without blanks and comments; hints ``/*+ … */`` are single tokens."""
    return list(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:  # the last alternative takes any character
            return
        group = match.lastgroup or ""
        end = match.end()
        if group == "comment":
            end = _comment_end(text, position)
            if text.startswith("/*+", position):
                yield Token(Kind.HINT, text[position:end], position, end)
        elif group in _KINDS:
            yield Token(_KINDS[group], match[0], position, end)
        position = end


def _comment_end(text: str, start: int) -> int:
    """Returns where the bracketed comment ends; comments nest, hints do not."""
    if text.startswith("/*+", start):
        end = text.find("*/", start)
        return len(text) if end < 0 else end + 2
    depth, position = 0, start
    while match := _COMMENT_EDGE.search(text, position):
        depth += 1 if match[0] == "/*" else -1
        position = match.end()
        if depth == 0:
            return position
    return len(text)


_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)


def string_value(literal: str) -> str:
    """Returns the text that a string literal stands for, by Spark's rules for escapes."""
    if literal[0] in "rR":
        return literal[2:-1]
    quote, body = literal[0], literal[1:-1]

    def unescape(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "uU" and len(code) > 1:
            return chr(int(code[1:], 16))
        if len(code) == 3:
            return chr(int(code, 8))
        # LIKE patterns need these two as they stand.
        return match[0] if code in "%_" else _ESCAPES.get(code, code)

    return _ESCAPE.sub(unescape, body.replace(quote * 2, quote))


_BLOCKS = {"BEGIN", "CASE", "IF", "WHILE", "LOOP", "REPEAT", "FOR"}
_STATEMENT_BLOCKS = _BLOCKS - {"BEGIN", "CASE"}
_BEFORE_STATEMENT = {"BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT"}


def split_spans(text: str) -> list[tuple[int, int]]:
    """Returns the spans of the statements of a text; a ``BEGIN … END`` script is one statement."""
    tokens = tokenize(text)
    spans: list[tuple[int, int]] = []
    first = 0
    while first < len(tokens):
        last = _statement_end(tokens, first)
        if last > first:
            spans.append((tokens[first].start, tokens[last - 1].end))
        first = last + 1
    return spans


def _statement_end(tokens: list[Token], first: int) -> int:
    """Returns the index of the `;` that ends the statement, or the number of tokens."""
    labelled = len(tokens) > first + 2 and tokens[first + 1].at(":") and tokens[first + 2].keyword == "BEGIN"
    is_script = tokens[first].keyword == "BEGIN" or labelled
    depth = 0
    index = first
    while index < len(tokens):
        token = tokens[index]
        if token.at(";") and depth == 0:
            return index
        if is_script:
            if token.keyword == "END":
                depth -= 1
                # The END of a block may name its kind, which opens no new one.
                if index + 1 < len(tokens) and tokens[index + 1].keyword in _BLOCKS:
                    index += 1
            elif _opens_block(tokens, index, first):
                depth += 1
        index += 1
    return index


def _opens_block(tokens: list[Token], index: int, first: int) -> bool:
    keyword = tokens[index].keyword
    if keyword not in _STATEMENT_BLOCKS:
        return keyword in _BLOCKS
    before = tokens[index - 1] if index > first else None
    return before is None or before.at(";") or before.at(":") or before.keyword in _BEFORE_STATEMENT


def split(text: str) -> list[str]:
    """Returns the statements of a text without the semicolons between them."""
    return [text[start:end] for start, end in split_spans(text)]
