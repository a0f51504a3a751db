"""Changes that may touch keys: which rows to delete and upsert, and what is refused.

A changed row is known by its old values, its new values and what happens to it. A table has one row for each key, so
what would give a key two rows, or change one row twice, is refused with examples.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from lakekit.errors import QueryError
from lakekit.filestore.layout import OPERATION
from lakekit.names import quote
from lakekit.sql.context import Context
from lakekit.sql.text import SqlText

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from typing_extensions import Self

    from lakekit.table.table import Table

_SHOWN = 3


class Changes:
    """The changes of one statement; a context manager that frees what it keeps.

    The rows it gets have the new values under the columns' names, the old ones under `old()` of them, and what
    happens in ``ACTION``: ``update``, ``delete`` or ``insert``.
    """

    ACTION = "`__lake_action`"

    def __init__(self, context: Context, table: Table, operation: str) -> None:
        """Prepares for the changes of a statement named `operation`."""
        self._context = context
        self._table = table
        self._operation = operation
        self._kept: list[DataFrame] = []
        self._key = table.primary_key

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for frame in self._kept:
            frame.unpersist()
        self._kept.clear()

    @staticmethod
    def old(column: str) -> str:
        """Returns the quoted name of a column's old value."""
        return quote(f"__lake_old_{column}")

    def of_moved(self, rows: DataFrame, version: int) -> DataFrame:
        """Returns the changes of rows whose keys may be new ones.

        Raises:
            QueryError: if two rows would have one key, or a row has it already.
        """
        rows = self._keep(rows)
        self._refuse_double_targets(rows)
        upserts = rows.where(f"{self.ACTION} <> 'delete'")
        self._refuse_equal_keys(upserts)
        self._refuse_taken_keys(rows, upserts, version)
        columns = [f.name for f in self._table.schema]
        new = upserts.selectExpr(*[quote(c) for c in columns], f"'U' AS {OPERATION}")
        # What goes away: deleted rows and the old keys of moved ones, unless another row got the key.
        leaving = rows.where(f"{self.ACTION} <> 'insert'")
        gone = leaving.selectExpr(*[f"{self.old(c)} AS {quote(c)}" for c in columns], f"'D' AS {OPERATION}")
        gone = gone.join(upserts.select(*map(quote, self._key)), on=list(self._key), how="left_anti")
        return gone.select(*[quote(c) for c in columns], OPERATION).unionByName(new)

    def of_matched(self, rows: DataFrame) -> DataFrame:
        """Returns changes of rows that keep their keys, and of new rows that are known to have new keys.

        Raises:
            QueryError: if a key occurs twice.
        """
        from pyspark.sql import functions as F

        rows = self._keep(rows)
        deletes = F.min(F.when(F.expr(f"{self.ACTION} = 'delete'"), 1).otherwise(0))
        doubled = rows.groupBy(*map(quote, self._key)).agg(
            F.count("*").alias("__lake_n"),
            deletes.alias("__lake_deletes"),
            F.max(F.when(F.expr(f"{self.ACTION} = 'insert'"), 1).otherwise(0)).alias("__lake_inserts"),
        )
        # Several source rows may agree to delete a row.
        doubled = doubled.where("`__lake_n` > 1 AND `__lake_deletes` = 0").where(self._not_null())
        examples = self._examples(doubled.select(*map(quote, self._key), "`__lake_inserts`"))
        if examples:
            self._raise_doubled(examples, bool(examples[0][-1]))
        columns = [quote(f.name) for f in self._table.schema]
        operation = f"CASE WHEN {self.ACTION} = 'delete' THEN 'D' ELSE 'U' END AS {OPERATION}"
        return rows.selectExpr(*columns, operation)

    def _raise_doubled(self, examples: list[Any], inserts: bool) -> None:
        shown = self._shown(examples)
        if inserts:
            raise QueryError(
                f"{self._operation} on table {self._table.name} would insert several rows with the same key, for"
                f" example {shown}. Nothing was written.",
                "Leave one source row for each key, for example with GROUP BY or row_number().",
            )
        raise QueryError(
            f"{self._operation} on table {self._table.name}: several source rows match the same row, for example"
            f" the one with {shown}. Nothing was written.",
            "Leave one source row for each key, for example with GROUP BY or row_number().",
        )

    def _keep(self, rows: DataFrame) -> DataFrame:
        # Read several times: by the checks and by the write. Also a source that gives other rows each time
        # must give the same here.
        kept = rows.persist()
        self._kept.append(kept)
        return kept

    def _refuse_double_targets(self, rows: DataFrame) -> None:
        old = [f"{self.old(c)} AS {quote(c)}" for c in self._key]
        touched = rows.where(f"{self.ACTION} <> 'insert'").selectExpr(*old, self.ACTION)
        grouped = touched.groupBy(*map(quote, self._key)).agg(
            _count(), _expr(f"count_if({self.ACTION} <> 'delete')").alias("__lake_updates")
        )
        doubled = grouped.where("`__lake_n` > 1 AND `__lake_updates` > 0").where(self._not_null())
        examples = self._examples(doubled.select(*map(quote, self._key)))
        if examples:
            self._raise_doubled(examples, inserts=False)

    def _refuse_equal_keys(self, upserts: DataFrame) -> None:
        doubled = upserts.groupBy(*map(quote, self._key)).agg(_count()).where("`__lake_n` > 1")
        examples = self._examples(doubled.where(self._not_null()).select(*map(quote, self._key)))
        if examples:
            raise QueryError(
                f"{self._operation} on table {self._table.name} would give several rows the same key, for example"
                f" {self._shown(examples)}. Nothing was written.",
                "Choose values that keep the keys apart.",
            )

    def _refuse_taken_keys(self, rows: DataFrame, upserts: DataFrame, version: int) -> None:
        """Refuses new keys of rows that are there and stay."""
        key = [quote(c) for c in self._key]
        same = " AND ".join(f"{self.old(c)} <=> {quote(c)}" for c in self._key)
        arriving = upserts.where(f"{self.ACTION} = 'insert' OR NOT ({same})").select(*key)
        leaving = rows.where(f"{self.ACTION} <> 'insert'").selectExpr(
            *[f"{self.old(c)} AS {quote(c)}" for c in self._key]
        )
        present = self._table.to_df(version=version).select(*key)
        taken = arriving.join(present, on=list(self._key), how="left_semi")
        examples = self._examples(taken.join(leaving, on=list(self._key), how="left_anti"))
        if examples:
            raise QueryError(
                f"{self._operation} on table {self._table.name} would give rows the key of another row, for example"
                f" {self._shown(examples)}. Nothing was written.",
                "Choose other keys, or delete those rows first.",
            )

    def _not_null(self) -> str:
        # The table refuses null keys itself, with their count.
        return " AND ".join(f"{quote(c)} IS NOT NULL" for c in self._key)

    def _examples(self, keys: DataFrame) -> list[Any]:
        with self._context.translated(SqlText()), self._context.lake.interruptible():
            return list(keys.limit(_SHOWN).collect())

    def _shown(self, rows: list[Any]) -> str:
        each = [", ".join(f"{c} = {row[i]!r}" for i, c in enumerate(self._key)) for row in rows]
        return "; ".join(f"({text})" if len(self._key) > 1 and len(each) > 1 else text for text in each)


def _count() -> Column:
    from pyspark.sql import functions as F

    return F.count("*").alias("__lake_n")


def _expr(text: str) -> Column:
    from pyspark.sql import functions as F

    return F.expr(text)
