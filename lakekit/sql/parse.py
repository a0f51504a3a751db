"""Reading statements token by token: names, lists of properties, and how far a constant goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakekit.sql.failures import SyntaxAt
from lakekit.sql.lexer import Kind, Token, string_value

QUERY_STARTS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"})
OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = set(OPENING.values())


@dataclass(frozen=True)
class Name:
    """A name of one or more parts in a statement.

    Attributes:
        parts: the parts without quotes; empty for ``IDENTIFIER(…)``.
        start: where it begins.
        end: where it ends.
        expression: the span inside ``IDENTIFIER(…)``.
    """

    parts: tuple[str, ...]
    start: int
    end: int
    expression: tuple[int, int] | None = None


class Cursor:
    """Walks over the tokens of one statement."""

    def __init__(self, tokens: Sequence[Token], index: int = 0, stop: int | None = None) -> None:
        """Starts at `index`; tokens from `stop` on are not there."""
        self.tokens = tokens
        self.index = index
        self.stop = len(tokens) if stop is None else stop
        end = tokens[self.stop - 1].end if self.stop else 0
        self._end = Token(Kind.END, "", end, end)

    def peek(self, ahead: int = 0) -> Token:
        """Returns a token ahead; one of kind END where there is none."""
        index = self.index + ahead
        return self.tokens[index] if index < self.stop else self._end

    @property
    def previous(self) -> Token | None:
        """The token before the current one."""
        return self.tokens[self.index - 1] if self.index else None

    @property
    def done(self) -> bool:
        """Whether all tokens are read."""
        return self.index >= self.stop

    def next(self) -> Token:
        """Returns the current token and goes on."""
        token = self.peek()
        self.index += not self.done
        return token

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these keywords or symbols."""
        return all(
            (self.peek(i).keyword == word) if word[0].isalpha() else self.peek(i).at(word)
            for i, word in enumerate(words)
        )

    def at_query(self) -> bool:
        """Whether a query is next, perhaps in parentheses; ``(map, b)`` is none, but a list of names."""
        ahead = 0
        while self.peek(ahead).at("("):
            ahead += 1
        return self.peek(ahead).keyword in QUERY_STARTS and not self.peek(ahead + 1).at(",")

    def accept(self, *words: str) -> bool:
        """Skips these keywords or symbols if they are next."""
        if not self.at(*words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Skips these keywords or symbols.

        Raises:
            SyntaxAt: if something else is next.
        """
        if not self.accept(*words):
            raise self.error(f"expected {' '.join(words)}")

    def error(self, problem: str) -> SyntaxAt:
        """Returns the error for a problem at the current token."""
        token = self.peek()
        found = f"near '{token.text}'" if token.text else "at the end of the statement"
        return SyntaxAt(token.start, f"Syntax error {found}: {problem}.")

    def skip_group(self) -> None:
        """Goes behind the bracket that closes the one at the current token."""
        depth = 0
        while not self.done:
            token = self.next()
            if token.kind is Kind.SYMBOL:
                depth += (token.text in OPENING) - (token.text in _CLOSING)
                if depth <= 0:
                    return

    def skip_until(self, found: Callable[[Cursor], bool]) -> None:
        """Goes on, over whole brackets, to the token where `found` holds, a closing bracket or the end."""
        while not self.done and not found(self):
            token = self.peek()
            if token.kind is Kind.SYMBOL and token.text in OPENING:
                self.skip_group()
            elif token.kind is Kind.SYMBOL and token.text in _CLOSING:
                return
            else:
                self.index += 1

    def identifier(self, what: str = "a name") -> Token:
        """Reads one identifier."""
        if not self.peek().is_identifier:
            raise self.error(f"expected {what}")
        return self.next()

    def name(self) -> Name:
        """Reads a name of one or more parts, or ``IDENTIFIER(…)``."""
        start = self.peek().start
        if self.at("IDENTIFIER", "("):
            self.index += 1
            inner = self.peek(1).start
            self.skip_group()
            end = self.tokens[self.index - 1].end
            return Name((), start, end, (inner, end - 1))
        parts = [self.identifier("the name of a table").name]
        while self.at(".") and self.peek(1).is_identifier:
            self.index += 1
            parts.append(self.next().name)
        return Name(tuple(parts), start, self.tokens[self.index - 1].end)

    def identifiers(self) -> list[str]:
        """Reads ``(a, b, …)``."""
        self.expect("(")
        names = [self.identifier("a column").name]
        while self.accept(","):
            names.append(self.identifier("a column").name)
        self.expect(")")
        return names

    def string(self, what: str = "a string") -> str:
        """Reads one string literal."""
        if self.peek().kind is not Kind.STRING:
            raise self.error(f"expected {what}")
        return string_value(self.next().text)

    def integer(self, what: str) -> int:
        """Reads one integer literal."""
        token = self.peek()
        if token.kind is not Kind.NUMBER or not token.text.isdigit():
            raise self.error(f"expected {what}")
        return int(self.next().text)

    def properties(self) -> dict[str, str]:
        """Reads ``('key' = 'value', a.b = 1, 'key' 'value', …)``; a repeated key is an error."""
        self.expect("(")
        found: dict[str, str] = {}
        while not self.accept(")"):
            place = self.peek()
            key = self._property_key()
            self.accept("=") or self.accept("==")
            if key in found:
                raise SyntaxAt(place.start, f"The property '{key}' is given twice.")
            found[key] = self._property_value()
            if not self.at(")"):
                self.expect(",")
        return found

    def property_keys(self) -> list[str]:
        """Reads ``('key', a.b, …)``."""
        self.expect("(")
        keys = [self._property_key()]
        while self.accept(","):
            keys.append(self._property_key())
        self.expect(")")
        return keys

    def _property_key(self) -> str:
        if self.peek().kind is Kind.STRING:
            return self.string()
        # Unquoted keys such as log-store.enabled are several tokens that touch one another.
        start = self.peek()
        if not start.is_identifier:
            raise self.error("expected the name of a property")
        text, end = self.next().name, start.end
        while (token := self.peek()).start == end and (token.is_identifier or token.at(".") or token.at("-")):
            text, end = text + token.name, token.end
            self.index += 1
        return text

    def _property_value(self) -> str:
        token = self.peek()
        if token.kind is Kind.STRING:
            return self.string()
        if token.kind is Kind.NUMBER or token.keyword in ("TRUE", "FALSE"):
            return self.next().text.lower()
        if token.at("-") and self.peek(1).kind is Kind.NUMBER:
            self.index += 1
            return "-" + self.next().text
        raise self.error("expected the value of a property, in quotes")


_TYPED_LITERALS = {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "X"}
_BINARY = {"+", "-", "*", "/", "%", "||"}
_UNITS = {"YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"}
# Functions whose value now is their value when the query runs; a user's function may be anything.
_PURE = {
    *("ABS", "ADD_MONTHS", "BIGINT", "BINARY", "BOOLEAN", "CAST", "CEIL"),
    *("CHAR", "CONCAT", "DATE", "DATEADD", "DATE_ADD", "DATE_SUB", "DATE_TRUNC"),
    *("DECIMAL", "DOUBLE", "FLOAT", "FLOOR", "INT", "LAST_DAY", "LENGTH"),
    *("LOWER", "LPAD", "MAKE_DATE", "MAKE_TIMESTAMP", "POW", "REPEAT", "REPLACE"),
    *("ROUND", "RPAD", "SMALLINT", "STRING", "SUBSTR", "SUBSTRING", "TIMESTAMP"),
    *(
        "TIMESTAMP_MICROS",
        "TIMESTAMP_MILLIS",
        "TIMESTAMP_SECONDS",
        "TINYINT",
        "TO_DATE",
        "TO_TIMESTAMP",
        "TRIM",
    ),
    *("TRUNC", "TRY_CAST", "UNHEX", "UPPER"),
}


def skip_constant(cursor: Cursor, *, pure: bool = False) -> bool:
    """Goes behind an expression without columns: literals, parameters, functions and arithmetic of them.

    Args:
        cursor: at the first token of the expression; stays there if it is none.
        pure: whether its value must be the same whenever it is computed.

    Returns:
        Whether there was one.
    """
    start = cursor.index
    if not _skip_operand(cursor, pure):
        cursor.index = start
        return False
    while cursor.peek().kind is Kind.SYMBOL and cursor.peek().text in _BINARY:
        operator = cursor.index
        cursor.index += 1
        if not _skip_operand(cursor, pure):
            cursor.index = operator
            break
    return True


def _skip_operand(cursor: Cursor, pure: bool) -> bool:
    while cursor.at("-") or cursor.at("+"):
        cursor.index += 1
    token, after = cursor.peek(), cursor.peek(1)
    if token.keyword in _TYPED_LITERALS and after.kind is Kind.STRING:
        cursor.index += 2
        return True
    if token.kind in (Kind.STRING, Kind.NUMBER) or token.keyword in ("TRUE", "FALSE", "NULL"):
        cursor.index += 1
        return True
    if token.at(":") and after.kind in (Kind.WORD, Kind.NUMBER):
        cursor.index += 2
        return True
    if token.keyword == "INTERVAL":
        return _skip_interval(cursor, pure)
    if token.keyword and after.at("("):
        cursor.index += 1
        return (not pure or token.keyword in _PURE) and _skip_constants(cursor, token.keyword, pure)
    if token.keyword in ("CURRENT_DATE", "CURRENT_TIMESTAMP") and not pure:
        cursor.index += 1
        return True
    return token.at("(") and _skip_constants(cursor, "", pure)


def _skip_interval(cursor: Cursor, pure: bool) -> bool:
    cursor.index += 1
    if not _skip_operand(cursor, pure):
        return False
    if cursor.peek().keyword.rstrip("S") in _UNITS:
        cursor.index += 1
        if cursor.at("TO"):
            cursor.index += 2
    return True


def _skip_constants(cursor: Cursor, function: str, pure: bool) -> bool:
    """Goes behind ``( constant, … )``, with ``AS type`` in a cast."""
    cursor.index += 1
    while not cursor.at(")"):
        if not skip_constant(cursor, pure=pure):
            return False
        if function in ("CAST", "TRY_CAST") and cursor.accept("AS"):
            cursor.skip_until(lambda c: c.at(")"))
        elif not cursor.at(")") and not cursor.accept(","):
            return False
    cursor.index += 1
    return True
