"""Replays a changelog as a strict reader would."""

from __future__ import annotations


def replay(changes, key=("id",)):
    """Returns the rows that (kind, row) pairs lead to, and fails at the first that cannot be.

    +I only if the row is absent, -U and -D carry the row that is there, +U comes only after its -U.
    """
    rows, open_updates = {}, set()
    for kind, row in changes:
        place = tuple(row[c] for c in key)
        if kind == "+I":
            assert place not in rows, f"+I of a row that is there: {row}"
            assert place not in open_updates, f"+I between -U and +U: {row}"
            rows[place] = row
        elif kind == "+U":
            assert place in open_updates, f"+U without its -U: {row}"
            open_updates.remove(place)
            rows[place] = row
        else:
            assert rows.pop(place, None) == row, f"{kind} of another row than is there: {row}"
            if kind == "-U":
                open_updates.add(place)
    assert not open_updates, f"-U without its +U: {open_updates}"
    return rows


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
