"""Pictures of a table: plain functions that return plotly figures.

Each draws what `Table.inspect`, a `SkippingReport` or the `History` of an ingestion says; the Arrow tables are there
for anything else.
They stay quick with 10,000 files and 10,000 commits, because what would be too small to see is summed up.
"""

from __future__ import annotations

from lakekit.errors import SetupError

try:
    from lakekit.plot.commits import manifests, snapshots
    from lakekit.plot.files import buckets, sorted_runs
    from lakekit.plot.skips import skipping
    from lakekit.plot.streams import ingestion
except ImportError as error:
    if not (error.name or "").startswith("plotly"):
        raise
    raise SetupError(
        "Figures need the package plotly, which is not installed.",
        'Install it: pip install "lakekit[notebook]".',
    ) from error

__all__ = ["buckets", "ingestion", "manifests", "skipping", "snapshots", "sorted_runs"]
