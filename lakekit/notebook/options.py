"""The options of ``%%lakesql``: everything on the magic's own line, and nothing in the SQL.

The line is scanned here and not by an argument parser, because on a line magic SQL follows the options:
``->``, ``--`` and quotes in it are SQL, never options.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakekit.errors import InvalidOptionError, QueryError

DEFAULT_LIMIT = 20
"""Rows a cell shows unless ``--limit`` says otherwise."""

OPTIONS = {
    "--into": "NAME: put the result into this variable as a Spark DataFrame instead of showing it",
    "--limit": "N: show at most N rows (20)",
    "--param": "NAME=VALUE: a value for :NAME in the SQL, before the notebook's variables",
}
"""Each option and its one-line help."""

_TARGET = re.compile(r"\s*([A-Za-z_]\w*)\s*<<(?=\s|$)")
_OPTION = re.compile(r"\s*(--[A-Za-z][\w-]*)(?:=|\s+|$)")
_VALUE = re.compile(r"""\s*("[^"]*"|'[^']*'|[^\s"']\S*)""")
_PARAM = re.compile(r"""\s*([A-Za-z_]\w*)=("[^"]*"|'[^']*'|[^\s"']\S*)?""")
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class Options:
    """What the magic's line asked for."""

    into: str | None = None
    limit: int = DEFAULT_LIMIT
    params: Mapping[str, Any] = field(default_factory=dict)


def parse_line(line: str) -> tuple[Options, str]:
    """Reads the options at the start of a magic's line.

    Args:
        line: the text after ``%%lakesql`` or ``%lakesql``.

    Returns:
        The options, and the rest of the line, which is SQL.

    Raises:
        InvalidOptionError: if an option is unknown, has no value, or a value it cannot have.
    """
    into: str | None = None
    limit = DEFAULT_LIMIT
    params: dict[str, Any] = {}
    position = 0
    target = _TARGET.match(line)
    if target:
        into, position = target[1], target.end()
    while option := _OPTION.match(line, position):
        name, position = option[1], option.end()
        if name == "--param":
            match = _PARAM.match(line, position)
            if match is None:
                raise InvalidOptionError.bad_value(
                    name, line[position:].strip(), "NAME=VALUE, as in --param day=8"
                )
            params[match[1]] = _literal(match[2] or "")
        elif name in OPTIONS:
            match = _VALUE.match(line, position)
            if match is None:
                raise InvalidOptionError(f"Option '{name}' has no value.", f"{name} {OPTIONS[name]}.")
            if name == "--into":
                into = _identifier(_unquoted(match[1]))
            else:
                limit = _count(_unquoted(match[1]))
        else:
            raise InvalidOptionError.unknown(name, OPTIONS)
        position = match.end()
    return Options(into, limit, params), line[position:].strip()


def parse_cell(line: str, cell: str) -> tuple[Options, str]:
    """Reads the options of a cell magic, whose SQL is in the lines below.

    Raises:
        InvalidOptionError: as `parse_line`.
        QueryError: if the line holds more than options.
    """
    options, rest = parse_line(line)
    if rest:
        raise QueryError(
            f"'{rest}' stands on the line of %%lakesql, which holds only options.",
            "Put the SQL in the lines below it.",
        )
    return options, cell


def _literal(text: str) -> Any:
    """Reads ``8``, ``1.5``, ``true`` and ``null`` as SQL would; all else, and all in quotes, is a string."""
    if _unquoted(text) != text:
        return _unquoted(text)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if re.fullmatch(r"[+-]?(0|[1-9]\d*)", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?", text):
        return float(text)
    return text


def _unquoted(text: str) -> str:
    return text[1:-1] if text[:1] in ("'", '"') else text


def _identifier(text: str) -> str:
    if not text.isidentifier():
        raise InvalidOptionError.bad_value("--into", text, "the name of a Python variable")
    return text


def _count(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,6}", text):
        raise InvalidOptionError.bad_value("--limit", text, "a whole number of rows from 1 to 9999999")
    return int(text)
