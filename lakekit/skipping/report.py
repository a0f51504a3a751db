"""Tells what a query reads of a table, and what each kind of statistics lets it skip."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakekit.names import BUCKET_COLUMN
from lakekit.skipping.footers import footer_of, open_data_file
from lakekit.skipping.predicate import Anything, Predicate, all_of
from lakekit.skipping.prune import (
    Conditions,
    FileBounds,
    FilePruning,
    PartitionBounds,
    bound_columns,
    prune,
)
from lakekit.skipping.rows import FileRows, count, count_pages
from lakekit.storage.actions import AddFile
from lakekit.storage.log import open_log
from lakekit.storage.snapshot import Snapshot
from lakekit.storage.store import Store
from lakekit.units import counted, format_bytes

STEPS = ("partition", "bucket", "file statistics", "row groups", "page index")
"""The steps in the order in which they are tried."""

STEP_SCHEMA = pa.schema(
    [
        pa.field("step", pa.string(), nullable=False),
        pa.field("files_skipped", pa.int64(), nullable=False),
        pa.field("bytes_skipped", pa.int64(), nullable=False),
        pa.field("files_left", pa.int64(), nullable=False),
        pa.field("bytes_left", pa.int64(), nullable=False),
        pa.field("row_groups_skipped", pa.int64(), nullable=False),
        pa.field("pages_skipped", pa.int64(), nullable=False),
    ]
)
"""Columns of `SkippingReport.to_arrow`: one row a step, the first ``total``, the last ``read``. Row groups
and pages are counted in files that were left over by the steps before."""

FILE_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("partition", pa.string(), nullable=False),
        pa.field("bucket", pa.int32()),
        pa.field("level", pa.int32()),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("rows", pa.int64()),
        pa.field("skipped_by", pa.string()),
        pa.field("row_groups", pa.int64()),
        pa.field("row_groups_skipped", pa.int64()),
        pa.field("pages", pa.int64()),
        pa.field("pages_skipped", pa.int64()),
        pa.field("bytes_skipped_by_row_groups", pa.int64(), nullable=False),
        pa.field("bytes_skipped_by_pages", pa.int64(), nullable=False),
        pa.field("bytes_read", pa.int64(), nullable=False),
        pa.field("rows_read", pa.int64()),
    ]
)
"""Columns of `SkippingReport.files`: one row a file. `skipped_by` is the step that ruled the whole file out,
null for files that are read. Row groups and pages are null where the file did not have to be opened. Rows
include deleted ones."""

Row = dict[str, Any]

_BYTES_WITHIN = {"row groups": "bytes_skipped_by_row_groups", "page index": "bytes_skipped_by_pages"}
_READERS = 8


@dataclass(frozen=True)
class StepCount:
    """What one step skips, and what is left after it; bytes are of data files."""

    step: str
    files_skipped: int
    bytes_skipped: int
    files_left: int
    bytes_left: int
    row_groups_skipped: int = 0
    pages_skipped: int = 0


@dataclass(frozen=True)
class SkippingReport:
    """What a query reads of one table, and why not more.

    All columns count as wanted: a query that selects few of them reads even less.

    Attributes:
        table: the table's name.
        version: its version.
        conditions: the parts of the predicate that statistics can judge.
        not_usable: the other parts, each with the reason.
        buckets: the buckets that may hold wanted rows, None for all.
        files: one row for each file, see `FILE_SCHEMA`.
    """

    table: str
    version: int
    conditions: tuple[str, ...]
    not_usable: tuple[tuple[str, str], ...]
    buckets: tuple[int, ...] | None
    files: pa.Table

    @property
    def total(self) -> StepCount:
        """All files of the table."""
        return self.steps[0]

    @property
    def read(self) -> StepCount:
        """What is left to read after all steps."""
        return self.steps[-1]

    @property
    def steps(self) -> tuple[StepCount, ...]:
        """The total, each step, and what is read, in this order."""
        rows = self.files.to_pylist()
        files, size = len(rows), sum(row["bytes"] for row in rows)
        found = [StepCount("total", 0, 0, files, size)]
        for step in STEPS:
            out = [row for row in rows if row["skipped_by"] == step]
            groups = sum(row["row_groups_skipped"] or 0 for row in rows) if step == "row groups" else 0
            pages = sum(row["pages_skipped"] or 0 for row in rows) if step == "page index" else 0
            column = _BYTES_WITHIN.get(step)
            skipped = sum(row[column] for row in rows) if column else sum(row["bytes"] for row in out)
            files, size = files - len(out), size - skipped
            found.append(StepCount(step, len(out), skipped, files, size, groups, pages))
        return (*found, StepCount("read", 0, 0, files, size))

    def to_arrow(self) -> pa.Table:
        """Returns the steps as an Arrow table, see `STEP_SCHEMA`."""
        rows = [[getattr(step, name) for name in STEP_SCHEMA.names] for step in self.steps]
        columns = [list(column) for column in zip(*rows, strict=True)]
        return pa.Table.from_arrays(
            [pa.array(values, kind) for values, kind in zip(columns, STEP_SCHEMA.types, strict=True)],
            schema=STEP_SCHEMA,
        )

    def __str__(self) -> str:
        table = [("", "files", "bytes"), *self._lines()]
        widths = [max(len(row[i]) for row in table) for i in range(3)]
        lines = [f"{self.table}, version {self.version}"]
        lines += [f"  {n:<{widths[0]}}  {f:>{widths[1]}}  {b:>{widths[2]}}".rstrip() for n, f, b in table]
        return "\n".join([*lines, *self._notes()])

    def _repr_html_(self) -> str:
        def cells(row: Sequence[str], tag: str) -> str:
            align = ("left", "right", "right")
            return "".join(
                f'<{tag} style="text-align:{a}">{html.escape(text)}</{tag}>'
                for text, a in zip(row, align, strict=True)
            )

        body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in self._lines())
        notes = "<br>".join(html.escape(note) for note in self._notes())
        caption = html.escape(f"{self.table}, version {self.version}")
        head = cells(("", "files", "bytes"), "th")
        return (
            f'<table><caption style="text-align:left">{caption}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{notes}</p>"
        )

    def _lines(self) -> list[tuple[str, str, str]]:
        lines = []
        for step in self.steps:
            skips = step.step not in ("total", "read")
            name = f"skipped by {step.step}" if skips else step.step
            files, size = (
                (step.files_skipped, step.bytes_skipped) if skips else (step.files_left, step.bytes_left)
            )
            extra = [(step.row_groups_skipped, "row group"), (step.pages_skipped, "page")]
            name += "".join(f" ({counted(n, what)})" for n, what in extra if n)
            lines.append((name, f"{files:,}", format_bytes(size)))
        return lines

    def _notes(self) -> list[str]:
        notes = [f"  by: {', '.join(self.conditions)}"] if self.conditions else []
        notes += [f"  not used: {text} ({reason})" for text, reason in self.not_usable]
        if self.buckets is not None:
            shown = ", ".join(str(b) for b in self.buckets[:10])
            notes.append(f"  buckets: {shown}{', …' if len(self.buckets) > 10 else ''}")
        return notes or ["  no condition: the whole table is read"]


def explain(
    root: str,
    table: str,
    predicate: Predicate,
    version: int | None = None,
    not_usable: Sequence[tuple[str, str]] = (),
) -> SkippingReport:
    """Reports what a query with this predicate reads of a table; reads the log and footers of files, no data.

    It needs access to the table's files: call it through the lake's runner.

    Args:
        root: path or URI of the table.
        table: its name, for the report.
        predicate: what the query asks of the table's rows.
        version: the version it reads, the newest by default.
        not_usable: parts of the query's condition that could not be said as a predicate, and why.
    """
    log = open_log(root)
    parts = [Anything(text, reason) for text, reason in not_usable]
    return report(log.store, log.snapshot(version), table, all_of(predicate, *parts))


def report(store: Store, snapshot: Snapshot, table: str, predicate: Predicate) -> SkippingReport:
    """Reports what a predicate lets skip in a snapshot; see `explain`."""
    pruning = prune(snapshot, predicate)
    reasons: dict[str, str] = {file.path: step for file, step in pruning.skipped}
    opened = _judge(store, snapshot, pruning)
    rows = [
        opened[path] if path in opened else _file_row(file, reasons.get(path))
        for path, file in snapshot.files.items()
    ]
    return SkippingReport(
        table,
        snapshot.version,
        pruning.conditions.used,
        pruning.conditions.not_used,
        None if pruning.buckets is None else tuple(sorted(pruning.buckets)),
        pa.Table.from_pylist(rows, FILE_SCHEMA),
    )


def _judge(store: Store, snapshot: Snapshot, pruning: FilePruning) -> dict[str, Row]:
    """Opens the files that are left, if that can rule anything out; returns their rows of the report."""
    partitions = PartitionBounds(snapshot.partition_columns)
    if not bound_columns(pruning.conditions.bound) - partitions.columns:
        return {}

    def judge(file: AddFile) -> Row:
        return _judged_row(store, file, FileBounds(file, partitions), pruning.conditions)

    with ThreadPoolExecutor(_READERS) as pool:
        return dict(zip((file.path for file in pruning.kept), pool.map(judge, pruning.kept), strict=True))


def _file_row(file: AddFile, skipped_by: str | None) -> Row:
    return {
        "path": file.file_path,
        "partition": partition_label(file.partition_values),
        "bucket": file.bucket,
        "level": file.level,
        "bytes": file.size,
        "rows": file.num_records,
        "skipped_by": skipped_by,
        "bytes_skipped_by_row_groups": 0,
        "bytes_skipped_by_pages": 0,
        "bytes_read": file.size if skipped_by is None else 0,
        "rows_read": file.num_records if skipped_by is None else 0,
    }


def _judged_row(store: Store, file: AddFile, bounds: FileBounds, conditions: Conditions) -> Row:
    index = footer_of(store, file.file_path)
    metadata = index.metadata
    row = _file_row(file, None)
    with open_data_file(store, file.file_path) as source:
        inside = FileRows(index, bounds)
        kept = inside.groups(conditions.bound)
        row["row_groups"] = metadata.num_row_groups
        row["row_groups_skipped"] = metadata.num_row_groups - len(kept)
        if not kept:
            return row | {
                "skipped_by": "row groups",
                "bytes_skipped_by_row_groups": file.size,
                "bytes_read": 0,
                "rows_read": 0,
            }
        ranges = {group: inside.ranges(source, conditions.bound, group) for group in kept}
        pages = [count_pages(source, index, group, rows) for group, rows in ranges.items()]
    of_groups = sum(_group_bytes(metadata, g) for g in range(metadata.num_row_groups) if g not in ranges)
    wanted = sum(count(rows) for rows in ranges.values())
    # A file without wanted rows is skipped with its footer.
    of_pages = sum(p.skipped_bytes for p in pages) if wanted else file.size - of_groups
    return row | {
        "skipped_by": None if wanted else "page index",
        "pages": sum(p.total for p in pages),
        "pages_skipped": sum(p.skipped for p in pages),
        "bytes_skipped_by_row_groups": of_groups,
        "bytes_skipped_by_pages": of_pages,
        "bytes_read": file.size - of_groups - of_pages,
        "rows_read": wanted,
    }


def _group_bytes(metadata: pq.FileMetaData, group: int) -> int:
    row_group = metadata.row_group(group)
    return sum(row_group.column(i).total_compressed_size for i in range(row_group.num_columns))


def partition_label(values: Mapping[str, str | None]) -> str:
    """Returns partition values as people read them, without the bucket: ``year=2013/month=1``."""
    shown = {
        name: "null" if value is None else value for name, value in values.items() if name != BUCKET_COLUMN
    }
    return "/".join(f"{name}={value}" for name, value in shown.items())
