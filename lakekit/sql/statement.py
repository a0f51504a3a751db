"""One statement: its text, its tokens, and the parts that several kinds of statements share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from lakekit.names import quote
from lakekit.sql.lexer import Kind, Token, tokenize
from lakekit.sql.parse import QUERY_STARTS, Cursor, Name
from lakekit.sql.references import Span
from lakekit.sql.text import SqlText

DML = ("INSERT", "DELETE", "UPDATE", "MERGE")


@dataclass(frozen=True)
class Target:
    """The table a statement changes.

    Attributes:
        name: its name.
        hint: text and place of its OPTIONS hint.
        alias: the alias.
    """

    name: Name
    hint: tuple[str, int] | None = None
    alias: str | None = None


class Statement:
    """One statement of what the user wrote."""

    def __init__(self, sql: SqlText) -> None:
        """Wraps the text of the statement."""
        self.sql = sql
        self.text = str(sql)

    @cached_property
    def tokens(self) -> list[Token]:
        """Its tokens."""
        return tokenize(self.text)

    def cursor(self, index: int = 0) -> Cursor:
        """Returns a cursor at a token."""
        return Cursor(self.tokens, index)

    def slice(self, span: Span) -> SqlText:
        """Returns the text of a span of tokens."""
        first, stop = span
        if first >= stop:
            return SqlText()
        return self.sql.span(self.tokens[first].start, self.tokens[stop - 1].end)

    def rest(self, first: int) -> SqlText:
        """Returns the text from a token on."""
        return self.slice((first, len(self.tokens)))

    @cached_property
    def verb_index(self) -> int:
        """Index of INSERT, DELETE, UPDATE or MERGE behind leading CTEs; 0 for any other statement."""
        cursor = self.cursor()
        if not cursor.accept("WITH"):
            return 0
        cursor.accept("RECURSIVE")
        while cursor.peek().is_identifier:
            cursor.index += 1
            # Columns, then the query; AS may be left out.
            while cursor.at("(") or cursor.at("AS"):
                if cursor.at("("):
                    cursor.skip_group()
                else:
                    cursor.index += 1
            if not cursor.accept(","):
                break
        return cursor.index if cursor.peek().keyword in DML else 0

    @property
    def ctes(self) -> SqlText:
        """The CTEs before INSERT, DELETE, UPDATE or MERGE, with a blank behind them."""
        return self.slice((0, self.verb_index)) + " " if self.verb_index else SqlText()

    @property
    def verb(self) -> str:
        """The keyword that tells what it does."""
        return self.tokens[self.verb_index].keyword if self.tokens else ""

    @property
    def is_query(self) -> bool:
        """Whether it returns rows and writes none."""
        return self.verb in QUERY_STARTS or self.cursor().at("(")


def read_target(cursor: Cursor, *stops: str) -> Target:
    """Reads the name of a table, with hint and alias.

    Args:
        cursor: at the name.
        *stops: keywords that are no alias.
    """
    name = cursor.name()
    hint = read_hint(cursor)
    alias = None
    if cursor.accept("AS") or (cursor.peek().is_identifier and cursor.peek().keyword not in stops):
        alias = cursor.identifier("an alias").name
    return Target(name, hint or read_hint(cursor), alias)


def read_hint(cursor: Cursor) -> tuple[str, int] | None:
    """Reads ``/*+ OPTIONS(…) */`` if it is next."""
    token = cursor.peek()
    if token.kind is not Kind.HINT or not token.text[3:].lstrip().upper().startswith("OPTIONS"):
        return None
    cursor.index += 1
    return token.text, token.start


def qualified(alias: str, *columns: str) -> str:
    """Returns ``alias.column`` with quotes."""
    return ".".join(quote(part) for part in (alias, *columns))
