"""Computing the constants of a query's conditions, as values of the columns they are compared with."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakekit.skipping.predicate import And, Anything, Comparison, In, IsNull, Or, Predicate, any_of
from lakekit.skipping.values import INTEGER_BITS, Columns, char_length
from lakekit.sql import parameters
from lakekit.sql.predicates import Constant, simple_value
from lakekit.sql.text import SqlText

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNKNOWN = object()
_NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"}
_PLAIN = (bool, int, float, Decimal, str, bytes, bytearray)


def bind(
    spark: SparkSession, text: str, params: Mapping[str, Any], wanted: Mapping[int, tuple[Columns, Predicate]]
) -> dict[int, Predicate]:
    """Returns predicates with the values of their constants.

    Args:
        spark: computes what is no plain literal.
        text: the statement that the constants are spans of.
        params: values of its parameters.
        wanted: predicates and the columns of their tables, by any key.
    """
    values: dict[tuple[Constant, str], Any] = {}
    open_constants: list[tuple[Constant, str]] = []
    for columns, predicate in wanted.values():
        for column, constant in _constants(predicate):
            known = columns.get(column)
            kind = known.kind if known is not None else None
            if kind is None:
                continue
            value = _known_value(text[constant.start : constant.end], kind, params)
            if value is _UNKNOWN:
                open_constants.append((constant, kind))
            else:
                values[constant, kind] = value
    values.update(_computed(spark, text, params, list(dict.fromkeys(open_constants))))
    return {key: _filled(predicate, columns, values, text) for key, (columns, predicate) in wanted.items()}


def _constants(predicate: Predicate) -> Iterator[tuple[str, Constant]]:
    if isinstance(predicate, And | Or):
        for child in predicate.children:
            yield from _constants(child)
    elif isinstance(predicate, Comparison):
        yield predicate.column, predicate.value
    elif isinstance(predicate, In):
        for value in predicate.values:
            yield predicate.column, value


def _known_value(text: str, kind: str, params: Mapping[str, Any]) -> Any:
    """Returns the value of a literal or parameter where its comparison with the column needs no cast."""
    value = params.get(text[1:], _UNKNOWN) if text[0] == ":" else simple_value(text)
    if text[0] != ":" and value is None:
        return None if text.upper() == "NULL" else _UNKNOWN
    if value is None:
        return None
    if isinstance(value, dt.datetime):
        return value if value.tzinfo is not None and kind == "timestamp" else _UNKNOWN
    if isinstance(value, dt.date):
        return value if kind == "date" else _UNKNOWN
    if not isinstance(value, _PLAIN):
        return _UNKNOWN
    needs_cast = isinstance(value, str) and kind not in ("string", "binary") and char_length(kind) is None
    return _UNKNOWN if needs_cast else value


def _cast_of(kind: str) -> str:
    if kind in INTEGER_BITS:
        return "BIGINT"
    if kind in ("float", "double") or kind.startswith("decimal"):
        return "DOUBLE"
    return {
        "boolean": "BOOLEAN",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
        "timestamp_ntz": "TIMESTAMP_NTZ",
    }.get(kind, "STRING")


def _computed(
    spark: SparkSession, text: str, params: Mapping[str, Any], constants: list[tuple[Constant, str]]
) -> dict[tuple[Constant, str], Any]:
    """Computes constants with Spark; those it cannot compute or compare without doubt are left out."""
    if not constants:
        return {}
    columns = []
    for index, (constant, kind) in enumerate(constants):
        expression = text[constant.start : constant.end]
        cast = f"TRY_CAST(({expression}) AS {_cast_of(kind)})"
        if kind == "timestamp":
            cast = f"unix_micros({cast})"
        columns.append(f"({expression}) AS a{index}, {cast} AS b{index}")
    try:
        # Over a row of VALUES the optimizer computes it all, and no job is run.
        query, bound = parameters.bind(
            SqlText.generated(f"SELECT {', '.join(columns)} FROM VALUES (0)"), params
        )
        frame = spark.sql(str(query), args=bound)
        types = [field.dataType.simpleString() for field in frame.schema]
        row = frame.collect()[0]
    except Exception:
        # The query itself will tell what is wrong with it.
        return {}
    found = {}
    for index, key in enumerate(constants):
        value = _chosen(row[2 * index], row[2 * index + 1], types[2 * index], key[1])
        if value is not _UNKNOWN:
            found[key] = value
    return found


def _chosen(raw: Any, cast: Any, given: str, kind: str) -> Any:
    """Returns the value as Spark compares it with a column of this kind."""
    if raw is None:
        return None
    base = given.partition("(")[0]
    if kind in INTEGER_BITS or kind in ("float", "double") or kind.startswith("decimal"):
        as_is, castable = base in _NUMBERS, base == "string"
    elif kind in ("date", "boolean"):
        as_is, castable = base == kind, base == "string"
    elif kind in ("timestamp", "timestamp_ntz"):
        as_is, castable = False, base in ("string", "date", kind)
    else:
        as_is, castable = (
            base == ("binary" if kind == "binary" else "string") and "collate" not in given,
            False,
        )
    if as_is:
        return raw
    if not castable or cast is None or "collate" in given:
        return _UNKNOWN
    if kind == "timestamp":
        return dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=cast)
    return cast


def _filled(
    predicate: Predicate, columns: Columns, values: Mapping[tuple[Constant, str], Any], text: str
) -> Predicate:
    if isinstance(predicate, And | Or):
        children = tuple(_filled(child, columns, values, text) for child in predicate.children)
        return replace(predicate, children=children)
    if not isinstance(predicate, Comparison | In):
        return predicate
    known = columns.get(predicate.column)
    kind = known.kind if known is not None else None
    constants = (predicate.value,) if isinstance(predicate, Comparison) else predicate.values
    found = [values.get((constant, kind or ""), _UNKNOWN) for constant in constants]
    if any(value is _UNKNOWN for value in found):
        shown = ", ".join(text[c.start : c.end] for c in constants[:3])
        what = (
            f"{predicate.column} IN ({shown})"
            if isinstance(predicate, In)
            else f"{predicate.column} … {shown}"
        )
        return Anything(what, "its value is not comparable with the column" if known else "no such column")
    if isinstance(predicate, In):
        return (
            In(predicate.column, tuple(v for v in found if v is not None))
            if any(v is not None for v in found)
            else any_of()
        )
    if predicate.value.null_safe and found[0] is None:
        return IsNull(predicate.column)
    return Comparison(predicate.column, predicate.op, found[0])
