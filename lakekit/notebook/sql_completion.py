"""What may stand at a place in a text of SQL, which may be unfinished and wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakekit.names import TableName, quote
from lakekit.notebook import listing
from lakekit.options import DELTA_OPTIONS
from lakekit.options import OPTIONS as TABLE_OPTIONS
from lakekit.sql.lexer import Kind, Token, split_spans, tokenize
from lakekit.sql.system import SYSTEM_TABLES

if TYPE_CHECKING:
    from lakekit.lake import Lake

Found = tuple[str, str]
"""A text to insert, and what it is: column, table, database, keyword, option, parameter, alias."""

_KEYWORDS = """
    ADD ALL ALTER AND ANTI AS ASC BETWEEN BY CALL CASE CAST COLUMN COLUMNS COMMENT CONSTRAINT COUNT CREATE CROSS CUBE
    CURRENT_DATE CURRENT_TIMESTAMP DATABASE DATABASES DELETE DESC DESCRIBE DISTINCT DROP ELSE END ENFORCED EXCEPT EXISTS
    EXPLAIN EXTENDED FALSE FILTER FIRST FROM FULL FUNCTIONS GROUP HAVING IF IN INNER INSERT INTERSECT INTERVAL INTO IS
    JOIN KEY LAST LATERAL LEFT LIKE LIMIT MATCHED MERGE NOT NULL NULLS OF OFFSET ON OPTIONS OR ORDER OUTER OVER
    OVERWRITE PARTITION PARTITIONED PRIMARY PROPERTIES QUALIFY RENAME REPLACE RIGHT ROLLUP ROWS SELECT SEMI SET SHOW SUM
    TABLE TABLES TBLPROPERTIES THEN TIMESTAMP TO TRUE TRUNCATE UNION UNSET UPDATE USE USING VALUES VERSION VIEW WHEN
    WHERE WINDOW WITH
"""
KEYWORDS = tuple(_KEYWORDS.split())

_TAIL = re.compile(r"(?P<chain>(?:(?:\w+|`[^`]*`)\.)*)(?P<word>`[^`]*|[\w$]*)$")
_PLAIN = re.compile(r"[A-Za-z_]\w*\Z")
_BEFORE_TABLE = {
    "FROM",
    "JOIN",
    "INTO",
    "TABLE",
    "UPDATE",
    "DESCRIBE",
    "DESC",
    "TRUNCATE",
    "MERGE",
    "OVERWRITE",
}
_OPTION_LISTS = {"TBLPROPERTIES", "WITH", "OPTIONS", "PROPERTIES"}


def complete_sql(
    lake: Lake | None, text: str, cursor: int, variables: Iterable[str]
) -> tuple[str, list[Found]]:
    """Finds what may stand at a place.

    Args:
        lake: the open lake; without one, only keywords, options and variables are found.
        text: the whole SQL, which may hold several statements.
        cursor: the place in it.
        variables: names that may follow a colon.

    Returns:
        The text before the place that is replaced, and the texts that fit, the likeliest first.
    """
    statement, cursor = _statement_at(text, cursor)
    before = statement[:cursor]
    place = _Place(tokenize(before))
    if place.is_in_options(before):
        return place.options(before)
    if place.is_in_text(before):
        return "", []
    tail = _TAIL.search(before)
    if tail is None:
        return "", []
    word, chain = tail["word"], [_unquoted(part) for part in re.findall(r"\w+|`[^`]*`", tail["chain"])]
    colon = before[: tail.start()]
    if not chain and colon.endswith(":") and not colon.endswith("::"):
        return word, _fitting(word, ((name, "parameter") for name in variables))
    if lake is None:
        return word, _fitting(word, _keywords(word)) if word and not chain else []
    if "$" in word:
        base = f"{word.rpartition('$')[0]}$"
        return word, _fitting(word, ((base + name, "table") for name in SYSTEM_TABLES))
    tables = _Tables(lake, tokenize(statement))
    if chain:
        return word, _fitting(word, tables.after(chain))
    wants_table = place.keyword_before(word) in _BEFORE_TABLE
    candidates = [*tables.names()] if wants_table else [*tables.columns(), *tables.names()]
    return word, _fitting(word, [*candidates, *_keywords(word)])


def complete_table(lake: Lake, fragment: str) -> tuple[str, list[Found]]:
    """Finds the tables and databases whose names begin with a fragment, as ``table`` or ``database.table``."""
    database, dot, word = fragment.rpartition(".")
    tables = _Tables(lake, [])
    return word, _fitting(word, tables.in_database(database) if dot else tables.names())


def _statement_at(text: str, cursor: int) -> tuple[str, int]:
    """Returns the statement that a place is in, and the place in it."""
    start, end = 0, len(text)
    for first, last in split_spans(text):
        if last < cursor and ";" in text[last:cursor]:
            start = text.index(";", last) + 1
        elif first >= cursor:
            break
        else:
            end = max(last, cursor)
    return text[start:end], cursor - start


def _fitting(word: str, candidates: Iterable[Found]) -> list[Found]:
    """Returns the candidates that begin with a word, in any case and with or without a backtick, each once."""
    wanted = word.lstrip("`").lower()
    return list(
        dict.fromkeys(
            (text, kind) for text, kind in candidates if text.lstrip("`").lower().startswith(wanted)
        )
    )


def _keywords(word: str) -> Iterator[Found]:
    """Yields the keywords in the case in which the user types."""
    for keyword in KEYWORDS:
        yield (keyword.lower() if word.islower() else keyword), "keyword"


def _unquoted(part: str) -> str:
    return part[1:-1] if part.startswith("`") else part


def _quoted(name: str) -> str:
    return name if _PLAIN.match(name) else quote(name)


@dataclass
class _Place:
    """The tokens before the cursor, and what they say about it."""

    tokens: list[Token]

    def is_in_text(self, before: str) -> bool:
        """Whether the place is inside a string or a comment."""
        last = self.tokens[-1] if self.tokens else None
        if last is not None and last.kind is Kind.STRING and last.end == len(before):
            return not _is_closed(last.text)
        gap = before[last.end if last else 0 :]
        comment = gap.rpartition("--")
        return ("--" in gap and "\n" not in comment[2]) or gap.rfind("/*") > gap.rfind("*/")

    def keyword_before(self, word: str) -> str:
        """Returns the word before the one being typed, in upper case."""
        at = len(self.tokens) - (2 if word else 1)
        return self.tokens[at].keyword if at >= 0 else ""

    def is_in_options(self, before: str) -> bool:
        """Whether the name of a table option may stand here."""
        tokens = self._inner(before)
        if tokens and tokens[-1].kind in (Kind.STRING, Kind.WORD):
            if tokens[-1].kind is Kind.STRING and _is_closed(tokens[-1].text):
                return False
            tokens = tokens[:-1]
        return bool(tokens) and (tokens[-1].at("(") or tokens[-1].at(",")) and self._opener(tokens)

    def options(self, before: str) -> tuple[str, list[Found]]:
        """Returns the options that may stand here."""
        fragment = re.search(r"'[\w.-]*$|\"[\w.-]*$|[\w.-]*$", before)
        typed = fragment[0] if fragment else ""
        mark, word = (typed[0], typed[1:]) if typed[:1] in {"'", '"'} else ("", typed)
        in_hint = bool(self.tokens) and self.tokens[-1].kind is Kind.HINT
        names = [name for name, option in TABLE_OPTIONS.items() if option.hint or not in_hint]
        names += [] if in_hint else DELTA_OPTIONS
        bare = _bare(word)
        fitting = [word[: len(word) - len(bare)] + n for n in names if n.lower().startswith(bare.lower())]
        # Inside a string only its text is replaced, so that the quote before it stays.
        return word, [(name if mark else f"'{name}'", "option") for name in fitting]

    def _inner(self, before: str) -> list[Token]:
        """Returns the tokens, those of an open hint instead of the hint."""
        last = self.tokens[-1] if self.tokens else None
        if last is not None and last.kind is Kind.HINT and last.end == len(before):
            return [] if last.text.endswith("*/") else tokenize(last.text[3:])
        return self.tokens

    @staticmethod
    def _opener(tokens: Sequence[Token]) -> bool:
        """Whether the bracket that is open here begins a list of options, and not the columns of a CTE."""
        depth = 0
        for index in range(len(tokens) - 1, 0, -1):
            depth += tokens[index].at(")") - tokens[index].at("(")
            if depth < 0:
                return tokens[index - 1].keyword in _OPTION_LISTS
        return False


def _is_closed(literal: str) -> bool:
    body = literal.lstrip("rR")
    return len(body) > 1 and body[-1] == body[0]


def _bare(word: str) -> str:
    """Returns an option's name without the prefix of lakekit that may stand before it."""
    from lakekit.properties import PREFIXES

    return next((word[len(p) :] for p in PREFIXES if word.lower().startswith(p)), word)


@dataclass
class _Tables:
    """The lake's tables, and those that a statement names."""

    lake: Lake
    tokens: Sequence[Token]
    _in: dict[str, list[str]] = field(default_factory=dict)

    def names(self) -> Iterator[Found]:
        """Yields the tables of the current database, the databases, and the tables of the others."""
        current = self.lake.current_database
        yield from ((name, "table") for name in self._tables(current))
        others = [database for database in listing.databases(self.lake) if database != current]
        yield from ((name, "database") for name in others)
        for database in others:
            yield from ((f"{database}.{name}", "table") for name in self._tables(database))

    def in_database(self, database: str) -> Iterator[Found]:
        """Yields the tables of one database."""
        yield from ((name, "table") for name in self._tables(database.lower()))

    def columns(self) -> Iterator[Found]:
        """Yields the columns of the tables that the statement names, and the aliases it gives them."""
        named = list(self._named())
        for _, table in named:
            yield from self._columns(table)
        yield from ((alias, "alias") for alias, table in named if alias != table.table)

    def after(self, chain: Sequence[str]) -> Iterator[Found]:
        """Yields what may follow ``chain.``: columns of a table or alias, or tables of a database."""
        wanted = chain[-1].lower()
        for alias, table in self._named():
            if alias.lower() == wanted and (len(chain) == 1 or chain[-2].lower() == table.database):
                yield from self._columns(table)
        if len(chain) == 1:
            yield from self.in_database(wanted)

    def _columns(self, table: TableName) -> Iterator[Found]:
        with suppress(Exception):  # one table that cannot be read must not hide the others
            for name, _ in listing.columns(self.lake, table):
                yield _quoted(name), "column"

    def _tables(self, database: str) -> list[str]:
        if database not in self._in:
            self._in[database] = []
            with suppress(Exception):
                self._in[database] = listing.tables(self.lake, database)
        return self._in[database]

    def _named(self) -> Iterator[tuple[str, TableName]]:
        """Yields the tables that the tokens name, each with the name by which its columns go.

        Any name of a table counts, wherever it stands: the statement may be far from whole.
        """
        index = 0
        while index < len(self.tokens):
            if not self.tokens[index].is_identifier:
                index += 1
                continue
            chain = [self.tokens[index].name]
            while (
                index + 2 < len(self.tokens)
                and self.tokens[index + 1].at(".")
                and self.tokens[index + 2].is_identifier
            ):
                chain.append(self.tokens[index + 2].name)
                index += 2
            index += 1
            table = self._existing(chain)
            if table is not None:
                yield self._alias(index) or table.table, table

    def _existing(self, chain: Sequence[str]) -> TableName | None:
        table = chain[-1].lower().partition("$")[0]
        database = chain[-2].lower() if len(chain) > 1 else self.lake.current_database
        return TableName(database, table) if table in self._tables(database) else None

    def _alias(self, index: int) -> str | None:
        """Returns the name that stands at an index if it is an alias."""
        if index < len(self.tokens) and self.tokens[index].keyword == "AS":
            index += 1
        token = self.tokens[index] if index < len(self.tokens) else None
        if token is None or not token.is_identifier or token.keyword in _NO_ALIAS:
            return None
        return token.name


_NO_ALIAS = {
    *KEYWORDS,
    "TABLESAMPLE",
    "PIVOT",
    "UNPIVOT",
    "NATURAL",
    "SORT",
    "DISTRIBUTE",
    "CLUSTER",
    "MINUS",
}
