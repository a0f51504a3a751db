"""Decides what a predicate allows to leave unread: by partition, by bucket, by file statistics.

The one rule: nothing that holds a wanted row is ever skipped. What is not known, counts as wanted. Deletion
    vectors
need no care here: bounds that are not tight are still bounds.

`lakekit.skipping.rows` judges row groups and pages, for which the files themselves are read, by the same
rules.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from lakekit.skipping.predicate import (
    And,
    Anything,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Or,
    Predicate,
    StartsWith,
    conjuncts,
)
from lakekit.skipping.values import (
    NO_VALUES,
    UNKNOWN,
    Bounds,
    Column,
    Columns,
    Interval,
    Unusable,
    arrow_type,
    bounds_of,
    interval,
    partition_bounds,
)
from lakekit.storage.actions import AddFile
from lakekit.storage.murmur3 import bucket_of
from lakekit.storage.snapshot import Snapshot

MAX_KEYS = 100_000
"""Combinations of key values up to which buckets are computed; beyond, all buckets are likely wanted."""

Step = Literal["partition", "bucket", "file statistics"]

Lookup = Callable[[Column], Bounds]
"""Tells what is known of a column in the rows that are judged."""


@dataclass(frozen=True)
class Leaf:
    """A predicate on one column, ready to be judged.

    Attributes:
        column: the column.
        predicate: what is asked of it.
        intervals: the values of a comparison, or those of IN sorted.
    """

    column: Column
    predicate: Comparison | In | IsNull | IsNotNull | StartsWith
    intervals: tuple[Interval, ...] = ()

    def may_match(self, bounds: Bounds) -> bool:
        """Tells whether a row within the bounds may be wanted."""
        predicate = self.predicate
        if isinstance(predicate, IsNull):
            return bounds.nulls is not False
        if isinstance(predicate, IsNotNull):
            return not bounds.only_nulls
        if bounds.only_nulls:
            return False
        if isinstance(predicate, StartsWith):
            return _may_start_with(bounds, predicate.prefix)
        if isinstance(predicate, In):
            return _may_be_one_of(bounds, self.intervals)
        return _may_compare(bounds, predicate.op, self.intervals)


Bound = Leaf | And | Or | Anything
"""A predicate whose leaves are bound to columns; `And` and `Or` hold bound predicates."""


def bind(predicate: Predicate, columns: Columns) -> Any:
    """Binds a predicate to the columns of a table.

    Returns:
        The same tree with a `Leaf` for each predicate on a column; one that cannot be judged becomes
        `Anything` with the reason.
    """
    if isinstance(predicate, And):
        return And(tuple(bind(child, columns) for child in predicate.children))
    if isinstance(predicate, Or):
        return Or(tuple(bind(child, columns) for child in predicate.children))
    if isinstance(predicate, Anything):
        return predicate
    column = columns.get(predicate.column)
    if column is None:
        return Anything(str(predicate), "no such column")
    try:
        return _bind_leaf(predicate, column)
    except Unusable as answer:
        return Anything(str(predicate), answer.reason)


def _bind_leaf(predicate: Comparison | In | IsNull | IsNotNull | StartsWith, column: Column) -> Leaf:
    if isinstance(predicate, IsNull | IsNotNull):
        return Leaf(column, predicate)
    if column.kind is None:
        raise Unusable("a column of a type without an order")
    if isinstance(predicate, StartsWith):
        if column.kind != "string":
            raise Unusable(f"a text for a column of type {column.kind}")
        return Leaf(column, predicate)
    values = predicate.values if isinstance(predicate, In) else (predicate.value,)
    intervals = [interval(value, column.kind) for value in values if value is not None]
    return Leaf(column, predicate, tuple(sorted(intervals, key=lambda i: (i.low, i.high))))


def _may_compare(bounds: Bounds, op: str, intervals: Sequence[Interval]) -> bool:
    if not intervals:
        return False  # a comparison with null
    value = intervals[0]
    if op == "=":
        return not value.empty and bounds.may_be_in(value.low, value.high)
    if op in ("<", "<="):
        return bounds.may_be_at_most(value.high, strictly=op == "<")
    # Spark has NaN above every number.
    return bounds.nan or bounds.may_be_at_least(value.low, strictly=op == ">")


def _may_be_one_of(bounds: Bounds, intervals: Sequence[Interval]) -> bool:
    first = 0
    if bounds.low is not None and len(intervals) > 8:
        # Intervals are narrow and sorted: start just below the lower bound.
        first = max(bisect.bisect_left(intervals, bounds.low, key=lambda i: i.high) - 1, 0)
    for value in itertools.islice(intervals, first, None):
        if not bounds.may_be_at_least(value.low):
            return False
        if not value.empty and bounds.may_be_at_most(value.high):
            return True
    return False


def _may_start_with(bounds: Bounds, prefix: str) -> bool:
    if bounds.low is not None and bounds.low[: len(prefix)] > prefix:
        return False
    return bounds.may_be_at_least(prefix)


def may_match(bound: Any, lookup: Lookup) -> bool:
    """Tells whether any row may be wanted, from what `lookup` knows of each column."""
    if isinstance(bound, And):
        return all(may_match(child, lookup) for child in bound.children)
    if isinstance(bound, Or):
        return any(may_match(child, lookup) for child in bound.children)
    if isinstance(bound, Anything):
        return True
    return bool(bound.may_match(lookup(bound.column)))


def bound_columns(bound: Any) -> set[str]:
    """Returns the top-level columns that can be judged."""
    if isinstance(bound, And | Or):
        return {name for child in bound.children for name in bound_columns(child)}
    return set() if isinstance(bound, Anything) else {bound.column.path[0]}


@dataclass(frozen=True)
class Conditions:
    """A predicate bound to a table, and what is not usable of it."""

    bound: Any
    used: tuple[str, ...]
    not_used: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, predicate: Predicate, columns: Columns) -> Conditions:
        """Binds each part that must be true, and tells those that help from those that do not."""
        used: list[str] = []
        not_used: list[tuple[str, str]] = []
        parts = []
        for part in conjuncts(predicate):
            bound = bind(part, columns)
            reason = _why_not(bound)
            if reason is None:
                used.append(str(part))
                parts.append(bound)
            else:
                not_used.append((str(part), reason))
        return cls(And(tuple(parts)), tuple(used), tuple(not_used))


def _why_not(bound: Any) -> str | None:
    """Returns why a bound predicate can never rule anything out, or None if it can."""
    if isinstance(bound, Anything):
        return bound.reason or "not comparable with statistics"
    if isinstance(bound, Or):
        return next((why for child in bound.children if (why := _why_not(child)) is not None), None)
    if isinstance(bound, And) and bound.children:
        reasons = [_why_not(child) for child in bound.children]
        return None if None in reasons else reasons[0]
    return None


def buckets_of(bound: Any, key: Sequence[Column], buckets: int) -> frozenset[int] | None:
    """Returns the buckets that may hold wanted rows, or None if that may be all.

    Args:
        bound: a bound predicate.
        key: columns of the primary key, in order.
        buckets: number of buckets.
    """
    if isinstance(bound, Or):
        each = [buckets_of(child, key, buckets) for child in bound.children]
        return None if None in each else frozenset().union(*(b for b in each if b is not None))
    parts = _flat(bound)
    values = _key_values(parts, key)
    found = None if values is None else _hashed(values, key, buckets)
    for part in parts:
        if isinstance(part, Or):
            inner = buckets_of(part, key, buckets)
            if inner is not None:
                found = inner if found is None else found & inner
    return found


def _flat(bound: Any) -> list[Any]:
    if isinstance(bound, And):
        return [part for child in bound.children for part in _flat(child)]
    return [bound]


def _key_values(parts: Iterable[Any], key: Sequence[Column]) -> list[set[Any]] | None:
    """Returns for each key column the values it may have, or None if one is not bound to values."""
    allowed: dict[Column, set[Any]] = {}
    for part in parts:
        bound = _equal_to(part)
        if bound is not None:
            column, values = bound
            allowed[column] = allowed[column] & values if column in allowed else values
    if not key or any(column not in allowed for column in key):
        return None
    return [allowed[column] for column in key]


def _equal_to(part: Any) -> tuple[Column, set[Any]] | None:
    """Returns the column and the values, if the part says that the column is one of some values."""
    if isinstance(part, Or) and part.children:
        each = [_equal_to(child) for child in part.children]
        first = each[0]
        if first is None or any(e is None or e[0] != first[0] for e in each):
            return None
        return first[0], set().union(*(e[1] for e in each if e is not None))
    if not isinstance(part, Leaf) or not isinstance(part.predicate, Comparison | In):
        return None
    if isinstance(part.predicate, Comparison) and part.predicate.op != "=":
        return None
    wanted = [value for value in part.intervals if not value.empty]
    if any(value.exact is None for value in wanted):
        return None
    return part.column, {value.exact for value in wanted}


def _hashed(values: Sequence[set[Any]], key: Sequence[Column], buckets: int) -> frozenset[int] | None:
    combinations = int(np.prod([float(len(v)) for v in values]))
    if combinations > MAX_KEYS:
        return None
    if combinations == 0:
        return frozenset()
    rows = list(zip(*itertools.product(*values), strict=True))
    arrays = [pa.array(list(v), arrow_type(str(c.kind))) for v, c in zip(rows, key, strict=True)]
    return frozenset(int(b) for b in np.unique(bucket_of(arrays, buckets)))


@dataclass(frozen=True)
class FilePruning:
    """Which files of a snapshot may hold wanted rows.

    Attributes:
        kept: files that may, in the snapshot's order.
        skipped: the others, with the first step that ruled them out.
        conditions: the predicate as it was used.
        buckets: the buckets that may hold wanted rows, None if that may be all.
    """

    kept: tuple[AddFile, ...]
    skipped: tuple[tuple[AddFile, Step], ...]
    conditions: Conditions
    buckets: frozenset[int] | None


def prune(snapshot: Snapshot, predicate: Predicate) -> FilePruning:
    """Rules out files by partition, then bucket, then statistics, without reading any.

    Args:
        snapshot: the table at one version.
        predicate: what the query wants; see `lakekit.skipping.predicate`.
    """
    columns = Columns(snapshot.schema_json)
    conditions = Conditions.of(predicate, columns)
    wanted = wanted_buckets(snapshot, conditions, columns)
    partitions = PartitionBounds(snapshot.partition_columns)
    by_partition: dict[tuple[tuple[str, str | None], ...], bool] = {}
    kept: list[AddFile] = []
    skipped: list[tuple[AddFile, Step]] = []
    for file in snapshot.files.values():
        identity = tuple(file.partition_values.items())
        if identity not in by_partition:
            by_partition[identity] = may_match(conditions.bound, partitions.lookup(file))
        if not by_partition[identity]:
            skipped.append((file, "partition"))
        elif wanted is not None and file.bucket is not None and file.bucket not in wanted:
            skipped.append((file, "bucket"))
        elif not may_match(conditions.bound, FileBounds(file, partitions).lookup):
            skipped.append((file, "file statistics"))
        else:
            kept.append(file)
    return FilePruning(tuple(kept), tuple(skipped), conditions, wanted)


def wanted_buckets(snapshot: Snapshot, conditions: Conditions, columns: Columns) -> frozenset[int] | None:
    """Returns the buckets that may hold wanted rows, or None if that may be all or the table has none."""
    key = [columns.get(name) for name in snapshot.primary_key]
    if snapshot.buckets is None or not key or any(c is None or c.kind is None for c in key):
        return None
    return buckets_of(conditions.bound, [c for c in key if c is not None], snapshot.buckets)


def allowed_buckets(snapshot: Snapshot, predicate: Predicate) -> frozenset[int] | None:
    """Returns the values of ``_bucket`` that a predicate allows, None if it does not bind the key."""
    columns = Columns(snapshot.schema_json)
    return wanted_buckets(snapshot, Conditions.of(predicate, columns), columns)


class PartitionBounds:
    """What partition values say."""

    def __init__(self, partition_columns: Iterable[str]) -> None:
        """Remembers the names of the partition columns."""
        self.columns = frozenset(partition_columns)

    def bounds(self, file: AddFile, column: Column) -> Bounds | None:
        """Returns the bounds of a partition column in a file, None for another column."""
        name = column.path[0]
        if name not in self.columns:
            return None
        if name not in file.partition_values:
            return UNKNOWN
        return _partition_bounds(file.partition_values[name], column.kind)

    def lookup(self, file: AddFile) -> Lookup:
        """Returns a lookup that knows partition columns only."""
        return lambda column: self.bounds(file, column) or UNKNOWN


_partition_bounds = functools.lru_cache(maxsize=4096)(partition_bounds)


class FileBounds:
    """What partition values and statistics say about one file."""

    def __init__(self, file: AddFile, partitions: PartitionBounds) -> None:
        """Reads nothing yet."""
        self._file = file
        self._partitions = partitions

    def lookup(self, column: Column) -> Bounds:
        """Returns the bounds of a column in the file."""
        known = self._partitions.bounds(self._file, column)
        if known is not None:
            return known
        statistics = self._file.column_stats
        nulls = statistics.null_count(column.path)
        if nulls is not None and nulls > 0 and nulls == statistics.num_records:
            return NO_VALUES
        has_nulls = False if nulls == 0 else None
        limits = statistics.range(column.path)
        if limits is None or column.kind is None:
            return Bounds(nulls=has_nulls)
        return bounds_of(*limits, column.kind, has_nulls, nan=self.may_have_nan(column))

    def is_partition(self, column: Column) -> bool:
        """Tells whether the column is a partition column, which data files need not hold."""
        return column.path[0] in self._partitions.columns

    def may_have_nan(self, column: Column) -> bool:
        """Tells whether the file may hold NaN in the column; lakekit then writes no bounds for it."""
        if column.kind not in ("float", "double"):
            return False
        return self._file.run_id is None or self._file.column_stats.range(column.path) is None
