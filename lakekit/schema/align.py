"""Makes rows fit the columns of a table, or says what is wrong with them.

The rules are those of Spark's ANSI store assignment, but stricter: numbers become other numbers only if each
value can be kept, and nothing becomes text by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakekit.errors import SchemaMismatchError
from lakekit.names import BUCKET_COLUMN, literal, quote
from lakekit.schema.columns import as_nullable, can_widen, declared_type
from lakekit.schema.text import type_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_FRACTIONS = (FloatType, DoubleType)
_TIMES = (TimestampType, TimestampNTZType)


class Fit(Enum):
    """How values of one type become values of another."""

    SAME = 0
    CAST = 1  # every value fits
    RANGE = 2  # values are rounded; those out of range are errors
    EXACT = 3  # values that would change are errors
    NONE = 4


def fit(source: DataType, target: DataType) -> Fit:
    """Tells how values of type `source` become values of a column of type `target`."""
    if source == target:
        return Fit.SAME
    # Strings differ by collation, which hash() heeds and the table does not have.
    if isinstance(source, NullType) or (isinstance(source, StringType) and isinstance(target, StringType)):
        return Fit.CAST
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _nested(
            [(source.elementType, target.elementType)], source.containsNull and not target.containsNull
        )
    if isinstance(source, MapType) and isinstance(target, MapType):
        pairs = [(source.keyType, target.keyType), (source.valueType, target.valueType)]
        worst = _nested(pairs, source.valueContainsNull and not target.valueContainsNull)
        # Spark cannot compare maps, so a lossy change could not be noticed.
        return Fit.NONE if worst in (Fit.RANGE, Fit.EXACT) else worst
    if isinstance(source, StructType) and isinstance(target, StructType):
        if [n.lower() for n in source.names] != [n.lower() for n in target.names]:
            return Fit.NONE
        loses = any(s.nullable and not t.nullable for s, t in zip(source, target, strict=True))
        pairs = [(s.dataType, t.dataType) for s, t in zip(source, target, strict=True)]
        renamed = source.names != target.names
        worst = _nested(pairs, loses)
        return Fit.CAST if renamed and worst is Fit.SAME else worst
    return _fit_atomic(source, target)


def _nested(pairs: Sequence[tuple[DataType, DataType]], loses_nulls: bool) -> Fit:
    if loses_nulls:
        return Fit.NONE
    worst = max((fit(source, target) for source, target in pairs), key=lambda f: f.value, default=Fit.SAME)
    # Rounding inside a value would look like a change of the whole value.
    return Fit.EXACT if worst is Fit.RANGE else worst


def _fit_atomic(source: DataType, target: DataType) -> Fit:
    if can_widen(source, target):
        return Fit.CAST
    if isinstance(source, _TIMES) and isinstance(target, _TIMES):
        return Fit.CAST
    if isinstance(source, DateType) and isinstance(target, TimestampType):
        return Fit.CAST
    if isinstance(source, _FRACTIONS):
        if isinstance(target, _FRACTIONS):
            return Fit.CAST
        return Fit.RANGE if isinstance(target, DecimalType) else _exact(target)
    if isinstance(source, DecimalType):
        return Fit.CAST if isinstance(target, _FRACTIONS) else _exact(target)
    if isinstance(source, _INTEGERS):
        return Fit.EXACT if isinstance(target, _FRACTIONS) else _exact(target)
    return Fit.NONE


def _exact(target: DataType) -> Fit:
    return Fit.EXACT if isinstance(target, (*_INTEGERS, DecimalType)) else Fit.NONE


def align(
    rows: DataFrame,
    target: StructType,
    table: str,
    *,
    keep: Sequence[str] = (),
    allow_missing: bool = False,
    allow_new: bool = False,
) -> DataFrame:
    """Returns rows with exactly the columns of a table, in its order and types.

    Columns are matched by name, whatever the case. A value that does not fit its column fails the Spark job
    that computes the rows, with a text that names column and value.

    Args:
        rows: the rows as given; a `_bucket` column in them is left out, the table computes its own.
        target: the table's columns.
        table: its name, for messages.
        keep: further columns of `rows` to keep, at the end.
        allow_missing: columns that `rows` lacks are null, where the table allows nulls.
        allow_new: columns that the table lacks are left out.

    Raises:
        SchemaMismatchError: naming every column that is unknown, missing, given twice or of another type.
    """
    source = rows.schema
    given = [f for f in source if f.name not in keep and f.name.lower() != BUCKET_COLUMN]
    by_name = {field.name.lower(): field for field in given}
    problems = _problems(given, by_name, target, allow_missing=allow_missing, allow_new=allow_new)
    if problems:
        raise SchemaMismatchError(
            f"The rows do not fit table {table}: {'; '.join(problems)}.",
            f"Its columns are {', '.join(f'{f.name} {type_text(declared_type(f))}' for f in target)}.",
        )
    if source.names == [*target.names, *keep] and all(
        f.dataType == t.dataType and not isinstance(declared_type(t), CharType)
        for f, t in zip(source, target, strict=False)
    ):
        return rows
    columns = [_expression(by_name.get(field.name.lower()), field, table) for field in target]
    return rows.selectExpr(*columns, *[quote(name) for name in keep])


def _problems(
    given: Sequence[StructField],
    by_name: dict[str, StructField],
    target: StructType,
    *,
    allow_missing: bool,
    allow_new: bool,
) -> list[str]:
    known = {field.name.lower(): field for field in target}
    names = [field.name.lower() for field in given]
    twice = sorted({name for name in names if names.count(name) > 1})
    unknown = [] if allow_new else [f.name for f in given if f.name.lower() not in known]
    missing = [f.name for f in target if f.name.lower() not in by_name and not (allow_missing and f.nullable)]
    pairs = [(field, known[field.name.lower()]) for field in given if field.name.lower() in known]
    wrong = [
        f"column '{f.name}' is {type_text(f.dataType)} and not {type_text(declared_type(wanted))}"
        for f, wanted in pairs
        if fit(f.dataType, wanted.dataType) is Fit.NONE
    ]
    listed = ((twice, "given twice"), (unknown, "unknown to the table"), (missing, "missing"))
    return [f"column(s) {_quoted(columns)} {what}" for columns, what in listed if columns] + wrong


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _expression(source: StructField | None, target: StructField, table: str) -> str:
    """Returns the SQL expression of one column of the table."""
    # Spark casts no value to a type whose parts cannot be null.
    wanted = type_text(as_nullable(target.dataType))
    name = quote(target.name)
    if source is None:
        return f"CAST(NULL AS {wanted}) AS {name}"
    value = quote(source.name)
    how = fit(source.dataType, target.dataType)
    if how is Fit.CAST:
        value = f"CAST({value} AS {wanted})"
    elif how in (Fit.RANGE, Fit.EXACT):
        given = type_text(as_nullable(source.dataType))
        value = _checked_cast(value, given, wanted, how, f"column {target.name} of {table}")
    declared = declared_type(target)
    if isinstance(declared, CharType):
        # Longer values are left as they are: the check of lengths names them.
        padded = f"rpad({value}, {declared.length}, ' ')"
        value = f"CASE WHEN char_length({value}) < {declared.length} THEN {padded} ELSE {value} END"
    return f"{value} AS {name}"


def _checked_cast(value: str, source: str, wanted: str, how: Fit, where: str) -> str:
    # Not CAST alone: without ANSI mode it wraps around silently, and with it a fraction is cut off silently.
    cast = f"TRY_CAST({value} AS {wanted})"
    kept = f"{cast} IS NOT NULL" if how is Fit.RANGE else f"CAST({cast} AS {source}) <=> {value}"
    shown = f"coalesce(CAST({value} AS STRING), 'null')"
    error = (
        f"raise_error(concat('A value does not fit ', {literal(f'{where}, {wanted}')}, ': ', {shown}, '.'))"
    )
    return f"CASE WHEN {value} IS NULL THEN NULL WHEN {kept} THEN {cast} ELSE CAST({error} AS {wanted}) END"
