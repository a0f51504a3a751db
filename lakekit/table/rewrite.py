"""Writes computed from the table itself: UPDATE, and the rewriting of files for a wider column type."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lakekit.errors import ColumnNotFoundError, ConcurrentWriteError, InvalidOptionError
from lakekit.filestore.commit import Proposal
from lakekit.filestore.compaction import every_file
from lakekit.filestore.conflicts import Footprint, Isolation, Verdict
from lakekit.filestore.layout import OPERATION
from lakekit.names import BUCKET_COLUMN, quote
from lakekit.storage.actions import Action, Metadata
from lakekit.table import append
from lakekit.table.commit import Commit, Tally
from lakekit.table.maintenance import merge_units
from lakekit.table.write import MAX_ATTEMPTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.storage.snapshot import Snapshot
    from lakekit.table.table import Table


def update(
    table: Table, assignments: Mapping[str, str], where: str | None, params: Mapping[str, Any]
) -> Commit:
    """Sets columns of some rows; see `Table.update`.

    A change of a key column deletes the old key and inserts the new one.

    Raises:
        ColumnNotFoundError: if an assigned column does not exist.
    """
    by_column = _resolved(table, assignments)
    condition = f" WHERE {where}" if where else ""
    if not table.primary_key:
        listed = ", ".join(f"{quote(c)} = {e}" for c, e in by_column.items())
        return append.statement(table, f"UPDATE {table.relation()} SET {listed}{condition}", params)
    moves_keys = any(column in table.primary_key for column in by_column)

    def build(version: int) -> DataFrame:
        spark = table.lake.spark
        source = f"FROM {table.relation(version)} AS t{condition}"
        columns = [f"{by_column.get(f.name, quote(f.name))} AS {quote(f.name)}" for f in table.schema]
        new = spark.sql(f"SELECT {', '.join(columns)}, 'U' AS {OPERATION} {source}", args=dict(params))
        if not moves_keys:
            return new
        old = spark.sql(f"SELECT *, 'D' AS {OPERATION} {source}", args=dict(params)).drop(BUCKET_COLUMN)
        return old.unionByName(new)

    return table.apply_changes(build, operation="UPDATE")


def _resolved(table: Table, assignments: Mapping[str, str]) -> dict[str, str]:
    known = {f.name.lower(): f.name for f in table.schema}
    if not assignments:
        raise InvalidOptionError("UPDATE sets no column.", "Give at least one assignment.")
    resolved = {}
    for name, expression in assignments.items():
        if name.lower() not in known:
            raise ColumnNotFoundError.of(str(table.name), name, known.values())
        resolved[known[name.lower()]] = f"({expression})"
    return resolved


def rewrite_files(table: Table, change: Callable[[Snapshot], Metadata], operation: str) -> Commit:
    """Rewrites every file of a keyed table with the columns of new metadata, in one commit that changes no row.

    So a wider type needs no table feature that other readers may lack (delta-rs refuses `typeWidening`).

    Args:
        table: a keyed table.
        change: returns the new metadata for a snapshot; types may only become wider.
        operation: the name in the table's history.

    Raises:
        ConcurrentWriteError: if other writers changed the table every time.
    """
    started = time.monotonic()
    for _ in range(MAX_ATTEMPTS):
        snapshot = table.snapshot()
        metadata = change(snapshot)
        changed = snapshot.apply(snapshot.version, snapshot.timestamp, [metadata])
        tally = Tally.of(merge_units(table, changed, every_file(snapshot.files.values())))
        duration = int((time.monotonic() - started) * 1000)
        footprint = Footprint(Isolation.TABLE, frozenset(), frozenset(f.path for f in tally.removed))
        actions: list[Action] = [metadata, *tally.removed, *tally.added]
        outcome = table.commit(
            Proposal(snapshot.version, actions, footprint, operation, {}, tally.metrics(duration))
        )
        if outcome.verdict is Verdict.GO_ON:
            return tally.commit(outcome.version, operation, duration)
    raise ConcurrentWriteError(
        f"{operation} of table {table.name} met newer commits {MAX_ATTEMPTS} times.",
        "The table is unchanged; try again when fewer writers are at work.",
    )
