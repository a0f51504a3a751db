"""The options of ``%%lakesql``: everything on the magic's own line, and nothing in the SQL.

The line is scanned here and not by an argument parser, because on a line magic SQL follows the options:
``->``, ``--`` and quotes in it are SQL, never options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lakekit.errors import InvalidOptionError, QueryError

DEFAULT_LIMIT = 20
"""Rows a cell shows unless ``--limit`` says otherwise."""

CHART_LIMIT = 5_000
"""Rows a chart is drawn of unless ``--limit`` says otherwise."""

DISPLAYS = ("table", "plain", "json", "none")
CHARTS = ("bar", "line", "area", "scatter")
MODES = ("file", "log")

OPTIONS = {
    "--into": "NAME: put the result into this variable as a Spark DataFrame instead of showing it",
    "--limit": f"N: show at most N rows ({DEFAULT_LIMIT}; for a chart {CHART_LIMIT:,})",
    "--param": "NAME=VALUE: a value for :NAME in the SQL, before the notebook's variables",
    "--display": "table|plain|json|none: show rows as a table, as text, as JSON, or only say how many there are",
    "--chart": "bar|line|area|scatter: draw the numbers over the first column",
    "--explain": "show which partitions, buckets and files the query skips and reads; it does not run",
    "--timeout": "SECONDS: cancel the statement after that time",
    "--at": "VERSION|TIMESTAMP: read the lake's tables as they were, unless the SQL says at which version itself",
    "--mode": "file|log: where to read tables that have a log, for this cell",
}
"""Each option and its one-line help."""

CHOICES = {"--display": DISPLAYS, "--chart": CHARTS, "--mode": MODES}
"""The values of the options that have a few."""

FLAGS = ("--explain",)
"""The options without a value."""

_TARGET = re.compile(r"\s*([A-Za-z_]\w*)\s*<<(?=\s|$)")
_OPTION = re.compile(r"\s*(--[A-Za-z][\w-]*)(?:=|\s+|$)")
_VALUE = re.compile(r"""\s*("[^"]*"|'[^']*'|[^\s"']\S*)""")
_PARAM = re.compile(r"""\s*([A-Za-z_]\w*)=("[^"]*"|'[^']*'|[^\s"']\S*)?""")
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}

Display = Literal["table", "plain", "json", "none"]
Chart = Literal["bar", "line", "area", "scatter"]


@dataclass(frozen=True)
class Options:
    """What the magic's line asked for.

    Attributes:
        into: the variable for the result.
        limit: rows to show at most.
        params: values of parameters.
        display: how rows are shown.
        chart: what is drawn of them.
        explain: whether to tell what is skipped instead of running.
        timeout: seconds after which the statement is cancelled.
        at: the version, or the time as text, at which tables are read.
        mode: the read mode.
    """

    into: str | None = None
    limit: int = DEFAULT_LIMIT
    params: Mapping[str, Any] = field(default_factory=dict)
    display: Display = "table"
    chart: Chart | None = None
    explain: bool = False
    timeout: float | None = None
    at: int | str | None = None
    mode: str | None = None


def parse_line(line: str) -> tuple[Options, str]:
    """Reads the options at the start of a magic's line.

    Args:
        line: the text after ``%%lakesql`` or ``%lakesql``.

    Returns:
        The options, and the rest of the line, which is SQL.

    Raises:
        InvalidOptionError: if an option is unknown, has no value, or a value it cannot have.
    """
    given: dict[str, Any] = {}
    params: dict[str, Any] = {}
    position = 0
    target = _TARGET.match(line)
    if target:
        given["into"], position = target[1], target.end()
    while option := _OPTION.match(line, position):
        name, position = option[1], option.end()
        if name not in OPTIONS:
            raise InvalidOptionError.unknown(name, OPTIONS)
        if name in FLAGS:
            given[name[2:]] = True
            continue
        match = (_PARAM if name == "--param" else _VALUE).match(line, position)
        if match is None:
            raise _no_value(name, line[position:].strip())
        if name == "--param":
            params[match[1]] = _literal(match[2] or "")
        else:
            given[name[2:]] = _READERS[name](name, _unquoted(match[1]))
        position = match.end()
    if "chart" in given:
        given.setdefault("limit", CHART_LIMIT)
    return Options(params=params, **given), line[position:].strip()


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


def _no_value(name: str, rest: str) -> InvalidOptionError:
    if name == "--param":
        return InvalidOptionError.bad_value(name, rest, "NAME=VALUE, as in --param day=8")
    return InvalidOptionError(f"Option '{name}' has no value.", f"{name} {OPTIONS[name]}.")


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


def _identifier(option: str, text: str) -> str:
    if not text.isidentifier():
        raise InvalidOptionError.bad_value(option, text, "the name of a Python variable")
    return text


def _count(option: str, text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,6}", text):
        raise InvalidOptionError.bad_value(option, text, "a whole number of rows from 1 to 9999999")
    return int(text)


def _seconds(option: str, text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text) or float(text) == 0:
        raise InvalidOptionError.bad_value(option, text, "a number of seconds above 0")
    return float(text)


def _moment(_: str, text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _one_of(words: tuple[str, ...]) -> Callable[[str, str], str]:
    def read(option: str, text: str) -> str:
        if text.lower() not in words:
            raise InvalidOptionError.bad_value(option, text, f"{', '.join(words[:-1])} or {words[-1]}")
        return text.lower()

    return read


_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "--into": _identifier,
    "--limit": _count,
    "--timeout": _seconds,
    "--at": _moment,
    **{name: _one_of(words) for name, words in CHOICES.items()},
}
