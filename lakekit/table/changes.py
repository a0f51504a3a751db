"""The changelog of a table: -U/+U pairs, +I and -D, from Delta's change data feed.

Delta derives inserts and deletes from what each commit did to files and deletion vectors. A delete and an insert of
one key in one version are an update: paired here, by key, as row kinds of a changelog stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakekit.filestore.keys import comparable, differs_from_next
from lakekit.filestore.layout import ORDER
from lakekit.names import BUCKET_COLUMN, quote
from lakekit.table.batch import by_position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KIND = "_change_kind"
VERSION = "_version"
TIMESTAMP = "_timestamp"

_TYPE = "_change_type"
_DELETES = ("delete", "update_preimage")
_BATCH_ROWS = 64 * 1024


@dataclass(frozen=True)
class PairChanges:
    """A `mapInArrow` function that turns Delta's change types into row kinds.

    Attributes:
        keys: the primary key; all changes of a key are in one Spark partition.
        columns: names of the columns that come in.
        is_sorted: whether rows come sorted by key, version and order (a batch read), or in any order (a stream).
    """

    keys: tuple[str, ...]
    is_sorted: bool
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the rows with `_change_kind` in place of `_change_type`, -U before its +U."""
        order = [*self.keys, VERSION, ORDER]
        batches = (b.rename_columns(list(self.columns)) for b in batches)
        if not self.is_sorted:
            held = [b for b in batches if b.num_rows]
            if not held:
                return
            table = pa.Table.from_batches(held)
            rank = pc.sort_indices(table.select(order), sort_keys=[(c, "ascending") for c in order])
            yield from self._paired(table.take(rank)).to_batches()
            return
        rest: pa.Table | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch])
            table = table if rest is None else pa.concat_tables([rest, table])
            # The last change may have its partner in the next batch, and at most one: two rows are held back.
            cut = max(table.num_rows - 2, 0)
            while cut and self._same_change(table, cut - 1):
                cut -= 1
            if cut:
                yield from self._paired(table.slice(0, cut)).to_batches()
            rest = table.slice(cut)
        if rest is not None and rest.num_rows:
            yield from self._paired(rest).to_batches()

    def _columns(self, table: pa.Table) -> list[pa.Array]:
        return [comparable(table.column(c).combine_chunks()) for c in (*self.keys, VERSION)]

    def _same_change(self, table: pa.Table, index: int) -> bool:
        pair = self._columns(table.slice(index, 2))
        return not bool(differs_from_next(pair, 2)[0])

    def _paired(self, table: pa.Table) -> pa.Table:
        table = table.combine_chunks()
        deletes = pc.is_in(table.column(_TYPE), value_set=pa.array(_DELETES)).to_numpy()
        same = ~differs_from_next(self._columns(table), table.num_rows)
        update = np.zeros(table.num_rows, dtype=np.bool_)
        pairs = same & deletes[:-1] & ~deletes[1:]
        update[:-1] |= pairs
        update[1:] |= pairs
        kinds = np.select([deletes & update, deletes, update], ["-U", "-D", "+U"], default="+I")
        index = table.schema.get_field_index(_TYPE)
        table = table.set_column(index, pa.field(KIND, pa.string()), pa.array(kinds, pa.string()))
        return table.drop_columns([ORDER])


def changelog(feed: DataFrame, keys: tuple[str, ...], streaming: bool) -> DataFrame:
    """Returns a change data feed as rows with `_change_kind`, `_version` and `_timestamp`.

    Args:
        feed: Delta's change data feed, as a batch or a stream.
        keys: the primary key; empty for an append table, whose rows are not paired.
        streaming: whether `feed` is a stream.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    renamed = (
        feed.drop(BUCKET_COLUMN)
        .withColumnRenamed("_commit_version", VERSION)
        .withColumnRenamed("_commit_timestamp", TIMESTAMP)
    )
    fields = [StructField(KIND, StringType()) if f.name == _TYPE else f for f in renamed.schema]
    gone = F.col(_TYPE).isin(*_DELETES)
    if not keys:
        kind = F.when(gone, F.lit("-D")).otherwise(F.lit("+I"))
        return renamed.withColumn(_TYPE, kind).withColumnRenamed(_TYPE, KIND)
    columns = [F.col(quote(k)) for k in keys]
    ranked = renamed.withColumn(ORDER, F.when(gone, 0).otherwise(1)).repartition(*columns)
    if not streaming:
        ranked = ranked.sortWithinPartitions(*columns, VERSION, ORDER)
    pair = PairChanges(keys, not streaming, tuple(ranked.columns))
    return by_position(ranked).mapInArrow(pair, StructType(fields))
