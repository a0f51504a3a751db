"""Columns of tables: which names and types there are, what fits into what, and what a key can be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
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
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
    VariantType,
)

from lakekit.errors import (
    AlreadyExistsError,
    ColumnNotFoundError,
    InvalidNameError,
    PrimaryKeyError,
    SchemaMismatchError,
)
from lakekit.names import BUCKET_COLUMN
from lakekit.schema.text import parse_schema, parse_type, type_text

if TYPE_CHECKING:
    import pyarrow as pa

    from lakekit.storage.actions import Metadata
    from lakekit.storage.snapshot import Snapshot

Columns = StructType | str | Mapping[str, "DataType | str"]

DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark and Delta keep ``char(n)`` and ``varchar(n)`` of a column that is stored as string."""

RESERVED_COLUMNS = frozenset(
    {
        BUCKET_COLUMN,
        "_change_type",
        "_commit_version",
        "_commit_timestamp",
        "_change_kind",
        "_version",
        "_timestamp",
    }
)
"""Columns that lakekit and Delta's change feed add to what a table holds."""
_RESERVED_PREFIX = "__lake_"
_BAD_CHARACTERS = " ,;{}()\n\t="

_INTEGERS: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)
_DIGITS: Mapping[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
_ATOMIC: tuple[type[DataType], ...] = (
    BooleanType,
    *_INTEGERS,
    FloatType,
    DoubleType,
    DecimalType,
    StringType,
    CharType,
    VarcharType,
    BinaryType,
    DateType,
    TimestampType,
    TimestampNTZType,
)
_NO_PARTITION: tuple[type[DataType], ...] = (FloatType, DoubleType, BinaryType)


def struct_of(columns: Columns | pa.Schema) -> StructType:
    """Returns columns as a Spark schema.

    Args:
        columns: a Spark schema, SQL text (``id BIGINT NOT NULL, name STRING``), a dict of names and types,
            or an Arrow schema.

    Raises:
        SchemaMismatchError: if they cannot be read.
    """
    if isinstance(columns, StructType):
        return columns
    if isinstance(columns, str):
        return parse_schema(columns)
    if isinstance(columns, Mapping):
        return StructType(
            [StructField(n, parse_type(t) if isinstance(t, str) else t) for n, t in columns.items()]
        )
    from pyspark.sql.pandas.types import from_arrow_schema

    try:
        return from_arrow_schema(columns)
    except Exception as error:
        raise SchemaMismatchError(
            f"A schema of type {type(columns).__name__} cannot be read: {error}.",
            "Pass SQL text, a dict of names and types, a Spark schema or an Arrow schema.",
        ) from error


def declared_type(field: StructField) -> DataType:
    """Returns the type a column was declared with, ``char(n)`` and ``varchar(n)`` included."""
    text = (field.metadata or {}).get(DECLARED_TYPE)
    return parse_type(text) if text else field.dataType


def stored_field(field: StructField, *, nullable: bool) -> StructField:
    """Returns a column as the Delta log holds it: char and varchar are strings that note their length."""
    metadata = {k: v for k, v in (field.metadata or {}).items() if k == "comment"}
    data_type = declared_type(field)
    if isinstance(data_type, (CharType, VarcharType)):
        return StructField(
            field.name, StringType(), nullable, {**metadata, DECLARED_TYPE: data_type.simpleString()}
        )
    return StructField(field.name, data_type, nullable, metadata)


def check_columns(table: str, schema: StructType) -> None:
    """Checks names and types of columns.

    Raises:
        InvalidNameError: for a name that no column can have.
        AlreadyExistsError: for a name that occurs twice; names differ by more than case.
        SchemaMismatchError: for a type that no column can have, naming each such column, or if there is no
            column.
    """
    if not schema.fields:
        raise SchemaMismatchError(f"Table {table} has no columns.", "Give it at least one.")
    seen: dict[str, str] = {}
    for field in schema:
        _check_name(field.name)
        if field.name.lower() in seen:
            raise AlreadyExistsError(
                f"Table {table} has the columns '{seen[field.name.lower()]}' and '{field.name}'.",
                "Names of columns must differ by more than upper and lower case.",
            )
        seen[field.name.lower()] = field.name
    bad = [f"'{f.name}' ({why})" for f in schema if (why := _why_not(declared_type(f), top=True))]
    if bad:
        raise SchemaMismatchError(
            f"Table {table} cannot store the type of {', '.join(bad)}.",
            "Cast these columns, or leave them out.",
        )
    given = [
        f.name for f in schema if any("DEFAULT" in k or k.startswith("delta.") for k in f.metadata or {})
    ]
    if given:
        raise SchemaMismatchError(
            f"Columns {', '.join(given)} of table {table} have a default or are computed.",
            "Tables of lakekit have no defaults and no generated columns; compute the value when you write.",
        )


def _check_name(name: str) -> None:
    if not name or any(c in _BAD_CHARACTERS for c in name):
        raise InvalidNameError(
            f"{name!r} cannot be the name of a column.", "Names have no spaces and none of , ; { } ( ) =."
        )
    if name.lower() in RESERVED_COLUMNS or name.lower().startswith(_RESERVED_PREFIX):
        raise InvalidNameError(
            f"'{name}' cannot be the name of a column: it is reserved.", "Choose another name."
        )


def _why_not(data_type: DataType, *, top: bool = False) -> str | None:
    """Says why a type cannot be stored, or returns None."""
    if isinstance(data_type, (CharType, VarcharType)) and not top:
        return f"{data_type.simpleString()} inside another type; use string there"
    if isinstance(data_type, StringType) and _collated(data_type):
        return "a string with a collation"
    if isinstance(data_type, (*_ATOMIC, VariantType)):
        return None
    if isinstance(data_type, ArrayType):
        return _why_not(data_type.elementType)
    if isinstance(data_type, MapType):
        if not isinstance(data_type.keyType, _ATOMIC):
            return f"a map with keys of type {data_type.keyType.simpleString()}"
        return _why_not(data_type.keyType) or _why_not(data_type.valueType)
    if isinstance(data_type, StructType):
        for field in data_type:
            _check_name(field.name)
        return next((why for f in data_type if (why := _why_not(f.dataType))), None)
    if isinstance(data_type, NullType):
        return "void, it has no values"
    return data_type.simpleString()


def _collated(data_type: DataType) -> bool:
    return getattr(data_type, "collation", "UTF8_BINARY") != "UTF8_BINARY"


def find_columns(table: str, schema: StructType, names: Iterable[str]) -> list[StructField]:
    """Returns the columns of some names, whatever their case.

    Raises:
        ColumnNotFoundError: for a name that is no column.
        AlreadyExistsError: for a name that is given twice.
    """
    by_name = {field.name.lower(): field for field in schema}
    found: list[StructField] = []
    for name in names:
        field = by_name.get(name.lower())
        if field is None:
            raise ColumnNotFoundError.of(table, name, schema.names)
        if field in found:
            raise AlreadyExistsError(f"Column '{name}' of table {table} is given twice.", "Give it once.")
        found.append(field)
    return found


def check_key(table: str, schema: StructType, primary_key: Sequence[str]) -> tuple[str, ...]:
    """Returns the key columns as the schema spells them.

    Raises:
        ColumnNotFoundError: for a name that is no column.
        PrimaryKeyError: if a column's type has no stable order and hash.
    """
    fields = find_columns(table, schema, primary_key)
    bad = [f"'{f.name}' ({f.dataType.simpleString()})" for f in fields if not isinstance(f.dataType, _ATOMIC)]
    if bad:
        raise PrimaryKeyError(
            f"The primary key of table {table} cannot contain {', '.join(bad)}: "
            "arrays, maps, structs and variants have no order that every reader agrees on.",
            "Use columns of type boolean, byte, short, int, long, float, double, decimal, string, char, "
            "varchar, binary, date, timestamp or timestamp_ntz.",
        )
    return tuple(field.name for field in fields)


def check_partitions(
    table: str, schema: StructType, partition_by: Sequence[str], primary_key: Sequence[str]
) -> tuple[str, ...]:
    """Returns the partition columns as the schema spells them.

    Raises:
        ColumnNotFoundError: for a name that is no column.
        SchemaMismatchError: if a column's type cannot be written into a path, or no other column is left.
        PrimaryKeyError: if there is a key that does not contain them, or that has no other column.
    """
    fields = find_columns(table, schema, partition_by)
    bad = [
        f"'{f.name}' ({f.dataType.simpleString()})"
        for f in fields
        if not isinstance(f.dataType, _ATOMIC) or isinstance(f.dataType, _NO_PARTITION)
    ]
    if bad:
        raise SchemaMismatchError(
            f"Table {table} cannot be partitioned by {', '.join(bad)}.",
            "Partition by columns of type boolean, byte, short, int, long, decimal, string, date or "
            "timestamp.",
        )
    names = tuple(field.name for field in fields)
    if fields and len(fields) == len(schema.fields):
        raise SchemaMismatchError(
            f"Table {table} has only partition columns.",
            "Leave at least one column that it is not partitioned by.",
        )
    missing = [name for name in names if name not in primary_key]
    if primary_key and missing:
        raise PrimaryKeyError(
            f"The primary key of table {table} does not contain the partition columns {', '.join(missing)}.",
            f"Make the key PRIMARY KEY ({', '.join([*primary_key, *missing])}), or do not partition by them.",
        )
    if primary_key and set(primary_key) <= set(names):
        raise PrimaryKeyError(
            f"The primary key of table {table} has only partition columns: each partition would be one row.",
            "Add the column that tells the rows of a partition apart, or partition by fewer columns.",
        )
    return names


def required_features(schema: StructType) -> set[str]:
    """Returns the Delta table features that readers and writers need for the types of some columns."""
    found: set[str] = set()
    for field in schema:
        found |= _features(field.dataType)
    return found


def _features(data_type: DataType) -> set[str]:
    if isinstance(data_type, TimestampNTZType):
        return {"timestampNtz"}
    if isinstance(data_type, VariantType):
        return {"variantType"}
    if isinstance(data_type, ArrayType):
        return _features(data_type.elementType)
    if isinstance(data_type, MapType):
        return _features(data_type.keyType) | _features(data_type.valueType)
    if isinstance(data_type, StructType):
        return required_features(data_type)
    return set()


def as_nullable(data_type: DataType) -> DataType:
    """Returns a type whose elements, values and fields can all be null."""
    if isinstance(data_type, ArrayType):
        return ArrayType(as_nullable(data_type.elementType), True)
    if isinstance(data_type, MapType):
        return MapType(as_nullable(data_type.keyType), as_nullable(data_type.valueType), True)
    if isinstance(data_type, StructType):
        return StructType([StructField(f.name, as_nullable(f.dataType), True, f.metadata) for f in data_type])
    return data_type


def can_widen(old: DataType, new: DataType) -> bool:
    """Tells whether every value of `old` is one of `new`, so that a column can be widened (Delta's rules)."""
    if isinstance(old, _INTEGERS):
        if isinstance(new, _INTEGERS):
            return _DIGITS[type(old)] < _DIGITS[type(new)]
        if isinstance(new, DecimalType):
            return new.precision - new.scale >= _DIGITS[type(old)]
        return isinstance(new, DoubleType) and not isinstance(old, LongType)
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        more = new.scale - old.scale
        return more >= 0 and new.precision - old.precision >= more and new != old
    if isinstance(old, VarcharType):
        return isinstance(new, StringType) or (isinstance(new, VarcharType) and new.length > old.length)
    if isinstance(old, CharType):
        # Not to a longer char: values of the old length would lack its padding.
        return isinstance(new, StringType) or (isinstance(new, VarcharType) and new.length >= old.length)
    if isinstance(old, FloatType):
        return isinstance(new, DoubleType)
    return isinstance(old, DateType) and isinstance(new, TimestampNTZType)


def with_columns(snapshot: Snapshot, fields: Sequence[StructField]) -> Metadata:
    """Returns a table's metadata with more columns, after those that people see."""
    schema = json.loads(snapshot.metadata.schema_string)
    at = next(
        (i for i, f in enumerate(schema["fields"]) if f["name"] == BUCKET_COLUMN), len(schema["fields"])
    )
    schema["fields"][at:at] = [stored_field(field, nullable=True).jsonValue() for field in fields]
    return replace(
        snapshot.metadata, schema_string=json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    )


def evolved(snapshot: Snapshot, incoming: StructType, table: str = "the table") -> Metadata | None:
    """Returns metadata with the columns that incoming rows have and the table lacks; None if there are none.

    Raises:
        InvalidNameError: for a name that no column can have.
        SchemaMismatchError: for a type that cannot be stored, or that the table's protocol does not allow.
    """
    known = {field["name"].lower() for field in snapshot.schema_json["fields"]}
    new = [f for f in incoming if f.name.lower() not in known and not f.name.startswith(_RESERVED_PREFIX)]
    if not new:
        return None
    plain = [StructField(f.name, declared_type(f), True, {}) for f in new]
    check_columns(table, StructType(plain))
    missing = required_features(StructType(plain)) - set(snapshot.protocol.writer_features or ())
    if missing:
        listed = ", ".join(f"{f.name} {type_text(f.dataType)}" for f in plain)
        raise SchemaMismatchError(
            f"Table {table} cannot add {listed} while rows are written: readers would need the Delta table "
            f"feature {', '.join(sorted(missing))}.",
            "Add the columns first, with ALTER TABLE ... ADD COLUMN, or cast them.",
        )
    return with_columns(snapshot, plain)


def field_json(schema: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Returns the object of a column in a schema's JSON, whatever the case of the name."""
    return next((f for f in schema["fields"] if f["name"].lower() == name.lower()), None)
