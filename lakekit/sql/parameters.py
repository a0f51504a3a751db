"""Values of ``:name`` parameters, bound by Spark and never pasted into the text.

Spark binds single values. A list or dict becomes ``array(:a, :b)`` or ``map(…)`` of single values in the text, so that
its elements find a common type as any expressions do, nulls among them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from lakekit.errors import QueryError
from lakekit.sql.lexer import Kind, Token, tokenize
from lakekit.sql.text import Edit, SqlText

_SCALARS = (bool, int, float, Decimal, str, bytes, dt.date, dt.timedelta)


def named(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """Yields colon and name of each parameter among the tokens; the colons of ``STRUCT<a:INT>`` are none."""
    for index in range(len(tokens) - 1):
        colon, name = tokens[index], tokens[index + 1]
        if not colon.at(":") or name.kind is not Kind.WORD or colon.end != name.start:
            continue
        if index and tokens[index - 1].is_identifier and tokens[index - 1].end == colon.start:
            continue
        yield colon, name


def names(text: str) -> list[str]:
    """Returns the names of the parameters in a text, in order, each once."""
    return list(dict.fromkeys(name.text for _, name in named(tokenize(text))))


def bind(statement: SqlText, params: Mapping[str, Any]) -> tuple[SqlText, dict[str, Any]]:
    """Returns a statement and the single values for its parameters.

    Args:
        statement: the statement.
        params: values by name; those that the statement does not name are ignored.

    Raises:
        QueryError: if a value is of a type that has no SQL value.
    """
    edits: list[Edit] = []
    values: dict[str, Any] = {}
    for colon, name in named(tokenize(str(statement))):
        if name.text not in params:
            continue  # Spark says so, at the place
        try:
            value = _plain(params[name.text])
            if isinstance(value, (list, dict)):
                edits.append(Edit(colon.start, name.end, _expanded(value, f"__lake_{name.text}", values)))
            else:
                values[name.text] = _scalar(value)
        except TypeError as error:
            raise QueryError(
                f"The value of parameter :{name.text} is or holds a {error}, which is no SQL value.",
                "Pass a number, a text, bytes, a date, a time, or a list or dict of those.",
            ) from None
    return statement.replace(edits) if edits else statement, values


def _expanded(value: Any, name: str, values: dict[str, Any]) -> str:
    """Returns an expression for a value, and puts the single values it names into `values`."""
    value = _plain(value)
    if isinstance(value, list):
        return f"array({', '.join(_expanded(v, f'{name}_{i}', values) for i, v in enumerate(value))})"
    if isinstance(value, dict):
        parts = [part for pair in value.items() for part in pair]
        return f"map({', '.join(_expanded(v, f'{name}_{i}', values) for i, v in enumerate(parts))})"
    values[name] = _scalar(value)
    return f":{name}"


def _plain(value: Any) -> Any:
    """Returns a value of NumPy or pandas, and any collection, as Python's own."""
    if type(value).__module__ == "numpy":
        if getattr(getattr(value, "dtype", None), "kind", "") == "M":
            value = value.astype("datetime64[us]")  # in nanoseconds they would become numbers
        return value.tolist()
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    convert = getattr(value, "tolist", None)  # series of pandas
    return convert() if callable(convert) else value


def _scalar(value: Any) -> Any:
    if value is not None and not isinstance(value, _SCALARS):
        raise TypeError(type(value).__name__)
    return value
