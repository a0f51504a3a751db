"""Which tables can be read and written: the protocol versions and table features that are honoured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakekit.errors import UnsupportedTableError
from lakekit.storage.actions import Protocol

READER_FEATURES = frozenset(
    {
        "deletionVectors",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
    }
)
WRITER_FEATURES = READER_FEATURES | {
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "domainMetadata",
    "generatedColumns",
    "invariants",
}


def check_readable(
    protocol: Protocol, configuration: Mapping[str, str] | None = None, table: str = ""
) -> None:
    """Checks that every feature a reader must know is known here.

    Args:
        protocol: the table's protocol action.
        configuration: the table's properties, to tell whether a legacy feature is in use.
        table: name for the error message.

    Raises:
        UnsupportedTableError: if one is not; it names the feature.
    """
    if protocol.min_reader_version not in (1, 2, 3):
        raise _too_new(table, "read", f"reader version {protocol.min_reader_version}")
    _check_features(table, "read", protocol.reader_features or (), READER_FEATURES)
    if protocol.min_reader_version == 2 and _maps_columns(configuration or {}):
        raise _unknown_feature(table, "read", "columnMapping")


def check_writable(
    protocol: Protocol, configuration: Mapping[str, str] | None = None, table: str = ""
) -> None:
    """Checks that every feature a writer must honour is honoured here; see `check_readable`.

    Raises:
        UnsupportedTableError: if one is not; it names the feature.
    """
    check_readable(protocol, configuration, table)
    if protocol.min_writer_version not in (1, 2, 3, 4, 5, 6, 7):
        raise _too_new(table, "write", f"writer version {protocol.min_writer_version}")
    _check_features(table, "write", protocol.writer_features or (), WRITER_FEATURES)
    if protocol.min_writer_version in (5, 6) and _maps_columns(configuration or {}):
        raise _unknown_feature(table, "write", "columnMapping")
    if protocol.min_writer_version == 6:
        raise _unknown_feature(table, "write", "identityColumns")


def _maps_columns(configuration: Mapping[str, str]) -> bool:
    return configuration.get("delta.columnMapping.mode", "none").lower() != "none"


def _check_features(table: str, verb: str, features: Iterable[str], known: frozenset[str]) -> None:
    unknown = sorted(set(features) - known)
    if unknown:
        raise _unknown_feature(table, verb, *unknown)


def _unknown_feature(table: str, verb: str, *features: str) -> UnsupportedTableError:
    named = ", ".join(features)
    return UnsupportedTableError(
        f"lakekit cannot {verb} table {table}: it uses the Delta table feature(s) {named}.",
        f"Use Spark's own Delta support to {verb} it, or drop the feature with ALTER TABLE … DROP FEATURE.",
    )


def _too_new(table: str, verb: str, version: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"lakekit cannot {verb} table {table}: it needs Delta {version}.", "Use a newer lakekit."
    )
