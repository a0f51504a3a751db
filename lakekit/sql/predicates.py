"""What a query's conditions say about the rows it wants of each table, as data.

A condition is read only where it has one of a few shapes: a column compared with constants, joined by AND and OR.
Everything else becomes `Anything`. Constants keep the user's text and are computed by Spark, or read here where
there is only one way to read them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from lakekit.skipping.predicate import (
    And,
    Anything,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Operator,
    Or,
    Predicate,
    StartsWith,
    all_of,
    any_of,
)
from lakekit.sql.lexer import Kind, Token, string_value
from lakekit.sql.parse import Cursor, skip_constant
from lakekit.sql.references import Block, Reference, Scan, Span

_FLIPPED: dict[str, Operator] = {"=": "=", "==": "=", "<=>": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_STRAIGHT: dict[str, Operator] = {"=": "=", "==": "=", "<=>": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_OTHER_TABLE = "not about this table"
_NO_SHAPE = "not a comparison of a column with constants"


@dataclass(frozen=True)
class Constant:
    """A constant of the query that is not computed yet: its span in the text.

    Attributes:
        start: where it begins.
        end: where it ends.
        null_safe: whether it stands behind ``<=>``.
    """

    start: int
    end: int
    null_safe: bool = False


Find = Callable[[Sequence[str]], "str | None"]


def conditions(scan: Scan, text: str) -> dict[int, Predicate]:
    """Returns for each reference of a scan, by its place, what must be true of the rows wanted of it.

    Args:
        scan: the references and query blocks.
        text: the statement.
    """
    wanted: dict[int, Predicate] = {}
    for block in scan.blocks:
        for index, relation in enumerate(block.relations):
            reference = relation.reference
            if reference is not None and reference.is_plain and block.is_plain:
                found = [
                    _read(scan.tokens, text, span, block, reference)
                    for span in _binding_conditions(block, index)
                ]
                if found:
                    wanted[reference.name.start] = all_of(*found)
    return wanted


def _binding_conditions(block: Block, index: int) -> list[Span]:
    """Returns the conditions that every row wanted of the relation fulfils, or fails to be null-extended.

    The condition of an inner join, and WHERE, drop every row in which a comparison is not true, and rows that an
    outer join filled with nulls are among those: what they say holds for any relation before them. The condition
    of a left join only chooses among the rows of its right side.
    """
    spans = []
    for other, relation in enumerate(block.relations):
        inner = relation.join in ("JOIN", "INNER JOIN", "CROSS JOIN") and other >= index
        own = other == index and relation.join.split(" ")[0] in ("LEFT", "SEMI", "ANTI")
        if relation.on is not None and (inner or own):
            spans.append(relation.on)
    return [*spans, block.where] if block.where is not None else spans


def _read(tokens: Sequence[Token], text: str, span: Span, block: Block, reference: Reference) -> Predicate:
    reader = _Reader(tokens, text, _finder(block, reference))
    predicate = reader.condition(*span)
    outer = any(word in r.join for r in block.relations for word in ("LEFT", "RIGHT", "FULL"))
    return _without_null_tests(predicate) if outer else predicate


def _without_null_tests(predicate: Predicate) -> Predicate:
    """Replaces what is true for the nulls that an outer join fills in."""
    if isinstance(predicate, And | Or):
        return replace(predicate, children=tuple(_without_null_tests(c) for c in predicate.children))
    null_safe = isinstance(predicate, Comparison) and predicate.value.null_safe
    if isinstance(predicate, IsNull) or null_safe:
        return Anything(str(predicate), "an outer join makes nulls too")
    return predicate


def _finder(block: Block, reference: Reference) -> Find:
    """Returns a function that tells the column of the reference that a dotted name surely means."""
    qualifiers: list[list[str]] = []
    if reference.alias is not None:
        qualifiers.append([reference.alias.lower()])
    else:
        parts = [p.lower() for p in reference.name.parts]
        qualifiers.extend(parts[i:] for i in range(len(parts)))
    alone = len(block.relations) == 1

    def find(parts: Sequence[str]) -> str | None:
        lower = [p.lower() for p in parts]
        for qualifier in qualifiers:
            if len(lower) > len(qualifier) and lower[: len(qualifier)] == qualifier:
                return ".".join(parts[len(qualifier) :])
        return ".".join(parts) if alone else None

    return find


class _Reader:
    """Reads conditions about one table."""

    def __init__(self, tokens: Sequence[Token], text: str, find: Find) -> None:
        self.tokens = tokens
        self.text = text
        self.find = find

    def condition(self, start: int, stop: int) -> Predicate:
        if start >= stop:
            return Anything()
        either = self._split(start, stop, "OR")
        return any_of(*(self._conjunction(*span) for span in either))

    def _conjunction(self, start: int, stop: int) -> Predicate:
        return all_of(*(self._leaf(*span) for span in self._split(start, stop, "AND")))

    def _split(self, start: int, stop: int, word: str) -> list[Span]:
        """Splits at a keyword outside of brackets, CASE and BETWEEN."""
        cursor = Cursor(self.tokens, start, stop)
        spans, first, cases, betweens = [], start, 0, 0
        while not cursor.done:
            token = cursor.peek()
            keyword = token.keyword
            if token.at("(") or token.at("["):
                cursor.skip_group()
                continue
            cases += (keyword == "CASE") - (keyword == "END" and cases > 0)
            if not cases:
                betweens += keyword == "BETWEEN"
                if keyword == "AND" and betweens:
                    betweens -= 1
                elif keyword == word:
                    spans.append((first, cursor.index))
                    first = cursor.index + 1
            cursor.index += 1
        return [*spans, (first, stop)]

    def _leaf(self, start: int, stop: int) -> Predicate:
        cursor = Cursor(self.tokens, start, stop)
        if cursor.at("(") and cursor.peek(1).keyword not in ("SELECT", "WITH", "FROM", "TABLE", "VALUES"):
            cursor.skip_group()
            if cursor.done:
                return self.condition(start + 1, stop - 1)
            cursor.index = start
        found = self._column_first(cursor) or self._constant_first(cursor)
        if found is not None and cursor.done:
            return found
        shown = self.text[self.tokens[start].start : self.tokens[stop - 1].end] if start < stop else ""
        return Anything(shown, self._reason(start))

    def _reason(self, start: int) -> str:
        name = self._name(Cursor(self.tokens, start))
        return _OTHER_TABLE if name is not None and self.find(name) is None else _NO_SHAPE

    @staticmethod
    def _name(cursor: Cursor) -> list[str] | None:
        token = cursor.peek()
        if not token.is_identifier or cursor.peek(1).at("(") or token.text[0].isdigit():
            return None
        return list(cursor.name().parts)

    def _column_first(self, cursor: Cursor) -> Predicate | None:
        start = cursor.index
        parts = self._name(cursor)
        column = self.find(parts) if parts else None
        found = None if column is None else self._test(cursor, column)
        if found is None:
            cursor.index = start
        return found

    def _test(self, cursor: Cursor, column: str) -> Predicate | None:
        """Reads what follows a column."""
        symbol = cursor.peek().text
        if cursor.peek().kind is Kind.SYMBOL and symbol in _STRAIGHT:
            cursor.index += 1
            value = self._constant(cursor, symbol == "<=>")
            return None if value is None else Comparison(column, _STRAIGHT[symbol], value)
        if cursor.accept("IS", "NULL"):
            return IsNull(column)
        if cursor.accept("IS", "NOT", "NULL"):
            return IsNotNull(column)
        if cursor.accept("IN", "("):
            return self._in(cursor, column)
        if cursor.accept("BETWEEN"):
            low = self._constant(cursor)
            high = self._constant(cursor) if low is not None and cursor.accept("AND") else None
            return (
                None
                if high is None
                else all_of(Comparison(column, ">=", low), Comparison(column, "<=", high))
            )
        if cursor.accept("LIKE") and cursor.peek().kind is Kind.STRING:
            return _like(column, cursor.next().text)
        return None

    def _in(self, cursor: Cursor, column: str) -> Predicate | None:
        values = []
        while (value := self._constant(cursor)) is not None:
            values.append(value)
            if not cursor.accept(","):
                break
        return In(column, tuple(values)) if values and cursor.accept(")") else None

    def _constant_first(self, cursor: Cursor) -> Predicate | None:
        value = self._constant(cursor)
        symbol = cursor.peek().text
        if value is None or cursor.peek().kind is not Kind.SYMBOL or symbol not in _FLIPPED:
            return None
        cursor.index += 1
        parts = self._name(cursor)
        column = self.find(parts) if parts else None
        if column is None:
            return None
        return Comparison(column, _FLIPPED[symbol], replace(value, null_safe=symbol == "<=>"))

    def _constant(self, cursor: Cursor, null_safe: bool = False) -> Constant | None:
        start = cursor.peek().start
        if not skip_constant(cursor, pure=True):
            return None
        return Constant(start, cursor.tokens[cursor.index - 1].end, null_safe)


def _like(column: str, literal: str) -> Predicate | None:
    pattern = string_value(literal)
    if "\\" in literal or literal[0] in "rR":
        return None
    wildcards = [pattern.index(w) for w in "%_" if w in pattern]
    if not wildcards:
        return None
    return StartsWith(column, pattern[: min(wildcards)]) if min(wildcards) else IsNotNull(column)


def simple_value(text: str) -> object | None:
    """Returns the value of a plain literal: a whole or decimal number or a text; None for anything else."""
    if text.isascii() and text.lstrip("-").isdigit() and not text.startswith("--"):
        return int(text)
    if text[:1] in "'\"" and "\\" not in text and text[1:-1].find(text[0]) < 0:
        return string_value(text)
    whole, _, fraction = text.partition(".")
    if text.isascii() and whole.isdigit() and fraction.isdigit():
        return Decimal(text)
    return None
