"""Widgets for a notebook: make a table, feed it, follow it, and look into it.

Each function returns a widget that a cell shows when it is its last line. In a saved notebook, and where widgets do
not run, its static form is shown instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakekit.errors import InvalidOptionError, SetupError

try:
    import anywidget  # noqa: F401  # what plotly's FigureWidget is made with

    from lakekit.widgets.commits import SnapshotExplorer
    from lakekit.widgets.creator import TableCreator
    from lakekit.widgets.files import ManifestExplorer
    from lakekit.widgets.skips import SkippingExplorer
    from lakekit.widgets.streams import IngestionPanel, of_handle, of_table
    from lakekit.widgets.tailing import LiveView
except ImportError as error:
    missing = (error.name or "").split(".")[0]
    if missing not in ("IPython", "anywidget", "ipywidgets", "plotly"):
        raise
    raise SetupError(
        f"Widgets need the package {missing}, which is not installed.",
        'Install it: pip install "lakekit[notebook]".',
    ) from error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.ingest.ingestion import Ingestion
    from lakekit.lake import Lake
    from lakekit.table.rows import Rows
    from lakekit.table.table import Table

__all__ = ["create_table", "ingestion", "live", "manifests", "skipping", "snapshots"]


def create_table(lake: Lake, rows: Rows | None = None) -> TableCreator:
    """Describes a table in a form, shows the SQL that creates it, and runs that SQL on a click.

    What is wrong is said beside each field while one types.

    Args:
        lake: the lake that gets the table; `TableCreator.table` is the table once it was created.
        rows: rows from which the columns are taken, and which can be inserted: a Spark or pandas DataFrame, an Arrow
            table. A CSV, JSON or Parquet file can be named in the form instead.
    """
    return TableCreator(lake, rows)


def ingestion(source: Ingestion | Table, rows: DataFrame | None = None, /, **options: Any) -> IngestionPanel:
    """Steers a stream into a table: start, pause, resume, stop, flush, and a chart of how fast it is.

    Args:
        source: what `Table.write_stream()` returned, or a table.
        rows: for a table, the stream of rows that the Start button writes into it.
        options: for a table, further arguments of `Table.write_stream()`.

    Raises:
        InvalidOptionError: for a table without rows, or rows for an ingestion that has its own.
    """
    from lakekit.ingest.ingestion import Ingestion

    if isinstance(source, Ingestion):
        if rows is not None or options:
            raise InvalidOptionError("The ingestion has its rows and options.", "Give nothing else.")
        return of_handle(source)
    if rows is None:
        raise InvalidOptionError(
            f"There are no rows for table {source.name}.",
            "Give a streaming DataFrame: ingestion(table, rows).",
        )
    return of_table(source, rows, options)


def live(table: Table, rows: int = 50, **tail: Any) -> LiveView:
    """Follows the log of a table beside its rows, which are read from the files or with the log over them.

    Args:
        table: a table with a log.
        rows: how many changes, and how many rows, are shown.
        tail: arguments of `Table.tail()`, such as ``startup="earliest"``.
    """
    return LiveView(table, rows, tail)


def manifests(table: Table) -> ManifestExplorer:
    """Explores the files of a table at any version: partitions, buckets and files, and the sorted runs of a bucket.

    Args:
        table: the table.
    """
    return ManifestExplorer(table)


def skipping(lake: Lake, sql: str | None = None, /, **params: object) -> SkippingExplorer:
    """Explores what a query reads: which partitions, buckets, files and row groups, and why the others are not.

    The query is explained, never run.

    Args:
        lake: the lake.
        sql: a SELECT to begin with; ``:name`` stands for the value of the keyword `name`.
        params: the values.
    """
    return SkippingExplorer(lake, sql, params)


def snapshots(table: Table, limit: int = 20) -> SnapshotExplorer:
    """Explores the history of a table: a timeline of its commits, its rows at any version, what changed between two.

    Args:
        table: the table.
        limit: how many rows are shown at once; of changes, five times as many.
    """
    return SnapshotExplorer(table, limit)
