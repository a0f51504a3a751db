"""Judges single rows by a bound predicate, as `lakekit.skipping.prune` judges files.

The same rule holds: a row that is wanted is never left out, and what cannot be judged counts as wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakekit.skipping.predicate import And, Anything, In, IsNotNull, IsNull, Or, StartsWith
from lakekit.skipping.prune import Leaf
from lakekit.skipping.values import Column, arrow_type

Mask: TypeAlias = "npt.NDArray[np.bool_]"


def judged_columns(bound: Any) -> set[Column]:
    """Returns the top-level columns whose values `mask` looks at."""
    return {leaf.column for leaf in _leaves(bound) if len(leaf.column.path) == 1}


def mask(bound: Any, values: Mapping[str, pa.Array], rows: int) -> Mask:
    """Tells for each row whether it may be wanted.

    Args:
        bound: a bound predicate; see `lakekit.skipping.prune.bind`.
        values: the values of columns by name, in the types of `arrow_type`; columns that are missing are not judged.
        rows: how many rows there are.
    """
    if isinstance(bound, And | Or):
        each = [mask(child, values, rows) for child in bound.children]
        if isinstance(bound, And):
            return reduce(np.logical_and, each, np.ones(rows, np.bool_))
        return reduce(np.logical_or, each, np.zeros(rows, np.bool_))
    if isinstance(bound, Anything) or bound.column.name not in values:
        return np.ones(rows, np.bool_)
    try:
        found = _leaf_mask(bound, values[bound.column.name])
    except pa.ArrowException:  # a value that Arrow cannot have in the column's type
        return np.ones(rows, np.bool_)
    return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


def _leaf_mask(leaf: Leaf, values: pa.Array) -> pa.Array:
    predicate, kind = leaf.predicate, arrow_type(str(leaf.column.kind))
    if isinstance(predicate, IsNull):
        return values.is_null()
    if isinstance(predicate, IsNotNull):
        return values.is_valid()
    if isinstance(predicate, StartsWith):
        return pc.starts_with(values, predicate.prefix)
    wanted = [value for value in leaf.intervals if not value.empty]
    if isinstance(predicate, In) or predicate.op == "=":
        if all(value.exact is not None for value in wanted):
            return _is_in(values, pa.array([value.exact for value in wanted], kind))
        each = [_between(values, pa.scalar(v.low, kind), pa.scalar(v.high, kind)) for v in wanted]
        return reduce(pc.or_kleene, each)
    if not leaf.intervals:
        return pa.repeat(pa.scalar(value=False), len(values))  # a comparison with null
    if pa.types.is_boolean(kind):
        return pa.repeat(pa.scalar(value=True), len(values))  # Arrow does not order booleans
    value = leaf.intervals[0]
    if predicate.op in ("<", "<="):
        return pc.less_equal(values, pa.scalar(value.high, kind))
    found = pc.greater_equal(values, pa.scalar(value.low, kind))
    # Spark has NaN above every number.
    return pc.or_kleene(found, pc.is_nan(values)) if pa.types.is_floating(kind) else found


def _is_in(values: pa.Array, wanted: pa.Array) -> pa.Array:
    if pa.types.is_floating(values.type):
        # Arrow's hash tells -0.0 from 0.0; their sums with 0.0 are the same.
        values, wanted = (pc.add(each, pa.scalar(0.0, each.type)) for each in (values, wanted))
    return pc.is_in(values, wanted)


def _between(values: pa.Array, low: pa.Scalar, high: pa.Scalar) -> pa.Array:
    return pc.and_kleene(pc.greater_equal(values, low), pc.less_equal(values, high))


def _leaves(bound: Any) -> Iterator[Leaf]:
    if isinstance(bound, And | Or):
        for child in bound.children:
            yield from _leaves(child)
    elif isinstance(bound, Leaf):
        yield bound
