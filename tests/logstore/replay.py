"""Replays a changelog as a strict reader would."""

from __future__ import annotations

from tests.crash.changelog import Replay


def replay(changes):
    """Returns the rows by key that (kind, row) pairs lead to, and fails at the first that cannot be."""
    found = Replay()
    for kind, row in changes:
        found.feed(kind, row)
    return {(key,): row for key, row in found.ended().items()}


def logged(table, **options):
    """Returns the (kind, row) pairs that are in a table's log now, partition by partition."""
    columns = table.schema.names
    found = (
        table.read_log(**options).toArrow().to_pylist()
    )  # each topic partition is one of Spark's, in order
    return [(row["_change_kind"], {c: row[c] for c in columns}) for row in found]


def stored(table, key=("id",)):
    """Returns the rows of a table's files by key."""
    return {tuple(row[c] for c in key): row for row in table.to_df().toArrow().to_pylist()}
