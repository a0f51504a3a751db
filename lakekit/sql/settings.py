"""SET and RESET of lakekit's options for the session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakekit.errors import InvalidOptionError
from lakekit.options import OPTIONS, PREFIX
from lakekit.properties import PREFIXES, canonical_name
from lakekit.sql import frames
from lakekit.sql.context import Context
from lakekit.sql.lexer import string_value
from lakekit.sql.statement import Statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PREFIX = "|".join(re.escape(p) for p in PREFIXES)
_SET = re.compile(rf"SET\s+`?((?:{_PREFIX})[\w.\-]+)`?\s*(?:=\s*(.*))?\Z", re.IGNORECASE | re.DOTALL)
_RESET = re.compile(rf"RESET\s+`?((?:{_PREFIX})[\w.\-]+)`?\s*\Z", re.IGNORECASE)


def change(context: Context, statement: Statement) -> DataFrame | None:
    """Runs SET and RESET of an option of lakekit; None for Spark's own.

    Raises:
        InvalidOptionError: for an unknown option, one that only a table can have, or a bad value.
    """
    reset = _RESET.match(statement.text)
    if reset is not None:
        stored = _stored(reset[1])
        context.settings.pop(stored, None)
        return _shown(context, stored)
    given = _SET.match(statement.text)
    if given is None:
        return None
    stored = _stored(given[1])
    if given[2] is not None:
        text = given[2].strip()
        value = string_value(text) if text[:1] in "'\"" and len(text) > 1 else text
        context.settings[stored] = OPTIONS[stored.removeprefix(PREFIX)].checked(value) or value
    return _shown(context, stored)


def _stored(name: str) -> str:
    stored = canonical_name(name)
    options = [f"{PREFIX}{option.name}" for option in OPTIONS.values() if option.hint]
    if stored not in options:
        raise InvalidOptionError(
            f"Option '{name}' cannot be set for a session.",
            f"Set it on a table. For a session there are: {', '.join(sorted(options))}.",
        )
    return stored


def _shown(context: Context, stored: str) -> DataFrame:
    value = context.settings.get(stored, OPTIONS[stored.removeprefix(PREFIX)].default)
    return frames.texts(context, {"key": [stored], "value": [value or "<undefined>"]})
