"""Table options: their names, values, defaults, and what fits together.

Options are accepted bare or with one of the prefixes in `PREFIXES` and stored as ``lake.<name>`` in the
table's configuration. Options named ``delta.*`` belong to Delta Lake; those that would change the table's
protocol are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from lakekit.errors import InvalidOptionError, UnsupportedTableError
from lakekit.options import DELTA_OPTIONS, DELTA_PROTOCOL, OPTIONS, PREFIX, SECRET, Option, size_in_bytes

PREFIXES = (PREFIX, "arctic.", "mixed-format.")
"""Prefixes under which an option is accepted; the first is the one it is stored with."""

FORMAT_VERSION = "lake.format-version"
PRIMARY_KEY = "lake.primary-key"
BUCKET = "lake.bucket"
EXPECTED_ROWS = "lake.expected-rows"
SEQUENCE_FIELD = "lake.sequence.field"
SUPPORTED_FORMAT = 1

_SET_BY_LAKEKIT = {
    "format-version": "lakekit sets it",
    "primary-key": "give PRIMARY KEY (...) in SQL or primary_key=[...] in Python when the table is created",
}


def canonical_name(name: str) -> str:
    """Returns the name an option is stored with: ``lake.<name>``, or ``delta.<name>`` in Delta's spelling.

    Raises:
        InvalidOptionError: if there is no such option, or if it looks like a secret.
    """
    _refuse_secret(name)
    if name.lower().startswith("delta."):
        return _canonical_delta(name)
    bare = next((name[len(p) :] for p in PREFIXES if name.lower().startswith(p)), name).lower()
    if bare in _SET_BY_LAKEKIT:
        raise InvalidOptionError(f"Option '{name}' cannot be set.", f"Instead, {_SET_BY_LAKEKIT[bare]}.")
    if bare not in OPTIONS:
        raise InvalidOptionError.unknown(name, OPTIONS)
    return PREFIX + bare


def _canonical_delta(name: str) -> str:
    if DELTA_PROTOCOL.match(name):
        raise InvalidOptionError(
            f"Option '{name}' cannot be set: it would change what readers and writers must support.",
            "Leave it out; lakekit chooses the table's protocol.",
        )
    known = {key.lower(): key for key in DELTA_OPTIONS}
    if name.lower() not in known:
        raise InvalidOptionError.unknown(name, DELTA_OPTIONS)
    return known[name.lower()]


def _refuse_secret(name: str) -> None:
    if SECRET.search(name.lower()):
        raise InvalidOptionError(
            f"Option '{name}' is a secret, and everybody who can read a table can read its properties.",
            "Keep it in an environment variable or a secret store, and refer to it from the session:"
            " lakekit.connect(config={...}).",
        )


def _checked_value(stored: str, value: object) -> str:
    if stored in DELTA_OPTIONS:
        allowed, parse = DELTA_OPTIONS[stored]
        return Option(stored, None, allowed, "", parse).checked(value)
    return OPTIONS[stored.removeprefix(PREFIX)].checked(value)


def normalise(
    properties: Mapping[str, object],
    existing: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Checks properties that a user gives a table and returns them as they are stored.

    Args:
        properties: names, bare or prefixed, and values (texts, numbers or booleans).
        existing: configuration of the table if it exists; options fixed at creation cannot be changed then.
        defaults: configuration that a new table has unless the properties say otherwise.

    Returns:
        The given properties only, under canonical names.

    Raises:
        InvalidOptionError: for an unknown option, a bad value, a secret, a changed fixed option, or options
            that, together with those of the table, do not fit together.
    """
    result: dict[str, str] = {}
    for name, value in properties.items():
        stored = canonical_name(name)
        text = _checked_value(stored, value)
        if result.get(stored, text) != text:
            raise InvalidOptionError(
                f"Option '{name}' is given twice, as {result[stored]!r} and {text!r}.", "Give it once."
            )
        if existing is not None:
            _check_not_fixed(stored, text, existing)
        result[stored] = text
    _check_together({**(existing or defaults or {}), **result})
    return result


def _check_not_fixed(stored: str, text: str | None, existing: Mapping[str, str]) -> None:
    option = OPTIONS.get(stored.removeprefix(PREFIX))
    if option is not None and option.fixed and existing.get(stored) != text:
        raise InvalidOptionError(
            f"Option '{option.name}' is {existing.get(stored, 'not set')} and cannot be changed any more.",
            "Create a new table with the other value and copy the rows: CREATE TABLE ... AS SELECT.",
        )
    if PRIMARY_KEY in existing and stored in _KEYED_NEEDS:
        _check_keyed({stored: text if text is not None else "false"})


def check_removal(names: Iterable[str], existing: Mapping[str, str]) -> set[str]:
    """Returns the stored names of options to remove from a table.

    Raises:
        InvalidOptionError: for an unknown option, one that is fixed, or one that others still need.
    """
    stored = {canonical_name(name) for name in names}
    for name in stored & existing.keys():
        _check_not_fixed(name, None, existing)
    _check_together({k: v for k, v in existing.items() if k not in stored})
    return stored


_KEYED_NEEDS = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.appendOnly": "false",
}


def _check_keyed(configuration: Mapping[str, str]) -> None:
    for name, needed in _KEYED_NEEDS.items():
        if configuration.get(name, needed) != needed:
            raise InvalidOptionError(
                f"Option '{name}' must be {needed} for a table with a primary key.",
                "Leave it out, or create the table without a primary key.",
            )


def _check_together(configuration: Mapping[str, str]) -> None:
    options = TableOptions.from_configuration(configuration)
    if PRIMARY_KEY in configuration:
        _check_keyed(configuration)
    if options.log_store_enabled:
        for name in ("topic", "address"):
            if PREFIX + f"log-store.{name}" not in configuration:
                raise InvalidOptionError(
                    f"Option 'log-store.enabled' is true, but 'log-store.{name}' is missing.",
                    f"Add 'log-store.{name}' = {OPTIONS[f'log-store.{name}'].allowed}, or leave the log off.",
                )
    elif "log" in options.emit_mode.split(","):
        raise InvalidOptionError(
            f"Option 'emit.mode' is '{options.emit_mode}', but the table has no log.",
            "Set 'log-store.enabled', 'log-store.topic' and 'log-store.address', or use emit.mode 'file'.",
        )
    _check_reader(options)


def _check_reader(options: TableOptions) -> None:
    if (
        options.log_store_consistency_guarantee_enabled
        and options.log_consumer_changelog_modes == "append-only"
    ):
        raise InvalidOptionError(
            "Option 'log.consumer.changelog.modes' = 'append-only' does not go with"
            " 'log-store.consistency-guarantee.enabled' = 'true', because retracted rows arrive as deletes.",
            "Use 'all-kinds', or turn the guarantee off.",
        )
    for mode, needed in (("timestamp", "timestamp_millis"), ("specific-offsets", "specific_offsets")):
        if options.scan_startup_mode == mode and getattr(options, f"scan_startup_{needed}") is None:
            name = f"scan.startup.{needed.replace('_', '-')}"
            raise InvalidOptionError(
                f"Option 'scan.startup.mode' is '{mode}', but '{name}' is missing.",
                f"Add '{name}' = {OPTIONS[name].allowed}.",
            )


def normalise_hints(options: Mapping[str, object], configuration: Mapping[str, str]) -> dict[str, str]:
    """Checks the options of one statement (``/*+ OPTIONS(...) */``) against those of its table.

    Returns:
        The given options, under the names they would be stored with.

    Raises:
        InvalidOptionError: for an unknown option, one that only a table can have, a bad value, or options
            that do not fit together.
    """
    result: dict[str, str] = {}
    hints = {name: option for name, option in OPTIONS.items() if option.hint}
    for name, value in options.items():
        bare = canonical_name(name).removeprefix(PREFIX)
        if bare not in hints:
            raise InvalidOptionError(
                f"Option '{name}' cannot be given for one statement.",
                f"Set it on the table. For a statement there are: {', '.join(sorted(hints))}.",
            )
        result[PREFIX + bare] = hints[bare].checked(value)
    merged = {**configuration, **result}
    effective = TableOptions.from_configuration(merged)
    if effective.read_mode == "log" and not effective.log_store_enabled:
        raise InvalidOptionError(
            "Option 'read.mode' is 'log', but the table has no log.",
            "Read with read.mode 'file', or turn the log on with 'log-store.enabled'.",
        )
    _check_together(merged)
    return result


@dataclass(frozen=True)
class TableOptions:
    """The options of a table, typed, with defaults; field names are option names with ``_``."""

    bucket: int | None
    expected_rows: int | None
    sequence_field: str | None
    target_file_size: int
    compaction_auto: bool
    compaction_num_runs: int
    compaction_size_amplification_percent: int
    compaction_size_ratio: int
    compaction_deleted_ratio: float
    log_store_enabled: bool
    log_store_type: str
    log_store_topic: str | None
    log_store_address: str | None
    log_store_partitions: int | None
    log_store_retention_ms: int | None
    log_store_data_format: str
    log_store_data_version: str
    log_store_consistency_guarantee_enabled: bool
    log_consumer_changelog_modes: str
    scan_startup_mode: str
    scan_startup_timestamp_millis: int | None
    scan_startup_specific_offsets: str | None
    emit_mode: str
    read_mode: str

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, str]) -> TableOptions:
        """Builds the typed view of a table's configuration; properties of others are ignored.

        Raises:
            InvalidOptionError: if an option holds a value it cannot have.
        """
        values: dict[str, Any] = {}
        types = {field.name: str(field.type) for field in fields(cls)}
        for option in OPTIONS.values():
            name = re.sub(r"[.-]", "_", option.name)
            given = configuration.get(option.stored_name)
            text = option.checked(given) if given is not None else option.default
            values[name] = _typed(text, name, types[name])
        return cls(**values)


def _typed(text: str | None, name: str, kind: str) -> Any:
    if text is None:
        return None
    if name == "target_file_size":
        return size_in_bytes(text)
    if kind == "bool":
        return text == "true"
    if kind == "float":
        return float(text)
    return int(text) if kind.startswith("int") else text


def parse_bucket(value: object) -> int:
    """Returns a bucket count that a user gave.

    Raises:
        InvalidOptionError: if it is no whole number, or below 1.
    """
    if isinstance(value, (bool, float)):
        raise InvalidOptionError.bad_value("bucket", value, OPTIONS["bucket"].allowed)
    return int(OPTIONS["bucket"].checked(value))


def primary_key_of(configuration: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the key columns that a table's configuration names, or an empty tuple."""
    return tuple(json.loads(configuration.get(PRIMARY_KEY, "[]")))


def check_format(table: str, configuration: Mapping[str, str]) -> None:
    """Checks that this version of lakekit knows the format of a table.

    Raises:
        UnsupportedTableError: if lakekit did not make the table, or a newer lakekit did.
    """
    text = configuration.get(FORMAT_VERSION)
    if text is None:
        raise UnsupportedTableError(
            f"Table {table} is a Delta table that lakekit did not make.",
            "Read it with plain Spark, or copy it: CREATE TABLE ... USING lake AS SELECT ...",
        )
    if not text.isdigit() or int(text) > SUPPORTED_FORMAT:
        raise UnsupportedTableError(
            f"Table {table} has format version {text}, this lakekit knows up to {SUPPORTED_FORMAT}.",
            "Upgrade lakekit.",
        )


def visible_properties(configuration: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties that users set, options without prefix; what lakekit sets itself is left out."""
    options = {option.stored_name: option.name for option in OPTIONS.values()}
    shown = {options[key]: value for key, value in configuration.items() if key in options}
    own = {**_KEYED_NEEDS, "delta.dataSkippingNumIndexedCols": "-1"}
    kept = {k: v for k, v in configuration.items() if k in DELTA_OPTIONS and own.get(k) != v}
    return dict(sorted({**shown, **kept}.items()))
