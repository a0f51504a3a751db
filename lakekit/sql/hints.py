"""``/*+ OPTIONS('key' = 'value') */`` behind a table's name, and the session's defaults for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakekit.errors import InvalidOptionError
from lakekit.options import PREFIX
from lakekit.properties import PREFIXES, TableOptions, normalise_hints
from lakekit.sql.lexer import tokenize
from lakekit.sql.parse import Cursor

if TYPE_CHECKING:
    from lakekit.table.table import Table

_TIME_TRAVEL = {"versionasof": "version", "timestampasof": "timestamp"}
_OF_LOGS = (f"{PREFIX}read.mode", f"{PREFIX}emit.mode")
_CHANGES = {"since": "since", "until": "until"}


@dataclass(frozen=True)
class Options:
    """Options of one reference to a table.

    Attributes:
        version: version to read.
        timestamp: time to read at.
        since: first version of `$changes`.
        until: last version of `$changes`.
        table: the table's options with these applied.
    """

    table: TableOptions
    version: int | None = None
    timestamp: str | None = None
    since: int | None = None
    until: int | None = None


def parse_hint(text: str) -> dict[str, str]:
    """Returns the properties of ``/*+ OPTIONS(…) */``.

    Raises:
        SyntaxAt: if it cannot be read.
    """
    cursor = Cursor(tokenize(text[3:-2]))
    cursor.expect("OPTIONS")
    return cursor.properties()


def resolve(
    given: Mapping[str, str], settings: Mapping[str, str], table: Table, *, changes: bool = False
) -> Options:
    """Checks the options of a reference.

    Args:
        given: properties of the hint.
        settings: the session's options, under stored names; the hint goes before them.
        table: the table.
        changes: whether the reference is to the table's changes.

    Raises:
        InvalidOptionError: for an option that does not exist, a value it cannot have, or one the table cannot serve.
    """
    values: dict[str, str] = {}
    hints: dict[str, str] = {}
    for key, value in given.items():
        bare = next((key[len(p) :] for p in PREFIXES if key.lower().startswith(p)), key).lower()
        own = {**_TIME_TRAVEL, **(_CHANGES if changes else {})}
        if bare in own:
            values[own[bare]] = value
        else:
            hints[key] = value
    configuration = table.snapshot().configuration
    defaults = {k: v for k, v in settings.items() if k.startswith(PREFIX)}
    if not TableOptions.from_configuration(configuration).log_store_enabled:
        # What the session says about logs is for the tables that have one.
        defaults = {k: v for k, v in defaults.items() if k not in _OF_LOGS}
    checked = normalise_hints({**defaults, **hints}, configuration)
    numbers = {k: _version(k, v) for k, v in values.items() if k != "timestamp"}
    options = TableOptions.from_configuration({**configuration, **checked})
    return Options(options, timestamp=values.get("timestamp"), **numbers)


def _version(name: str, text: str) -> int:
    if not text.strip().isdigit():
        raise InvalidOptionError.bad_value(
            f"{name}AsOf" if name == "version" else name, text, "a version number"
        )
    return int(text)
