"""MERGE INTO on tables of the lake.

Target and source are joined once; for each joined row a CASE expression with the clauses in their order says what
happens to it and with which values. SQL's rules hold: the first clause that fits decides, and it is an error if
several source rows change one target row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakekit.errors import ColumnNotFoundError, SchemaMismatchError
from lakekit.names import literal, quote
from lakekit.sql import frames, parameters
from lakekit.sql.assign import Assigned, new_value, read_assignments, resolve_assignments
from lakekit.sql.context import Context
from lakekit.sql.dml import at_version, qualifiers, target_table
from lakekit.sql.failures import SyntaxAt
from lakekit.sql.keys import Changes
from lakekit.sql.parse import Cursor, skip_constant
from lakekit.sql.references import Span
from lakekit.sql.rewrite import rewrite
from lakekit.sql.statement import Statement, Target, qualified, read_hint, read_target
from lakekit.sql.text import Edit, SqlText
from lakekit.table import append

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.table.table import Table

_IS_TARGET = "__lake_is_target"
_IS_SOURCE = "__lake_is_source"
_ROW = "__lake_row"
_SOURCE = "__lake_source"


@dataclass
class Clause:
    """One WHEN clause.

    Attributes:
        kind: ``matched``, ``not matched`` or ``not matched by source``.
        place: where it stands.
        condition: what follows AND.
        action: ``update``, ``insert`` or ``delete``.
        star: whether it is UPDATE SET * or INSERT *, and where the star stands.
        assignments: of UPDATE SET.
        columns: of INSERT.
        values: of INSERT.
    """

    kind: str
    place: int
    condition: SqlText | None = None
    action: str = ""
    star: int | None = None
    assignments: list[tuple[tuple[str, ...], int, SqlText]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    values: list[SqlText] = field(default_factory=list)


@dataclass
class Merge:
    """What a MERGE statement says.

    Attributes:
        target: the table to change.
        source: what it is merged with, as text.
        source_alias: the name of the source.
        on: token span of the condition.
        clauses: the WHEN clauses.
    """

    target: Target
    source: SqlText
    source_alias: str
    on: Span
    clauses: list[Clause]

    def has(self, kind: str) -> bool:
        """Whether there is a clause of a kind."""
        return any(c.kind == kind for c in self.clauses)


def merge(context: Context, statement: Statement) -> DataFrame | None:
    """Runs MERGE INTO; None if the table is not one of the lake."""
    cursor = statement.cursor(statement.verb_index)
    cursor.expect("MERGE")
    evolves = cursor.peek().start if cursor.accept("WITH", "SCHEMA", "EVOLUTION") else None
    cursor.expect("INTO")
    target = read_target(cursor, "USING")
    table = target_table(context, statement, target)
    if table is None:
        return None
    if evolves is not None:
        raise SyntaxAt(
            evolves, "MERGE WITH SCHEMA EVOLUTION is not possible.", "Add the columns with ALTER TABLE first."
        )
    wanted = parse_merge(statement, cursor, target)
    if not table.primary_key:
        return _by_delta(context, statement, table, wanted)
    plan = _Plan(statement, wanted, table)
    changes = Changes(context, table, "MERGE")

    def build(version: int) -> DataFrame:
        rows = context.sql(rewrite(context, plan.query(version)))
        return changes.of_matched(rows) if plan.keeps_keys else changes.of_moved(rows, version)

    with changes:
        return frames.commit(context, table.apply_changes(build, operation="MERGE"))


# Reading the statement


def parse_merge(statement: Statement, cursor: Cursor, target: Target) -> Merge:
    """Reads MERGE from USING on.

    Raises:
        SyntaxAt: if it cannot be read.
    """
    cursor.expect("USING")
    start = cursor.index
    name = None
    if cursor.at("("):
        cursor.skip_group()
    else:
        name = cursor.name()
        if cursor.at("("):
            cursor.skip_group()
        _skip_time_travel(cursor)
    stop = cursor.index
    alias = _alias(cursor) or (name.parts[-1] if name is not None and name.parts else _SOURCE)
    cursor.expect("ON")
    first = cursor.index
    _skip_to_when(cursor)
    on = (first, cursor.index)
    if first == cursor.index:
        raise cursor.error("expected a condition")
    clauses = []
    while not cursor.done:
        clauses.append(_clause(statement, cursor))
    if not clauses:
        raise cursor.error("expected WHEN")
    return Merge(target, statement.slice((start, stop)), alias, on, clauses)


def _skip_time_travel(cursor: Cursor) -> None:
    read_hint(cursor)
    start = cursor.index
    cursor.accept("FOR")
    for kind in ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"):
        if cursor.accept(kind, "AS", "OF"):
            if not skip_constant(cursor):
                raise cursor.error(f"expected the {kind.lower()} to read")
            break
    else:
        cursor.index = start
    read_hint(cursor)


def _alias(cursor: Cursor) -> str | None:
    if cursor.accept("AS"):
        return cursor.identifier("an alias").name
    if cursor.peek().is_identifier and not cursor.at("ON"):
        return cursor.next().name
    return None


def _skip_to_when(cursor: Cursor, *stops: str) -> None:
    """Goes on to the next WHEN, or a keyword of `stops`, that is not inside brackets or CASE."""
    cases = 0

    def found(c: Cursor) -> bool:
        nonlocal cases
        if not cases and any(c.at(word) for word in (*stops, "WHEN")):
            return True
        cases += c.at("CASE") - (c.at("END") and cases > 0)
        return False

    cursor.skip_until(found)


def _clause(statement: Statement, cursor: Cursor) -> Clause:
    place = cursor.peek().start
    cursor.expect("WHEN")
    kind = "matched"
    if cursor.accept("NOT"):
        kind = "not matched"
    cursor.expect("MATCHED")
    if kind == "not matched" and cursor.accept("BY", "SOURCE"):
        kind = "not matched by source"
    elif kind == "not matched":
        cursor.accept("BY", "TARGET")
    clause = Clause(kind, place)
    if cursor.accept("AND"):
        start = cursor.index
        _skip_to_when(cursor, "THEN")
        clause.condition = statement.slice((start, cursor.index))
        if not len(clause.condition):
            raise cursor.error("expected a condition")
    cursor.expect("THEN")
    _action(statement, cursor, clause)
    return clause


def _action(statement: Statement, cursor: Cursor, clause: Clause) -> None:
    if clause.kind == "not matched":
        cursor.expect("INSERT")
        clause.action = "insert"
        if cursor.at("*"):
            clause.star = cursor.next().start
            return
        clause.columns = cursor.identifiers() if cursor.at("(") else []
        cursor.expect("VALUES")
        clause.values = _values(statement, cursor)
        return
    if cursor.accept("DELETE"):
        clause.action = "delete"
        return
    cursor.expect("UPDATE")
    cursor.expect("SET")
    clause.action = "update"
    if cursor.at("*"):
        if clause.kind != "matched":
            raise cursor.error("there is no source row to take values from")
        clause.star = cursor.next().start
        return
    ahead = Cursor(cursor.tokens, cursor.index)
    _skip_to_when(ahead)
    clause.assignments = read_assignments(cursor, statement, ahead.index)


def _values(statement: Statement, cursor: Cursor) -> list[SqlText]:
    cursor.expect("(")
    found = []
    while True:
        start = cursor.index
        cursor.skip_until(lambda c: c.at(","))
        if cursor.index == start:
            raise cursor.error("expected a value")
        is_default = cursor.index - start == 1 and statement.tokens[start].keyword == "DEFAULT"
        found.append(SqlText.generated("NULL") if is_default else statement.slice((start, cursor.index)))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return found


# Writing the query


class _Plan:
    """The query whose rows are the changes."""

    def __init__(self, statement: Statement, wanted: Merge, table: Table) -> None:
        self.statement = statement
        self.wanted = wanted
        self.table = table
        self.schema = table.schema
        self.alias = wanted.target.alias or table.name.table
        self.matching = self._matching_keys()
        self._assigned = {id(c): self._assignments(c) for c in wanted.clauses}
        self.keeps_keys = self._keeps_keys()

    def query(self, version: int) -> SqlText:
        """Returns the query at a version of the table."""
        wanted = self.wanted
        target = f"(SELECT *, TRUE AS {_IS_TARGET} FROM {at_version(self.table, version, None)})"
        source: SqlText = wanted.source
        if wanted.has("not matched by source"):
            source = f"(SELECT *, TRUE AS {_IS_SOURCE} FROM " + source + ")"
        on = self.statement.slice(wanted.on)
        cases = SqlText.join([self._case(c) for c in wanted.clauses], " ")
        return SqlText.join(
            [
                self.statement.ctes,
                f"SELECT {_ROW}.* FROM (SELECT CASE ",
                cases,
                f" END AS {_ROW} FROM {target} AS {quote(self.alias)} {self._join()} ",
                source,
                f" AS {quote(wanted.source_alias)} ON ",
                on,
                f") WHERE {_ROW} IS NOT NULL",
            ]
        )

    def _join(self) -> str:
        keeps_source = self.wanted.has("not matched")
        keeps_target = self.wanted.has("not matched by source")
        if keeps_source and keeps_target:
            return "FULL OUTER JOIN"
        return "RIGHT JOIN" if keeps_source else "LEFT JOIN" if keeps_target else "JOIN"

    def _case(self, clause: Clause) -> SqlText:
        is_target = f"{qualified(self.alias, _IS_TARGET)}"
        is_source = f"{qualified(self.wanted.source_alias, _IS_SOURCE)}"
        tests = []
        if clause.kind == "matched":
            if self.wanted.has("not matched"):
                tests.append(SqlText.generated(f"{is_target} IS NOT NULL"))
            if self.wanted.has("not matched by source"):
                tests.append(SqlText.generated(f"{is_source} IS NOT NULL"))
        elif clause.kind == "not matched":
            tests.append(SqlText.generated(f"{is_target} IS NULL"))
        else:
            tests.append(SqlText.generated(f"{is_source} IS NULL"))
        if clause.condition is not None:
            tests.append("(" + clause.condition + ")")
        test = SqlText.join(tests, " AND ") if tests else SqlText.generated("TRUE")
        return "WHEN " + test + " THEN " + self._row(clause)

    def _row(self, clause: Clause) -> SqlText:
        """Returns the struct of new values, old values where keys may move, and the action."""
        parts: list[SqlText | str] = []
        assigned = self._assigned[id(clause)]
        for column in self.schema.fields:
            old = (self.alias, column.name)
            if clause.action == "insert" and column.name not in assigned:
                value = SqlText.generated(f"CAST(NULL AS {column.dataType.simpleString()})")
            elif clause.action == "update" and self._is_matching(clause, column.name, assigned):
                value = SqlText.generated(qualified(*old))
            else:
                value = new_value(
                    column, None if clause.action == "delete" else assigned.get(column.name), old
                )
            parts += [literal(column.name), value]
        if not self.keeps_keys:
            for column in self.schema.fields:
                kept = clause.action != "insert"
                old_value = qualified(self.alias, column.name)
                none = f"CAST(NULL AS {column.dataType.simpleString()})"
                parts += [literal(Changes.old(column.name).strip("`")), old_value if kept else none]
        parts += [literal(Changes.ACTION.strip("`")), literal(clause.action)]
        return "named_struct(" + SqlText.join(parts, ", ") + ")"

    def _assignments(self, clause: Clause) -> dict[str, Assigned]:
        """Returns the values that a clause assigns, by column."""
        name = str(self.table.name)
        if clause.star is not None:
            origin = self.statement.sql.origin(clause.star)
            return {
                f.name: Assigned(SqlText.generated(qualified(self.wanted.source_alias, f.name), origin))
                for f in self.schema.fields
            }
        if clause.action != "insert":
            return resolve_assignments(
                clause.assignments, self.schema, name, qualifiers(self.table, self.wanted.target.alias)
            )
        known = {f.name.lower(): f.name for f in self.schema.fields}
        columns = clause.columns or self.schema.names
        unknown = next((c for c in columns if c.lower() not in known), None)
        if unknown is not None:
            raise ColumnNotFoundError.of(name, unknown, self.schema.names)
        if len(columns) != len(clause.values) or len({c.lower() for c in columns}) < len(columns):
            raise SchemaMismatchError(
                f"INSERT of the MERGE into {name} names {len(columns)} columns and gives {len(clause.values)} values.",
                "Give one value for each column, and name each column once.",
            )
        return {known[c.lower()]: Assigned(v) for c, v in zip(columns, clause.values, strict=True)}

    # Which keys can change

    def _matching_keys(self) -> dict[str, str]:
        """Returns for each key column the source column it equals, if the condition says just that."""
        cursor = Cursor(self.statement.tokens, *self.wanted.on)
        found: dict[str, str] = {}
        while not cursor.done:
            pair = self._equality(cursor)
            if pair is None or (not cursor.done and not cursor.accept("AND")):
                return {}
            found[pair[0]] = pair[1]
        return found if set(found) == set(self.table.primary_key) else {}

    def _equality(self, cursor: Cursor) -> tuple[str, str] | None:
        sides = []
        for step in range(2):
            if not cursor.peek().is_identifier:
                return None
            sides.append(tuple(p.lower() for p in cursor.name().parts))
            if step == 0 and not (cursor.accept("=") or cursor.accept("==")):
                return None
        for target, source in (sides, sides[::-1]):
            key = self._key_column(target)
            if key is not None and len(source) == 2 and source[0] == self.wanted.source_alias.lower():
                return key, source[1]
        return None

    def _key_column(self, parts: Sequence[str]) -> str | None:
        for qualifier in qualifiers(self.table, self.wanted.target.alias):
            if tuple(parts[:-1]) == qualifier:
                return next((k for k in self.table.primary_key if k.lower() == parts[-1]), None)
        return None

    def _is_matching(self, clause: Clause, column: str, assigned: dict[str, Assigned]) -> bool:
        """Tells whether a key column is assigned the source column that it equals anyway."""
        if column not in self.matching or clause.kind != "matched" or column not in assigned:
            return False
        return self._is_source_column(assigned[column], self.matching[column])

    def _is_source_column(self, assigned: Assigned | None, column: str) -> bool:
        if assigned is None or assigned.value is None:
            return False
        text = str(assigned.value).replace("`", "").replace(" ", "").lower()
        return text == f"{self.wanted.source_alias}.{column}".lower()

    def _keeps_keys(self) -> bool:
        """Tells whether updates keep keys, and inserted keys are those that no target row matched."""
        return all(self._keeps_key(clause, self._assigned[id(clause)]) for clause in self.wanted.clauses)

    def _keeps_key(self, clause: Clause, assigned: dict[str, Assigned]) -> bool:
        key = self.table.primary_key
        if clause.action == "update":
            return all(self._is_matching(clause, k, assigned) for k in key if k in assigned)
        if clause.action == "insert":
            return bool(self.matching) and all(
                self._is_source_column(assigned.get(k), self.matching[k]) for k in key
            )
        return True


# Append tables


def _by_delta(context: Context, statement: Statement, table: Table, wanted: Merge) -> DataFrame:
    """Hands a MERGE into an append table to Delta, with the source replaced where it is a table of the lake."""
    target = wanted.target
    source = rewrite(context, "SELECT * FROM " + wanted.source)
    start = statement.text.index(str(wanted.source), target.name.end)
    stop = start + len(wanted.source)
    alias_follows = wanted.source_alias == _SOURCE or statement.text[stop:].lstrip()[:3].upper() == "ON "
    edits = [
        Edit(target.name.start, target.name.end, table.relation()),
        Edit(
            start, stop, "(" + source + ")" + (f" AS {quote(wanted.source_alias)}" if alias_follows else "")
        ),
    ]
    if target.hint is not None:
        edits.append(Edit(target.hint[1], target.hint[1] + len(target.hint[0]), ""))
    final = statement.sql.replace(edits)
    bound, values = parameters.bind(final, context.params)
    with context.translated(bound):
        return frames.commit(context, append.statement(table, str(bound), values))
