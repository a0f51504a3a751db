"""EXPLAIN LAKE: what a query skips and reads of each table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakekit.errors import QueryError
from lakekit.skipping.predicate import And
from lakekit.skipping.report import STEP_SCHEMA, SkippingReport
from lakekit.skipping.report import explain as report_of
from lakekit.sql import frames
from lakekit.sql.context import Context
from lakekit.sql.lexer import split_spans
from lakekit.sql.rewrite import find, rewrite
from lakekit.sql.scanner import scan
from lakekit.sql.statement import Statement
from lakekit.sql.text import SqlText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.lake import Lake

EXPLAIN_SCHEMA = pa.schema(
    [
        pa.field("table", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        *STEP_SCHEMA,
        pa.field("conditions", pa.string(), nullable=False),
    ]
)
"""What EXPLAIN LAKE returns: the steps of each table's report, and the conditions that were used."""


def explain(lake: Lake, query: str, params: Mapping[str, Any]) -> SkippingReport | list[SkippingReport]:
    """Tells what a query skips and reads of a table of the lake.

    Args:
        lake: the lake.
        query: one SELECT.
        params: values of its parameters.

    Returns:
        The report; a list of them for a query of several tables.

    Raises:
        QueryError: if the query reads no table of the lake, or is no single query.
    """
    spans = split_spans(query)
    if len(spans) != 1:
        raise QueryError(f"There are {len(spans)} statements to explain.", "Give one query.")
    start, end = spans[0]
    context = Context(lake, params, query)
    statement = Statement(SqlText.user(query[start:end], start))
    with context.translated(statement.sql):
        first = 2 if statement.cursor().at("EXPLAIN", "LAKE") else 0
        found = reports(context, statement.rest(first))
    return found[0] if len(found) == 1 else found


def reports(context: Context, sql: SqlText) -> list[SkippingReport]:
    """Returns the reports of all tables of the lake that a query reads, after Spark has checked the query.

    Raises:
        QueryError: if it is no query, or reads no table of the lake.
    """
    statement = Statement(sql)
    if not statement.is_query:
        raise QueryError(
            f"Only a query can be explained, and this is none: {statement.text[:80]}", "Give a SELECT."
        )
    context.sql(rewrite(context, sql))
    text = str(sql)
    made = []
    for item in find(context, sql, scan(statement.tokens)):
        if item.system is not None:
            continue
        name, version = str(item.table.name), item.snapshot().version
        predicate = item.predicate if item.predicate is not None else And(())
        made.append(context.lake.runner.run(report_of, item.table.root, name, predicate, version))
    if not made:
        raise QueryError(
            f"The query reads no table of the lake: {text[:80]}", "EXPLAIN without LAKE shows Spark's plan."
        )
    return made


def run(context: Context, statement: Statement) -> DataFrame | None:
    """Runs EXPLAIN LAKE; None for Spark's own EXPLAIN."""
    if not statement.cursor().at("EXPLAIN", "LAKE"):
        return None
    rows: list[dict[str, Any]] = []
    for report in reports(context, statement.rest(2)):
        about = {
            "table": report.table,
            "version": report.version,
            "conditions": " AND ".join(report.conditions),
        }
        rows += [{**about, **step} for step in report.to_arrow().to_pylist()]
    return frames.arrow(context, pa.Table.from_pylist(rows, EXPLAIN_SCHEMA))
