"""What is found of the tables that a query reads; `lakekit.sql.scanner` finds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakekit.sql.lexer import Token
from lakekit.sql.parse import Name

Span = tuple[int, int]


@dataclass(frozen=True)
class Temporal:
    """``VERSION AS OF …`` or ``TIMESTAMP AS OF …``, with the token span of the value."""

    is_version: bool
    tokens: Span


@dataclass
class Reference:
    """A table that a query reads.

    Attributes:
        name: what it is called.
        end: where the name, with time travel and options, ends; this much is replaced.
        temporal: its time travel.
        hint: the text of ``/*+ OPTIONS(…) */`` and where it begins.
        hint_outside: span of a hint that stands behind the alias, apart from what is replaced.
        options: span of Spark's own ``WITH (…)``.
        alias: the alias.
        is_plain: whether its rows and columns come into the query as they are, not sampled or renamed.
        alias_at: where an alias can be inserted.
        form: ``relation`` in FROM, ``query`` for ``TABLE t``, ``argument`` for a table argument of a function.
    """

    name: Name
    end: int
    temporal: Temporal | None = None
    hint: tuple[str, int] | None = None
    hint_outside: Span | None = None
    options: Span | None = None
    alias: str | None = None
    is_plain: bool = True
    alias_at: int = 0
    form: str = "relation"


@dataclass
class Relation:
    """One entry of a FROM clause.

    Attributes:
        reference: the table; None for a subquery, a function or VALUES.
        join: kind of the join that brings it in: ``""`` for the first and after a comma, else such as ``LEFT``.
        on: token span of the join's condition.
    """

    reference: Reference | None
    join: str = ""
    on: Span | None = None


@dataclass
class Block:
    """A query block.

    Attributes:
        relations: the entries of its FROM clause, and of lateral views.
        where: token span of the WHERE condition.
        is_plain: whether the condition sees the rows of the relations, not of a pivot.
        selects: whether its SELECT was seen.
    """

    relations: list[Relation] = field(default_factory=list)
    where: Span | None = None
    is_plain: bool = True
    selects: bool = False


@dataclass
class Scan:
    """What was found in a statement."""

    tokens: Sequence[Token]
    references: list[Reference] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    aliases: set[str] = field(default_factory=set)
