"""Predicates on the columns of one table, as plain data.

They say what rows a query wants in the few forms that statistics can judge. Each is true, false or unknown
for a row
as in SQL, and a row is wanted only where it is true: a comparison with null wants nothing. What cannot be
said in these forms is left out of an `And`, or replaced by `Anything`: wanting more rows than the query does
is always safe.

A column is its name in any case; a field of a struct is ``outer.inner``.

Values are Python values: int, float, Decimal, str, bytes, bool, date; a timestamp is an aware datetime, a
timestamp without time zone a naive one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Union

Operator = Literal["=", "<", "<=", ">", ">="]

_SHOWN = 3


@dataclass(frozen=True)
class Comparison:
    """``column op value``; floats are ordered as Spark does: NaN equals NaN and is above all else."""

    column: str
    op: Operator
    value: Any

    def __str__(self) -> str:
        return f"{self.column} {self.op} {_literal(self.value)}"


@dataclass(frozen=True)
class In:
    """``column IN (values)``; nulls among the values match nothing."""

    column: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        shown = ", ".join(_literal(v) for v in self.values[:_SHOWN])
        more = len(self.values) - _SHOWN
        return f"{self.column} IN ({shown}{f', … {more} more' if more > 0 else ''})"


@dataclass(frozen=True)
class IsNull:
    """``column IS NULL``."""

    column: str

    def __str__(self) -> str:
        return f"{self.column} IS NULL"


@dataclass(frozen=True)
class IsNotNull:
    """``column IS NOT NULL``."""

    column: str

    def __str__(self) -> str:
        return f"{self.column} IS NOT NULL"


@dataclass(frozen=True)
class StartsWith:
    """``column LIKE 'prefix%'``."""

    column: str
    prefix: str

    def __str__(self) -> str:
        return f"{self.column} LIKE {_literal(self.prefix + '%')}"


@dataclass(frozen=True)
class And:
    """All of the children; without any, every row."""

    children: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({c})" if isinstance(c, Or) else str(c) for c in self.children) or "TRUE"


@dataclass(frozen=True)
class Or:
    """At least one of the children; without any, no row."""

    children: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " OR ".join(f"({c})" if isinstance(c, And) else str(c) for c in self.children) or "FALSE"


@dataclass(frozen=True)
class Anything:
    """A condition that statistics cannot judge; it may be true for any row.

    Attributes:
        text: the condition as people wrote it.
        reason: why it cannot be used, in a few words.
    """

    text: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return self.text or "TRUE"


Predicate = Union[  # noqa: UP007 - also a value at run time
    Comparison, In, IsNull, IsNotNull, StartsWith, And, Or, Anything
]


def all_of(*children: Predicate) -> Predicate:
    """Joins predicates with AND; a single one is returned as it is, nested ones become flat."""
    flat = tuple(leaf for child in children for leaf in conjuncts(child))
    return flat[0] if len(flat) == 1 else And(flat)


def any_of(*children: Predicate) -> Predicate:
    """Joins predicates with OR; a single one is returned as it is."""
    return children[0] if len(children) == 1 else Or(tuple(children))


def conjuncts(predicate: Predicate) -> list[Predicate]:
    """Returns the parts that must all be true."""
    if isinstance(predicate, And):
        return [leaf for child in predicate.children for leaf in conjuncts(child)]
    return [predicate]


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, bytes | bytearray):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, int | float) or type(value).__name__ == "Decimal":
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"
