"""Queries that want few rows: those are fetched here, and Spark does the rest of the query with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakekit.skipping.predicate import And
from lakekit.sql.lexer import Token
from lakekit.sql.references import Scan
from lakekit.table.fetch import fetch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.skipping.predicate import Predicate
    from lakekit.storage.snapshot import Snapshot
    from lakekit.table.table import Table

_OF_FILES = ("_metadata", "input_file_name", "input_file_block_start", "input_file_block_length")
"""Names of what only rows that Spark read from files have."""
_NAMES_NOTHING = ("NATURAL", "PIVOT", "UNPIVOT", "IDENTIFIER", "TABLE")
"""Words of queries that mean columns without naming them."""


def can_fetch(scan: Scan) -> bool:
    """Tells whether a query is about the rows alone, and not about the files that they come from."""
    return not any(token.is_identifier and token.name.lower() in _OF_FILES for token in scan.tokens)


def named_columns(scan: Scan) -> set[str] | None:
    """Returns the names, in lower case, among which are all columns that a query can mean; None for all columns."""
    tokens = scan.tokens
    if any(token.keyword in _NAMES_NOTHING or token.at("|>") for token in tokens):
        return None
    if not all(block.selects for block in scan.blocks):
        return None  # FROM t alone returns all columns
    if any(token.at("*") and not _is_count(tokens, place) for place, token in enumerate(tokens)):
        return None
    return {token.name.lower() for token in tokens if token.is_identifier}


def _is_count(tokens: Sequence[Token], place: int) -> bool:
    """Tells whether the star at a place is that of ``count(*)``, which is about no column."""
    return place >= 2 and tokens[place - 1].at("(") and tokens[place - 2].keyword == "COUNT"


def fetched(
    table: Table, snapshot: Snapshot, predicate: Predicate | None, columns: set[str] | None
) -> DataFrame | None:
    """Returns the rows that a query may want of a table, or None if Spark has to read them.

    Args:
        table: a table on a local warehouse.
        snapshot: its state that is read.
        predicate: what must be true of the rows; None if nothing is known.
        columns: see `named_columns`.
    """
    from pyspark.sql.types import StructType

    schema = table.schema_of(snapshot)
    if columns is not None:
        # A query that names no column still wants to know how many rows there are.
        fields = [field for field in schema if field.name.lower() in columns] or schema.fields[:1]
        schema = StructType(fields)
    wanted = And(()) if predicate is None else predicate
    rows = fetch(table.root, wanted, snapshot.version, schema.names)
    return None if rows is None else table.lake.spark.createDataFrame(rows, schema)
