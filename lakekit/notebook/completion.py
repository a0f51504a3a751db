"""Completion in ``%%lakesql`` cells, and on the lines of ``%lakesql`` and ``%lake…``.

It comes from the kernel, so every front end has it. IPython asks the matcher that `register` adds; nothing that goes
wrong in it may reach the person who types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from lakekit.notebook import listing
from lakekit.notebook.options import OPTIONS
from lakekit.notebook.sql_completion import Found, complete_sql, complete_table

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_CELL = re.compile(r"\s*%%lakesql\b[^\n]*")
_LINE = re.compile(r"^(?:\s*|.*=\s*)%(?P<magic>lake\w*)\s+(?P<rest>.*)$")
_OPTION = re.compile(r"(?<!\S)--[\w-]*$")
_OPTIONS_BEFORE = re.compile(
    r"(\s*[A-Za-z_]\w*\s*<<|\s*--[\w-]+(?:=|\s+)(?:\"[^\"]*\"|'[^']*'|[^\s\"']\S*))*\s*"
)
_LAST_WORD = re.compile(r"[\w$.`]*$")
_VALUE_TYPES = ("bool", "bytes", "date", "datetime", "Decimal", "float", "int", "list", "str", "timedelta")
_MODES = ("file", "log")


def register(shell: InteractiveShell) -> None:
    """Adds the matcher to a running IPython; a second time changes nothing."""
    matchers = shell.Completer.custom_matchers
    if not any(getattr(matcher, "matcher_identifier", "") == _IDENTIFIER for matcher in matchers):
        matchers.append(_matcher_for(shell))


_IDENTIFIER = "lakekit"


def _matcher_for(shell: InteractiveShell) -> Any:
    # Before IPython's own matchers, which then need not run: they would look for Python in SQL.
    @context_matcher(priority=100, identifier=_IDENTIFIER)
    def lakekit_matcher(context: CompletionContext) -> dict[str, Any]:
        try:
            fragment, found = _complete(context, shell.user_ns)
        except Exception:
            return {"completions": []}
        completions = [SimpleCompletion(text=text, type=kind) for text, kind in found]
        return {"completions": completions, "matched_fragment": fragment, "suppress": True, "ordered": True}

    return lakekit_matcher


def _complete(context: CompletionContext, variables: Mapping[str, Any]) -> tuple[str, list[Found]]:
    """Returns the text before the cursor that is replaced, and what may stand there."""
    lines = context.full_text.split("\n")
    before = "\n".join([*lines[: context.cursor_line], context.text_until_cursor])
    cell = _CELL.match(context.full_text)
    if cell is not None:
        if len(before) <= cell.end():
            return _option(before)
        return _sql(context.full_text[cell.end() :], len(before) - cell.end(), variables)
    line = _LINE.match(context.text_until_cursor)
    if line is None:
        return "", []
    if line["magic"] == "lakesql":
        if _OPTION.search(line["rest"]) and _OPTIONS_BEFORE.fullmatch(_OPTION.sub("", line["rest"])):
            return _option(line["rest"])
        after = context.line_with_cursor[context.cursor_position :]
        options = _OPTIONS_BEFORE.match(line["rest"])
        sql = line["rest"][options.end() if options else 0 :]
        return _sql(sql + after, len(sql), variables)
    return _other_magic(line["magic"], line["rest"])


def _option(before: str) -> tuple[str, list[Found]]:
    match = _OPTION.search(before)
    fragment = match[0] if match else ""
    if match is None and not before.endswith(" "):
        return "", []
    return fragment, [(name, "option") for name in OPTIONS if name.startswith(fragment)]


def _other_magic(magic: str, rest: str) -> tuple[str, list[Found]]:
    match = _LAST_WORD.search(rest)
    fragment = match[0] if match else ""
    if magic == "lakemode":
        return fragment, [(mode, "mode") for mode in _MODES if mode.startswith(fragment)]
    lake = listing.open_lake()
    return complete_table(lake, fragment) if lake is not None else (fragment, [])


def _sql(text: str, cursor: int, variables: Mapping[str, Any]) -> tuple[str, list[Found]]:
    return complete_sql(listing.open_lake(), text, cursor, _bindable(variables))


def _bindable(variables: Mapping[str, Any]) -> Iterable[str]:
    """Yields the names of the notebook's variables that SQL can take as ``:name``."""
    for name, value in variables.items():
        if name[0] != "_" and (
            value is None or type(value).__name__ in _VALUE_TYPES or hasattr(value, "item")
        ):
            yield name
