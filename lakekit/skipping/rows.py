"""Decides which row groups and which pages of a Parquet file may hold wanted rows.

Pages of different columns do not start at the same rows, so what remains of a row group is a list of row
ranges: a condition on a column keeps the rows of its pages that may match, AND intersects, OR unites (as
parquet-java's ``ColumnIndexFilter`` does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakekit.skipping.parquet_index import Pages, ParquetIndex
from lakekit.skipping.predicate import And, Anything, Or
from lakekit.skipping.prune import FileBounds, Leaf, may_match
from lakekit.skipping.values import UNKNOWN, Bounds, Column

if TYPE_CHECKING:
    import pyarrow as pa

Ranges = list[tuple[int, int]]
"""Ranges of rows of a row group, each from its first row up to one not included; ascending, not touching."""


class FileRows:
    """The rows of one file that statistics in it leave over."""

    def __init__(self, index: ParquetIndex, bounds: FileBounds) -> None:
        """Takes the file's footer and what the log says of the file."""
        self.index = index
        self._bounds = bounds

    def groups(self, bound: Any) -> list[int]:
        """Returns the row groups that may hold rows that a bound predicate wants."""
        count = self.index.metadata.num_row_groups
        return [group for group in range(count) if may_match(bound, self._group_lookup(group))]

    def ranges(self, source: pa.NativeFile, bound: Any, group: int) -> Ranges:
        """Returns the rows of a row group that a bound predicate may want, judged by its pages."""
        everything = [(0, self.index.metadata.row_group(group).num_rows)]
        if isinstance(bound, And):
            left = everything
            for child in bound.children:
                left = intersect(left, self.ranges(source, child, group))
            return left
        if isinstance(bound, Or):
            return unite(r for child in bound.children for r in self.ranges(source, child, group))
        if isinstance(bound, Anything):
            return everything
        return self._leaf_ranges(source, bound, group, everything)

    def _group_lookup(self, group: int) -> Callable[[Column], Bounds]:
        def lookup(column: Column) -> Bounds:
            of_file = self._bounds.lookup(column)
            if self._bounds.is_partition(column) or of_file.only_nulls:
                return of_file
            of_group = self.index.group_bounds(group, column, self._bounds.may_have_nan(column))
            return of_file if of_group == UNKNOWN else of_group

        return lookup

    def _leaf_ranges(self, source: pa.NativeFile, leaf: Leaf, group: int, everything: Ranges) -> Ranges:
        if not leaf.may_match(self._group_lookup(group)(leaf.column)):
            return []
        number = self.index.leaf(leaf.column.path)
        if number is None or self._bounds.is_partition(leaf.column):
            return everything
        pages = self.index.pages(source, group, number)
        nan = self._bounds.may_have_nan(leaf.column)
        bounds = self.index.page_bounds(source, group, number, leaf.column, nan)
        if pages is None or bounds is None:
            return everything
        starts = pages.first_rows
        return unite((starts[i], starts[i + 1]) for i in range(len(pages)) if leaf.may_match(bounds[i]))


def intersect(left: Ranges, right: Ranges) -> Ranges:
    """Returns the rows that are in both."""
    found: Ranges = []
    i = j = 0
    while i < len(left) and j < len(right):
        start, stop = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if start < stop:
            found.append((start, stop))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return found


def unite(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the rows that are in any of the ranges, which may come in any order."""
    found: Ranges = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((start, stop))
    return found


def count(ranges: Ranges) -> int:
    """Returns the number of rows in the ranges."""
    return sum(stop - start for start, stop in ranges)


@dataclass(frozen=True)
class PageCount:
    """Pages of a row group, of all columns; `skipped_bytes` are the bytes of those that are skipped."""

    total: int
    skipped: int
    skipped_bytes: int


def count_pages(source: pa.NativeFile, index: ParquetIndex, group: int, ranges: Ranges) -> PageCount:
    """Counts the pages of a row group that hold none of the rows in `ranges`."""
    total = skipped = skipped_bytes = 0
    for leaf in range(index.metadata.num_columns):
        pages = index.pages(source, group, leaf)
        if pages is None:
            continue
        total += len(pages)
        for page in _unneeded(pages, ranges):
            skipped += 1
            skipped_bytes += pages.sizes[page]
    return PageCount(total, skipped, skipped_bytes)


def _unneeded(pages: Pages, ranges: Ranges) -> list[int]:
    starts = pages.first_rows
    return [i for i in range(len(pages)) if not intersect([(starts[i], starts[i + 1])], ranges)]
