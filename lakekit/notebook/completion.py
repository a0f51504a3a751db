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
from lakekit.notebook.options import CHOICES, FLAGS, OPTIONS
from lakekit.notebook.sql_completion import Found, complete_sql, complete_table
from lakekit.notebook.verbs import VERBS

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_IDENTIFIER = "lakekit"
_CELL = re.compile(r"\s*%%lakesql\b[^\n]*")
_LINE = re.compile(r"^(?:\s*|.*=\s*)%(?P<magic>lake\w*)\s+(?P<rest>.*)$")
_TARGET = re.compile(r"\s*[A-Za-z_]\w*\s*<<\s")
_OPTION = re.compile(r"\s*(--[\w-]+)(?:=|\s+)")
_VALUE = re.compile(r"""("[^"]*"|'[^']*'|[^\s"']\S*)\s+""")
_OPTION_TYPED = re.compile(r"(?<!\S)--[\w-]*$")
_VALUE_TYPED = re.compile(r"(?<!\S)(--[\w-]+)(?:=|\s+)(\w*)$")
_LAST_WORD = re.compile(r"[\w.`]*$")
_VALUE_TYPES = ("bool", "bytes", "date", "datetime", "Decimal", "float", "int", "list", "str", "timedelta")


def register(shell: InteractiveShell) -> None:
    """Adds the matcher to a running IPython; a second time changes nothing."""
    matchers = shell.Completer.custom_matchers
    if not any(getattr(matcher, "matcher_identifier", "") == _IDENTIFIER for matcher in matchers):
        matchers.append(_matcher_for(shell))


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
    rest = line["rest"]
    if line["magic"] != "lakesql":
        return _verb(f"mode {rest}" if line["magic"] == "lakemode" else rest)
    start = _end_of_options(rest)
    if rest[start:].startswith("--"):
        return _option(rest)
    after = context.line_with_cursor[context.cursor_position :]
    return _sql(rest[start:] + after, len(rest) - start, variables)


def _end_of_options(line: str) -> int:
    """Returns where behind the whole options of a magic's line its SQL begins, or an unfinished option."""
    target = _TARGET.match(line)
    position = target.end() if target else 0
    while option := _OPTION.match(line, position):
        end = option.end()
        if option[1] not in FLAGS:
            value = _VALUE.match(line, end)
            if value is None:
                break
            end = value.end()
        position = end
    return position + len(line[position:]) - len(line[position:].lstrip())


def _option(before: str) -> tuple[str, list[Found]]:
    """Finds options, and the values of one that has a few, on a line that holds options alone."""
    if (value := _VALUE_TYPED.search(before)) and value[1] not in FLAGS:
        return value[2], [(c, "value") for c in CHOICES.get(value[1], ()) if c.startswith(value[2])]
    option = _OPTION_TYPED.search(before)
    if option is None and not before.endswith(" "):
        return "", []
    fragment = option[0] if option else ""
    return fragment, [(name, "option") for name in OPTIONS if name.startswith(fragment)]


def _verb(rest: str) -> tuple[str, list[Found]]:
    """Finds what may follow on the line of ``%lake``: verbs, then what the verb takes."""
    name, *before = rest.split(" ") if rest else [""]
    if not before:
        return name, [(verb, "verb") for verb in VERBS if verb.startswith(name)]
    parser = VERBS[name].parser
    if option := _OPTION_TYPED.search(rest):
        return option[0], [(o, "option") for o in parser._option_string_actions if o.startswith(option[0])]
    word = _LAST_WORD.search(rest)
    fragment = word[0] if word else ""
    given = [each for each in before[:-1] if each and not each.startswith("--")]
    places = [action for action in parser._actions if not action.option_strings]
    if len(given) >= len(places):
        return "", []
    place, lake = places[len(given)], listing.current_lake()
    if place.choices:
        return fragment, [(c, "value") for c in place.choices if c.startswith(fragment)]
    if place.dest == "table" and lake is not None:
        return complete_table(lake, fragment)
    if place.dest == "database" and lake is not None:
        return fragment, [(d, "database") for d in listing.databases(lake) if d.startswith(fragment.lower())]
    return "", []


def _sql(text: str, cursor: int, variables: Mapping[str, Any]) -> tuple[str, list[Found]]:
    return complete_sql(listing.current_lake(), text, cursor, _bindable(variables))


def _bindable(variables: Mapping[str, Any]) -> Iterable[str]:
    """Yields the names of the notebook's variables that SQL can take as ``:name``."""
    for name, value in variables.items():
        if name[0] != "_" and (
            value is None or type(value).__name__ in _VALUE_TYPES or hasattr(value, "item")
        ):
            yield name
