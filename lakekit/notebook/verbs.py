"""The verbs of ``%lake``: what people do with a lake all day, without SQL."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from lakekit.errors import InvalidOptionError, NotFoundError, QueryError, did_you_mean
from lakekit.notebook.display import Note, ResultTable, commit_note
from lakekit.notebook.listing import lake_tables
from lakekit.notebook.running import run_cancellable
from lakekit.session.connect import connect, current, open_lake
from lakekit.units import duration, format_bytes

if TYPE_CHECKING:
    from lakekit.ingest.ingestion import Ingestion

Namespace = MutableMapping[str, Any]

_HISTORY = (
    "version",
    "committed_at",
    "operation",
    "rows_inserted",
    "rows_updated",
    "rows_deleted",
    "files_added",
    "files_removed",
    "duration_ms",
    "rows",
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidOptionError(f"%{self.prog}: {message}.", f"Usage: %{self.format_usage()[7:].strip()}")


@dataclass(frozen=True)
class Verb:
    """One word behind ``%lake``.

    Attributes:
        help: what it does, in one line.
        parser: reads its arguments.
        run: does it, given the arguments and the notebook's variables.
    """

    help: str
    parser: _Parser
    run: Callable[[argparse.Namespace, Namespace], object]

    @property
    def usage(self) -> str:
        """How it is written."""
        return "%" + " ".join(self.parser.format_usage()[7:].split())


def run(line: str, namespace: Namespace) -> object:
    """Runs one ``%lake`` line.

    Args:
        line: what stands behind ``%lake``.
        namespace: the notebook's variables.

    Returns:
        What the cell shows, or can put into a variable.

    Raises:
        LakeError: if the line cannot be read, or what it asks for cannot be done.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise QueryError(f"The line cannot be read: {error}.", "Close the quotation mark.") from None
    if not words:
        raise QueryError("%lake needs a verb.", f"There are: {', '.join(VERBS)}. For help: %lake?")
    verb = VERBS.get(words[0])
    if verb is None:
        hint = did_you_mean(words[0], VERBS).strip() or f"There are: {', '.join(VERBS)}."
        raise QueryError(f"%lake has no verb '{words[0]}'.", hint)
    return verb.run(verb.parser.parse_args(words[1:]), namespace)


def _connect(arguments: argparse.Namespace, namespace: Namespace) -> object:
    lake = connect(arguments.warehouse, remote=arguments.remote)
    namespace["lake"] = lake
    where = "local" if lake.runner.is_local else "remote"
    return Note(f"lake: {lake.warehouse} over a {where} Spark {lake.spark.version}")


def _tables(arguments: argparse.Namespace, _: Namespace) -> object:
    lake, started = open_lake(), time.monotonic()
    rows = []
    for table in lake_tables(lake, arguments.database):
        snapshot = table.snapshot()
        rows.append(
            [
                str(table.name),
                ", ".join(table.primary_key),
                ", ".join(table.partition_by),
                table.buckets,
                snapshot.version,
                len(snapshot.files),
                format_bytes(snapshot.total_bytes),
                table.options.log_store_topic if table.options.log_store_enabled else None,
            ]
        )
    columns = ["table", "primary key", "partitioned by", "buckets", "version", "files", "size", "log"]
    return ResultTable(columns, rows, False, time.monotonic() - started)


def _describe(arguments: argparse.Namespace, _: Namespace) -> object:
    from lakekit.table import describe

    started = time.monotonic()
    table = open_lake().table(arguments.table)
    rows: list[list[Any]] = []
    for column in describe.columns(table).to_pylist():
        marks = [
            f"primary key {column['key']}" if column["key"] else "",
            f"partition {column['partition']}" if column["partition"] else "",
            "" if column["nullable"] else "not null",
        ]
        rows.append([column["column"], column["type"], ", ".join(filter(None, marks)), column["comment"]])
    rows += [[d["property"], d["value"], "table", None] for d in describe.details(table).to_pylist()]
    return ResultTable(["name", "type or value", "is", "comment"], rows, False, time.monotonic() - started)


def _mode(arguments: argparse.Namespace, _: Namespace) -> object:
    lake = open_lake()
    rows = lake.sql(
        f"SET lake.read.mode = {arguments.mode}" if arguments.mode else "SET lake.read.mode"
    ).collect()
    now = "log: the files, with the log's newer changes over them" if rows[0].value == "log" else "file"
    return Note(f"Queries read mode {now}")


def _history(arguments: argparse.Namespace, _: Namespace) -> object:
    started = time.monotonic()
    found = open_lake().table(arguments.table).inspect.snapshots()
    newest = found.select(list(_HISTORY)).to_pylist()[::-1]
    rows = [list(row.values()) for row in newest[: arguments.limit]]
    more = len(newest) > arguments.limit
    return ResultTable(list(_HISTORY), rows, more, time.monotonic() - started)


def _compact(arguments: argparse.Namespace, _: Namespace) -> object:
    lake, started = open_lake(), time.monotonic()
    table = lake.table(arguments.table)
    commit = run_cancellable(lake.spark, table.compact)
    return Note(f"{commit_note(commit.__dict__)} · {duration(time.monotonic() - started)}")


def _ingest(arguments: argparse.Namespace, namespace: Namespace) -> object:
    lake = open_lake()
    if arguments.source is None:
        return _ingestions(lake.ingestions)
    if arguments.into != "into" or arguments.table is None:
        raise QueryError(
            "%lake ingest does not say into which table.",
            f"Write: %lake ingest {arguments.source} into database.table",
        )
    rows = namespace.get(arguments.source)
    if rows is None:
        streams = [n for n, value in namespace.items() if getattr(value, "isStreaming", False)]
        raise NotFoundError(
            f"The notebook has no variable '{arguments.source}'.",
            did_you_mean(arguments.source, streams).strip()
            or "Make a streaming DataFrame first, such as lake.spark.readStream….",
        )
    return lake.table(arguments.table).write_stream(rows, arguments.name, interval=arguments.interval)


def _ingestions(running: Sequence[Ingestion]) -> object:
    columns = ["table", "state", "rows in", "changes out", "rows not in files", "file lag", "error"]
    rows = []
    for ingestion in running:
        now = ingestion.status
        lag = duration(now.file_lag_s)
        rows.append(
            [
                str(ingestion.table.name),
                now.state,
                now.rows_in,
                now.changes_out,
                now.pending_rows,
                lag,
                now.error,
            ]
        )
    return ResultTable(columns, rows, False, 0.0) if rows else Note("This notebook has started no ingestion.")


def _tail(arguments: argparse.Namespace, _: Namespace) -> object:
    from lakekit import widgets

    return widgets.live(open_lake().table(arguments.table))


def _doctor(_: argparse.Namespace, __: Namespace) -> object:
    from lakekit.notebook.doctor import examine

    started = time.monotonic()
    checks = examine(current())
    rows = [[check.name, check.state, check.found, check.fix] for check in checks]
    return ResultTable(["what", "state", "found", "what to do"], rows, False, time.monotonic() - started)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no number above 0")
    return int(text)


def _verb(
    name: str,
    help_text: str,
    action: Callable[[argparse.Namespace, Namespace], object],
    *arguments: tuple[str, dict[str, Any]],
) -> tuple[str, Verb]:
    parser = _Parser(prog=f"lake {name}", add_help=False)
    for argument, settings in arguments:
        parser.add_argument(argument, **settings)
    return name, Verb(help_text, parser, action)


_TABLE: tuple[str, dict[str, Any]] = ("table", {})
_OPTIONAL: dict[str, Any] = {"nargs": "?"}

VERBS = dict(
    [
        _verb(
            "connect",
            "opens a lake, as lakekit.connect() does, and names it lake",
            _connect,
            ("warehouse", _OPTIONAL),
            ("--remote", {"metavar": "URL"}),
        ),
        _verb("tables", "lists the tables of the lake, or of one database", _tables, ("database", _OPTIONAL)),
        _verb("describe", "shows the columns of a table and what it is made of", _describe, _TABLE),
        _verb(
            "mode",
            "chooses where queries read tables that have a log, or says it",
            _mode,
            ("mode", {"nargs": "?", "choices": ("file", "log")}),
        ),
        _verb(
            "history",
            "shows the commits of a table, the newest first",
            _history,
            _TABLE,
            ("--limit", {"type": _count, "default": 20, "metavar": "N"}),
        ),
        _verb("compact", "compacts a table now", _compact, _TABLE),
        _verb(
            "ingest",
            "writes a stream into a table (%lake ingest FRAME into TABLE); alone, lists what runs",
            _ingest,
            ("source", _OPTIONAL),
            ("into", _OPTIONAL),
            ("table", _OPTIONAL),
            ("--interval", {"type": float, "default": 10.0, "metavar": "SECONDS"}),
            ("--name", {"default": "default"}),
        ),
        _verb("tail", "shows the changes of a table's log as they come, beside its files", _tail, _TABLE),
        _verb("doctor", "checks Java, jars, packages, memory and logs, and says what to fix", _doctor),
    ]
)
"""The verbs by name."""
