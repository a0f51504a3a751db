"""Rules of a table that Spark's Delta writer would enforce, checked inside our own write job."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from lakekit.errors import ConstraintError, PrimaryKeyError
from lakekit.filestore.layout import OPERATION
from lakekit.names import quote

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from lakekit.storage.snapshot import Snapshot

_CHECK_PREFIX = "delta.constraints."
_LENGTH_KEY = "__CHAR_VARCHAR_TYPE_STRING"
_LENGTH = re.compile(r"(?:var)?char\((\d+)\)\Z")


def checked(rows: DataFrame, snapshot: Snapshot) -> DataFrame:
    """Returns the rows such that the job fails at the first that breaks a CHECK or a length.

    A row that is deleted is not checked. The failure is Spark's USER_RAISED_EXCEPTION, with our text.
    """
    from pyspark.sql import functions as F

    rules = [*_checks(snapshot), *_lengths(snapshot)]
    for rule, message in rules:
        holds = rule if OPERATION not in rows.columns else (F.col(OPERATION) == "D") | rule
        # A rule that is null is broken, as in Delta.
        rows = rows.where(F.when(holds, True).otherwise(F.raise_error(F.lit(message)).cast("boolean")))
    return rows


def check_nulls(table: str, snapshot: Snapshot, rows: pa.Table) -> None:
    """Refuses nulls in the key, and in NOT NULL columns of rows that are not deleted.

    Raises:
        PrimaryKeyError: with the number of rows and an example.
        ConstraintError: with the columns.
    """
    key = list(snapshot.primary_key)
    if any(rows.column(c).null_count for c in key):
        null = rows.filter(reduce(pc.or_, (pc.is_null(rows.column(c)) for c in key)))
        example = null.select(key).slice(0, 1).to_pylist()[0]
        raise PrimaryKeyError.null_keys(table, null.num_rows, str(example))
    if OPERATION in rows.schema.names:
        rows = rows.filter(pc.not_equal(rows.column(OPERATION), "D"))
    required = [f["name"] for f in snapshot.schema_json["fields"] if not f["nullable"]]
    nulls = {c: rows.column(c).null_count for c in required if c in rows.schema.names}
    if any(nulls.values()):
        raise ConstraintError.null_columns(table, {c: n for c, n in nulls.items() if n})


def has_rules(snapshot: Snapshot) -> bool:
    """Tells whether `checked` has anything to check."""
    has_checks = any(name.startswith(_CHECK_PREFIX) for name in snapshot.configuration)
    return has_checks or any(_declared_length(column) for column in snapshot.schema_json["fields"])


def _checks(snapshot: Snapshot) -> list[tuple[Column, str]]:
    from pyspark.sql import functions as F

    found = []
    for name, expression in snapshot.configuration.items():
        if name.startswith(_CHECK_PREFIX):
            text = f"A row breaks the CHECK constraint {name[len(_CHECK_PREFIX) :]}: {expression}."
            found.append((F.expr(expression), text))
    return found


def _lengths(snapshot: Snapshot) -> list[tuple[Column, str]]:
    from pyspark.sql import functions as F

    found = []
    for column in snapshot.schema_json["fields"]:
        declared = _declared_length(column)
        if declared:
            value = F.col(quote(column["name"]))
            rule = value.isNull() | (F.char_length(value) <= int(declared[1]))
            found.append((rule, f"A value of column {column['name']} is longer than {declared[0]}."))
    return found


def _declared_length(column: Mapping[str, Any]) -> re.Match[str] | None:
    return _LENGTH.match(column.get("metadata", {}).get(_LENGTH_KEY, ""))
