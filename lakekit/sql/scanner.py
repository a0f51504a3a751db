"""Finding the tables a query reads, and which conditions surely hold for the rows it wants of each.

This walks over the clauses of Spark's grammar that name tables: FROM, JOIN, the comma between relations, TABLE, and
the names that WITH defines. Expressions are skipped, never understood, so that anything Spark can compute passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakekit.sql.lexer import Kind, Token
from lakekit.sql.parse import QUERY_STARTS, Cursor, Name, skip_constant
from lakekit.sql.references import Block, Reference, Relation, Scan, Temporal

_SET_OPERATORS = {"UNION", "INTERSECT", "EXCEPT", "MINUS"}
_BY_CLAUSES = {"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"}
_CLAUSES = {"WHERE", "HAVING", "LIMIT", "OFFSET", "WINDOW", "SELECT", "INSERT", "QUALIFY"}
_JOIN_WORDS = {"NATURAL", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "JOIN"}
_NO_ALIAS = {
    *_BY_CLAUSES,
    *_CLAUSES,
    *_SET_OPERATORS,
    *_JOIN_WORDS,
    *(
        "ON",
        "USING",
        "LATERAL",
        "PIVOT",
        "UNPIVOT",
        "TABLESAMPLE",
        "SET",
        "VALUES",
        "FOR",
        "WITH",
        "WHEN",
        "THEN",
    ),
    *("DO", "END"),
}
# After one of these an operand comes, whatever the next word is.
_WANTS_OPERAND = {
    *("AND", "OR", "NOT", "WHERE", "ON", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "IN", "IS"),
    *("THEN", "ELSE", "WHEN", "CASE", "SELECT", "BY"),
}
_NO_CALL = {
    *_WANTS_OPERAND,
    *_SET_OPERATORS,
    *("AS", "ALL", "ANY", "SOME", "DISTINCT", "EXISTS", "FROM", "JOIN", "VALUES", "HAVING"),
}
_BEFORE_TABLE = {"AS", "ALL", "DISTINCT", *_SET_OPERATORS}


def scan(tokens: Sequence[Token], start: int = 0, stop: int | None = None) -> Scan:
    """Finds the tables that the tokens read.

    Args:
        tokens: tokens of a statement.
        start: index of the first token of the query.
        stop: index behind its last token.
    """
    scanner = _Scanner(Cursor(tokens, start, stop))
    scanner.region(frozenset(), _Region())
    return scanner.found


@dataclass
class _Region:
    """State of the walk between a pair of parentheses."""

    block: Block | None = None
    in_from: bool = False
    expects_relation: bool = False
    is_call: bool = False
    has_query: bool = False
    join: str = ""
    ctes: frozenset[str] = frozenset()
    condition: tuple[str, int] | None = None


class _Scanner:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.found = Scan(cursor.tokens)

    def region(self, ctes: frozenset[str], region: _Region) -> None:
        """Walks to the closing parenthesis of the region, or to the end."""
        cursor = self.cursor
        region.ctes = ctes
        first = cursor.index
        while not cursor.done:
            token = cursor.peek()
            if token.at(")"):
                break
            before = cursor.index
            if region.expects_relation and not self._is_query_start():
                self._relation(region)
            elif token.at("("):
                self._group(region)
            elif token.kind is Kind.WORD and not self._is_part_of_name():
                self._word(region, token.keyword, first)
            elif token.at(",") and region.in_from:
                self._end_condition(region)
                region.expects_relation, region.join = True, ""
                cursor.index += 1
            elif token.at(";"):
                # The next statement of a script.
                self._end_from(region)
                region.block, region.has_query, region.ctes = None, False, ctes
                cursor.index += 1
            elif token.at("|>"):
                self._end_from(region)
                # The rows of a pipe are what its earlier steps made of them.
                region.block = None
                cursor.index += 1
            else:
                cursor.index += 1
            if cursor.index == before:
                cursor.index += 1
        self._end_from(region)

    def _is_query_start(self) -> bool:
        token, after = self.cursor.peek(), self.cursor.peek(1)
        if token.keyword == "VALUES":
            return False
        return token.keyword in QUERY_STARTS and not after.at(".")

    def _is_part_of_name(self) -> bool:
        before, after = self.cursor.previous, self.cursor.peek(1)
        return (before is not None and before.at(".")) or (after.at(".") and not self.cursor.at("FROM"))

    def _group(self, region: _Region, child: _Region | None = None) -> None:
        """Walks over a pair of parentheses."""
        before = self.cursor.previous
        if child is None:
            called = before is not None and before.is_identifier and before.keyword not in _NO_CALL
            child = _Region(is_call=called)
        self.cursor.index += 1
        self.region(region.ctes, child)
        self.cursor.accept(")")

    def _word(self, region: _Region, keyword: str, first: int) -> None:
        cursor = self.cursor
        if keyword == "WITH" and self._ctes(region):
            return
        if keyword == "FROM" and self._begins_from(region, first):
            self._end_from(region)
            if region.block is None or region.block.relations:
                region.block = Block(selects=region.block is not None and region.block.selects)
            self.found.blocks.append(region.block)
            region.in_from = region.expects_relation = region.has_query = True
            region.join = ""
        elif keyword == "SELECT":
            self._end_from(region)
            # Hive's FROM t SELECT …: the block goes on.
            if region.block is None or region.block.selects:
                region.block = Block()
            region.block.selects = region.has_query = True
        elif keyword in _JOIN_WORDS and self._join(region):
            return
        elif keyword in ("ON", "USING") and region.in_from and region.join:
            self._end_condition(region)
            region.condition = ("ON", cursor.index + 1) if keyword == "ON" else None
        elif keyword == "TABLE" and self._table_query(region, first):
            return
        elif region.block is not None:
            self._clause(region, region.block, keyword)
        cursor.index += 1

    def _clause(self, region: _Region, block: Block, keyword: str) -> None:
        """Looks at a word behind a FROM clause that may end it."""
        if keyword == "LATERAL" and self.cursor.peek(1).keyword == "VIEW":
            self._end_from(region)
            block.relations.append(Relation(None))
        elif keyword in ("PIVOT", "UNPIVOT") and region.in_from:
            block.is_plain = False
        elif self._is_clause(keyword):
            self._end_from(region)
            if keyword == "WHERE":
                region.condition = ("WHERE", self.cursor.index + 1)
            elif keyword in _SET_OPERATORS and block.relations:
                region.block = None

    def _is_clause(self, keyword: str) -> bool:
        """Tells a clause from a column or function of that name.

        A condition that seems too long is of no use, one that seems too short would be wrong.
        """
        before, after = self.cursor.previous, self.cursor.peek(1)
        if keyword in _BY_CLAUSES:
            return after.keyword == "BY"
        if keyword in _SET_OPERATORS:
            return after.keyword in QUERY_STARTS | {"ALL", "DISTINCT"} or after.at("(")
        if keyword not in _CLAUSES or before is None:
            return keyword in _CLAUSES
        wants_operand = before.keyword in _WANTS_OPERAND or (
            before.kind is Kind.SYMBOL and before.text not in (")", "]", "*", "|>")
        )
        if keyword == "WINDOW":
            return not wants_operand and self.cursor.peek(2).keyword == "AS"
        operator = after.kind is Kind.SYMBOL and after.text not in ("(", ":", "-", "+", "?", "~")
        return not wants_operand and not operator

    def _begins_from(self, region: _Region, first: int) -> bool:
        """Tells a FROM clause from the FROM inside EXTRACT, TRIM, SUBSTRING, OVERLAY and DISTINCT FROM."""
        before = self.cursor.previous if self.cursor.index > first else None
        if before is not None and before.keyword == "DISTINCT":
            return False
        return not region.is_call or region.has_query or before is None

    def _end_condition(self, region: _Region) -> None:
        if region.condition is None or region.block is None:
            return
        kind, start = region.condition
        region.condition = None
        if kind == "WHERE":
            region.block.where = (start, self.cursor.index)
        elif region.block.relations:
            region.block.relations[-1].on = (start, self.cursor.index)

    def _end_from(self, region: _Region) -> None:
        self._end_condition(region)
        region.in_from = region.expects_relation = False

    def _join(self, region: _Region) -> bool:
        """Reads ``LEFT OUTER JOIN`` and the like, also ``|> JOIN`` of pipes."""
        cursor = self.cursor
        ahead = 0
        words = []
        while (keyword := cursor.peek(ahead).keyword) in _JOIN_WORDS:
            words.append(keyword)
            ahead += 1
            if keyword == "JOIN":
                break
        if not words or words[-1] != "JOIN":
            return False
        self._end_condition(region)
        if region.block is None:
            # Joined to the rows of a pipe.
            region.block = Block([Relation(None)])
            self.found.blocks.append(region.block)
        region.in_from = region.expects_relation = True
        region.join = " ".join(w for w in words if w != "OUTER")
        cursor.index += ahead
        return True

    def _ctes(self, region: _Region) -> bool:
        """Reads ``WITH a AS (…), b(x) AS (…)``; other uses of WITH are left alone."""
        cursor = self.cursor
        start = cursor.index
        cursor.index += 1
        recursive = cursor.accept("RECURSIVE")
        found = False
        while self._cte(region, recursive):
            found = True
            if not cursor.accept(","):
                break
        if found:
            region.expects_relation = region.in_from = False
        else:
            cursor.index = start
        return found

    def _cte(self, region: _Region, recursive: bool) -> bool:
        cursor = self.cursor
        start = cursor.index
        if not cursor.peek().is_identifier:
            return False
        name = cursor.next().name.lower()
        if cursor.at("(") and cursor.peek(1).keyword not in QUERY_STARTS and not cursor.peek(1).at("("):
            cursor.skip_group()
        if cursor.accept("MAX", "RECURSION", "LEVEL"):
            cursor.index += 1
        cursor.accept("AS")
        if not cursor.at("("):
            cursor.index = start
            return False
        # Without RECURSIVE the name means the table inside its own definition.
        own = _Region(ctes=region.ctes | {name} if recursive else region.ctes)
        cursor.index += 1
        self.region(own.ctes, own)
        cursor.accept(")")
        region.ctes = region.ctes | {name}
        return True

    def _table_query(self, region: _Region, first: int) -> bool:
        """Reads ``TABLE t`` where a query or a function's argument can stand."""
        cursor = self.cursor
        before = cursor.previous if cursor.index > first else None
        fits = (
            before is None
            or before.keyword in _BEFORE_TABLE
            or any(before.at(s) for s in ("(", ",", "=>", ")"))
        )
        parenthesised = cursor.peek(1).at("(")
        named = cursor.peek(2 if parenthesised else 1)
        if not fits or not named.is_identifier or named.keyword in _NO_ALIAS | {"FROM", "AS"} | QUERY_STARTS:
            return False
        is_argument = region.is_call and not region.has_query
        if parenthesised and not is_argument:
            return False
        self._end_from(region)
        region.has_query = not is_argument
        start = cursor.peek().start
        cursor.index += 2 if parenthesised else 1
        name = cursor.name()
        if parenthesised:
            cursor.accept(")")
        end = cursor.tokens[cursor.index - 1].end
        span = Name(name.parts, start, end, name.expression)
        if not self._is_cte(name, region):
            self.found.references.append(Reference(span, end, form="argument" if is_argument else "query"))
        return True

    def _is_cte(self, name: Name, region: _Region) -> bool:
        return len(name.parts) == 1 and name.parts[0].lower() in region.ctes

    def _relation(self, region: _Region) -> None:
        """Reads one relation with its alias."""
        cursor = self.cursor
        region.expects_relation = False
        cursor.accept("LATERAL")
        reference: Reference | None = None
        relation = Relation(None, region.join)
        if region.block is None:
            region.block = Block()
            self.found.blocks.append(region.block)
        region.block.relations.append(relation)
        if cursor.at("("):
            # Either a query, or relations in parentheses, whose conditions stay unused.
            self._group(region, _Region(in_from=True, expects_relation=True))
        elif cursor.at("VALUES"):
            self._inline_table(region)
        elif cursor.peek().is_identifier:
            index = cursor.index
            name = cursor.name()
            if cursor.at("("):
                self._group(region)
            elif self._is_cte(name, region):
                pass
            else:
                cursor.index = index
                reference = self._reference()
                relation.reference = reference
                self.found.references.append(reference)
        else:
            return
        self._alias(reference)

    def _inline_table(self, region: _Region) -> None:
        cursor = self.cursor
        cursor.index += 1
        while not cursor.done:
            if cursor.at("("):
                self._group(region)
            elif not skip_constant(cursor):
                return
            after = cursor.peek(1)
            if not cursor.at(",") or after.kind is Kind.WORD or after.kind is Kind.QUOTED:
                return
            cursor.index += 1

    def _reference(self) -> Reference:
        cursor = self.cursor
        name = cursor.name()
        reference = Reference(name, name.end)
        self._hint(reference)
        self._temporal(reference)
        self._hint(reference)
        reference.end = cursor.tokens[cursor.index - 1].end
        if cursor.at("WITH", "("):
            start = cursor.next().start
            cursor.skip_group()
            reference.end = cursor.tokens[cursor.index - 1].end
            reference.options = (start, reference.end)
        return reference

    def _hint(self, reference: Reference) -> None:
        token = self.cursor.peek()
        if (
            token.kind is Kind.HINT
            and reference.hint is None
            and token.text[3:].lstrip()[:7].upper() == "OPTIONS"
        ):
            reference.hint = (token.text, token.start)
            self.cursor.index += 1

    def _temporal(self, reference: Reference) -> None:
        cursor = self.cursor
        ahead = 1 if cursor.at("FOR") else 0
        kind = cursor.peek(ahead).keyword
        if kind not in ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"):
            return
        if cursor.peek(ahead + 1).keyword != "AS" or cursor.peek(ahead + 2).keyword != "OF":
            return
        cursor.index += ahead + 3
        start = cursor.index
        if not skip_constant(cursor):
            raise cursor.error(f"expected the {kind.lower()} to read")
        reference.temporal = Temporal("VERSION" in kind, (start, cursor.index))

    def _alias(self, reference: Reference | None) -> None:
        cursor = self.cursor
        if cursor.at("TABLESAMPLE"):
            if reference is not None:
                reference.is_plain = False
            cursor.index += 1
            cursor.skip_group()
            if cursor.accept("REPEATABLE"):
                cursor.skip_group()
        if reference is not None:
            reference.alias_at = cursor.tokens[cursor.index - 1].end
        token = cursor.peek()
        if token.keyword == "AS" and cursor.peek(1).is_identifier:
            cursor.index += 1
            token = cursor.peek()
        elif not token.is_identifier or token.keyword in _NO_ALIAS:
            return
        cursor.index += 1
        self.found.aliases.add(token.name.lower())
        renames = cursor.at("(")
        if renames:
            cursor.skip_group()
        if reference is not None:
            reference.alias = token.name
            reference.is_plain &= not renames
            self._hint_behind(reference)

    def _hint_behind(self, reference: Reference) -> None:
        if reference.hint is None:
            index = self.cursor.index
            self._hint(reference)
            if self.cursor.index > index:
                token = self.cursor.tokens[index]
                reference.hint_outside = (token.start, token.end)
