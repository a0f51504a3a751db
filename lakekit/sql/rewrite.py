"""Puts what Spark can read in the place of every reference to a table of the lake; the rest stays as it was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakekit.errors import QueryError, TableNotFoundError
from lakekit.names import BUCKET_COLUMN, quote
from lakekit.skipping.predicate import Predicate
from lakekit.skipping.prune import allowed_buckets
from lakekit.skipping.values import Columns
from lakekit.sql import constants, hints, system
from lakekit.sql.context import Context
from lakekit.sql.failures import SyntaxAt
from lakekit.sql.fetching import can_fetch, fetched, named_columns
from lakekit.sql.lexer import Token, tokenize
from lakekit.sql.predicates import conditions
from lakekit.sql.references import Reference, Scan
from lakekit.sql.scanner import scan
from lakekit.sql.text import Edit, SqlText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.storage.snapshot import Snapshot
    from lakekit.table.table import Table


@dataclass
class Found:
    """A reference to a table of the lake.

    Attributes:
        reference: where it stands.
        parts: its name.
        table: the table.
        system: the system table that is meant, without ``$``.
        options: options of its hint and of the session.
        version: the version it asks for.
        predicate: what must be true of the rows wanted of it; None if nothing is known.
        rows: those rows, and perhaps others, if they were fetched.
    """

    reference: Reference
    parts: tuple[str, ...]
    table: Table
    system: str | None
    options: hints.Options
    version: int | None
    predicate: Predicate | None = None
    rows: DataFrame | None = None

    @property
    def from_files(self) -> bool:
        """Whether the rows of the table itself are meant, without those that only its log has."""
        return self.system is None and (self.options.table.read_mode != "log" or self.version is not None)

    def snapshot(self) -> Snapshot:
        """Returns the state of the table that is read."""
        return self.table.snapshot(self.version)


def rewrite(context: Context, sql: SqlText, start: int = 0, fetching: bool = False) -> SqlText:
    """Returns a statement with its references to tables of the lake replaced.

    Args:
        context: the statement on its way.
        sql: a query, or a statement that holds one.
        start: index of the token where the query begins.
        fetching: whether to fetch the rows of tables of which the query wants few.

    Raises:
        LakeError: for a version, option or system table that does not exist.
    """
    text = str(sql)
    scanned = scan(tokenize(text), start)
    found = find(context, sql, scanned)
    if fetching:
        _fetch(context, scanned, found)
    names = _aliases(found)
    edits: list[Edit] = []
    for item in found:
        edits.extend(_edits(context, item, names[item.reference.name.start], text))
    if found:
        edits.extend(_qualifiers(scanned, found, names, edits))
    return sql.replace(edits)


def find(context: Context, sql: SqlText, scanned: Scan) -> list[Found]:
    """Returns the references that mean tables of the lake, with what is wanted of them."""
    text = str(sql)
    found = []
    for reference in scanned.references:
        with context.translated(sql):
            item = _resolve(context, text, scanned, reference)
        if item is not None:
            found.append(item)
        elif reference.hint is not None:
            raise SyntaxAt(
                reference.hint[1],
                "OPTIONS(…) can only be given for a table of the lake.",
                "Leave the hint out.",
            )
    _add_predicates(context, text, scanned, found)
    return found


def _resolve(context: Context, text: str, scanned: Scan, reference: Reference) -> Found | None:
    parts = context.parts(reference.name, text)
    split = system.split_system_name(parts[-1]) if parts else None
    table_parts = (*parts[:-1], split[0]) if split else parts
    table = context.find(table_parts) if table_parts else None
    if table is None:
        if split is not None and split[1] in system.SYSTEM_TABLES:
            raise TableNotFoundError.of(".".join(table_parts), context.lake.tables())
        return None
    given = hints.parse_hint(reference.hint[0]) if reference.hint else {}
    options = hints.resolve(
        given, context.reading_settings, table, changes=split is not None and split[1] == "changes"
    )
    version = _version(context, text, scanned, reference, options, table)
    return Found(reference, parts, table, split[1] if split else None, options, version)


def _version(
    context: Context, text: str, scanned: Scan, reference: Reference, options: hints.Options, table: Table
) -> int | None:
    """Returns the version that a reference asks for, in its time travel clause or its options."""
    version: Any = options.version
    timestamp: Any = options.timestamp
    if reference.temporal is not None:
        if version is not None or timestamp is not None:
            raise SyntaxAt(reference.name.start, "Time travel is given twice, as a clause and as an option.")
        first, stop = reference.temporal.tokens
        span = text[scanned.tokens[first].start : scanned.tokens[stop - 1].end]
        value = _moment(context, span) if not reference.temporal.is_version else context.value(span)
        version, timestamp = (value, None) if reference.temporal.is_version else (None, value)
    elif version is None and timestamp is None:
        at = context.reads.at
        version, timestamp = (at, None) if isinstance(at, int) else (None, at)
    if version is not None:
        if isinstance(version, str) and version.strip().isdigit():
            version = int(version)
        if isinstance(version, bool) or not isinstance(version, int):
            raise QueryError(
                f"{version!r} is no version of table {table.name}.", "A version is a whole number."
            )
        return table.snapshot(version).version
    return None if timestamp is None else table.version_at(timestamp)


def _moment(context: Context, expression: str) -> Any:
    value = context.value(expression)
    if value is None:
        raise QueryError(f"The timestamp {expression} is null.", "Give a time such as '2024-01-31 12:00:00'.")
    return value if isinstance(value, str) or hasattr(value, "hour") else str(value)


def _add_predicates(context: Context, text: str, scanned: Scan, found: Sequence[Found]) -> None:
    wanted = conditions(scanned, text)
    by_place = {item.reference.name.start: item for item in found if item.system is None}
    open_predicates = {
        place: (Columns(item.snapshot().schema_json), wanted[place])
        for place, item in by_place.items()
        if place in wanted
    }
    bound = constants.bind(context.lake.spark, text, context.params, open_predicates)
    for place, predicate in bound.items():
        by_place[place].predicate = predicate


def _fetch(context: Context, scanned: Scan, found: Sequence[Found]) -> None:
    if not context.lake.runner.is_local or not can_fetch(scanned):
        return
    columns = named_columns(scanned)
    for item in found:
        if item.from_files and item.reference.options is None:
            item.rows = fetched(item.table, item.snapshot(), item.predicate, columns)


def _aliases(found: Sequence[Found]) -> dict[int, str]:
    """Returns for each reference the name by which the query can call its columns.

    Two tables of one name from two databases, told apart by the database, get the full name.
    """
    plain = [item for item in found if item.reference.alias is None]
    named: dict[str, set[str]] = {}
    for item in plain:
        named.setdefault(item.parts[-1].lower(), set()).add(str(item.table.name))
    aliases = {}
    for item in found:
        last = item.parts[-1]
        crowded = item.reference.alias is None and len(named[last.lower()]) > 1
        aliases[item.reference.name.start] = item.reference.alias or (
            f"{item.table.name.database}.{last}" if crowded else last
        )
    return aliases


def _edits(context: Context, item: Found, alias: str, text: str) -> list[Edit]:
    reference = item.reference
    edits = []
    if reference.hint_outside is not None:
        edits.append(Edit(*reference.hint_outside, ""))
    source, is_query = _source(context, item, text)
    if reference.form == "query":
        return [
            Edit(reference.name.start, reference.end, source if is_query else f"(SELECT * FROM {source})")
        ]
    if reference.form == "argument":
        inner = f"({source})" if not is_query else source
        return [Edit(reference.name.start, reference.end, f"TABLE {inner}")]
    needs_alias = reference.alias is None
    if needs_alias and reference.alias_at == reference.end:
        source += f" AS {quote(alias)}"
    elif needs_alias:
        edits.append(Edit(reference.alias_at, reference.alias_at, f" AS {quote(alias)}"))
    return [*edits, Edit(reference.name.start, reference.end, source)]


def _source(context: Context, item: Found, text: str) -> tuple[str, bool]:
    """Returns the text for a table, and whether it is a query in parentheses."""
    if item.rows is not None:
        return quote(context.view(item.rows)), False
    if item.system is not None:
        view = context.view(system.rows(item.table, item.system, item.version, item.options))
        return quote(view), False
    if not item.from_files:
        return quote(context.view(item.table.freshest())), False
    relation = item.table.relation(item.version)
    if item.reference.options is not None:
        relation += " " + text[slice(*item.reference.options)]
    if not item.table.primary_key:
        return relation, False
    where = ""
    if item.predicate is not None:
        buckets = allowed_buckets(item.snapshot(), item.predicate)
        if buckets is not None and len(buckets) < (item.snapshot().buckets or 0):
            # No bucket at all: the condition is true for no row.
            listed = ", ".join(map(str, sorted(buckets))) or "NULL"
            where = f" WHERE {quote(BUCKET_COLUMN)} IN ({listed})"
    names_metadata = "_metadata" in text and any(t.name == "_metadata" for t in tokenize(text))
    extra = ", _metadata" if names_metadata else ""
    return f"(SELECT * EXCEPT ({quote(BUCKET_COLUMN)}){extra} FROM {relation}{where})", True


def _qualifiers(
    scanned: Scan, found: Sequence[Found], names: Mapping[int, str], edits: Sequence[Edit]
) -> list[Edit]:
    """Returns the edits that turn ``db.table.column`` into ``alias.column``, as a subquery has no database."""
    aliases: dict[tuple[str, ...], str] = {}
    for item in found:
        if item.reference.alias is None:
            alias = names[item.reference.name.start]
            full = (*item.table.name[:1], item.parts[-1].lower())
            aliases[full] = alias
            with_catalog = ("spark_catalog", *full)
            aliases[with_catalog] = alias
            aliases[tuple(p.lower() for p in item.parts)] = alias
    taken = [(e.start, e.end) for e in edits if e.end > e.start]
    result = []
    for chain in _chains(scanned.tokens):
        lower = tuple(t.name.lower() for t in chain)
        length = next((n for n in (3, 2) if len(lower) > n and lower[:n] in aliases), 0)
        if not length or lower[0] in scanned.aliases:
            continue
        start, end = chain[0].start, chain[length - 1].end
        if not any(low < end and start < high for low, high in taken):
            result.append(Edit(start, end, quote(aliases[lower[:length]])))
    return result


def _chains(tokens: Sequence[Token]) -> list[list[Token]]:
    """Returns the names with dots in a statement; a trailing ``.*`` counts as a part."""
    chains = []
    index = 0
    while index < len(tokens):
        chain = [tokens[index]] if tokens[index].is_identifier else []
        while chain and index + 2 < len(tokens) and tokens[index + 1].at("."):
            after = tokens[index + 2]
            if not after.is_identifier and not after.at("*"):
                break
            chain.append(after)
            index += 2
        if len(chain) > 1:
            chains.append(chain)
        index += 1
    return chains
