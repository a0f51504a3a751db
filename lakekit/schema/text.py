"""Column types as SQL text: reading and writing.

PySpark reads such text only with a session, and drops the length of char and varchar on the way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

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

from lakekit.errors import SchemaMismatchError, did_you_mean
from lakekit.names import literal, quote

_TOKEN = re.compile(
    r"\s*(?:(`(?:[^`]|``)+`)|('(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\")|(\w+)|(.))", re.DOTALL
)
_ESCAPE = re.compile(r"\\(.)|''", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b"}

_SIMPLE: Mapping[str, type[DataType]] = {
    "boolean": BooleanType,
    "tinyint": ByteType,
    "byte": ByteType,
    "smallint": ShortType,
    "short": ShortType,
    "int": IntegerType,
    "integer": IntegerType,
    "bigint": LongType,
    "long": LongType,
    "float": FloatType,
    "real": FloatType,
    "double": DoubleType,
    "string": StringType,
    "binary": BinaryType,
    "date": DateType,
    "timestamp": TimestampType,
    "timestamp_ltz": TimestampType,
    "timestamp_ntz": TimestampNTZType,
    "variant": VariantType,
    "void": NullType,
}
_DECIMAL = frozenset({"decimal", "dec", "numeric"})
_WITH_LENGTH: Mapping[str, Callable[[int], DataType]] = {
    "char": CharType,
    "character": CharType,
    "varchar": VarcharType,
}
_KNOWN = [*_SIMPLE, *_DECIMAL, *_WITH_LENGTH, "array", "map", "struct"]


class _Token(NamedTuple):
    kind: str  # "quoted", "string", "word", "symbol" or "end"
    text: str


def parse_type(text: str) -> DataType:
    """Reads one type, such as ``decimal(10, 2)`` or ``array<struct<a: int, b: varchar(3)>>``.

    Raises:
        SchemaMismatchError: if the text is no type.
    """
    parser = _Parser(text)
    found = parser.data_type()
    parser.expect_end()
    return found


def parse_schema(text: str) -> StructType:
    """Reads columns, such as ``id BIGINT NOT NULL COMMENT 'the key', name STRING``.

    Raises:
        SchemaMismatchError: if the text is no list of columns.
    """
    parser = _Parser(text)
    fields = parser.fields(end="")
    parser.expect_end()
    return StructType(fields)


def type_text(data_type: DataType) -> str:
    """Returns a type as SQL text that `parse_type` and Spark read."""
    if isinstance(data_type, ArrayType):
        return f"ARRAY<{type_text(data_type.elementType)}>"
    if isinstance(data_type, MapType):
        return f"MAP<{type_text(data_type.keyType)}, {type_text(data_type.valueType)}>"
    if isinstance(data_type, StructType):
        return f"STRUCT<{', '.join(field_text(field, separator=': ') for field in data_type)}>"
    return data_type.simpleString().upper()


def field_text(field: StructField, separator: str = " ", declared: DataType | None = None) -> str:
    """Returns a column as SQL text: name, type, NOT NULL and comment.

    Args:
        field: the column.
        separator: what stands between name and type.
        declared: the type to show instead of the field's.
    """
    text = quote(field.name) + separator + type_text(declared or field.dataType)
    if not field.nullable:
        text += " NOT NULL"
    comment = field.metadata.get("comment") if field.metadata else None
    return f"{text} COMMENT {literal(comment)}" if comment else text


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[_Token] = []
        for match in _TOKEN.finditer(text.rstrip()):
            kind = ("quoted", "string", "word", "symbol")[(match.lastindex or 1) - 1]
            self._tokens.append(_Token(kind, match[match.lastindex or 1]))
        self._tokens.append(_Token("end", ""))
        self._at = 0

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _accept(self, text: str) -> bool:
        token = self._peek()
        if token.kind in ("word", "symbol") and token.text.lower() == text:
            self._next()
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._error(f"'{text}' is missing before '{self._peek().text or 'the end'}'")

    def expect_end(self) -> None:
        if self._peek().kind != "end":
            raise self._error(f"'{self._peek().text}' is not expected")

    def _error(self, why: str, hint: str = "") -> SchemaMismatchError:
        shown = self._text.strip() if len(self._text) <= 200 else f"{self._text.strip()[:200]}…"
        return SchemaMismatchError(
            f"'{shown}' cannot be read as column types: {why}.",
            hint or "Write columns as: id BIGINT NOT NULL, name STRING, tags ARRAY<STRING>.",
        )

    def fields(self, end: str) -> list[StructField]:
        """Reads columns up to the end of the text, or to the symbol `end`, which is left."""
        found: list[StructField] = []
        if end and self._peek().text == end:
            return found
        while True:
            found.append(self._field())
            if not self._accept(","):
                return found

    def _field(self) -> StructField:
        token = self._next()
        if token.kind not in ("quoted", "word"):
            raise self._error(f"the name of a column is missing before '{token.text or 'the end'}'")
        name = token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text
        self._accept(":")
        data_type = self.data_type()
        nullable, metadata = True, {}
        while self._peek().kind == "word":
            word = self._next().text.lower()
            if word == "not":
                self._expect("null")
                nullable = False
            elif word == "comment" and self._peek().kind == "string":
                metadata["comment"] = _string_value(self._next().text)
            elif word in ("default", "generated"):
                raise self._error(
                    f"column '{name}' has a {word.upper()} clause",
                    "Tables of lakekit have neither; compute the value when you write.",
                )
            else:
                raise self._error(f"'{word}' is not expected after the type of column '{name}'")
        return StructField(name, data_type, nullable, metadata)

    def data_type(self) -> DataType:
        token = self._next()
        if token.kind != "word":
            raise self._error(f"a type is missing before '{token.text or 'the end'}'")
        name = token.text.lower()
        if name == "array":
            return self._array()
        if name == "map":
            return self._map()
        if name == "struct":
            return self._struct()
        if name in _DECIMAL:
            return self._decimal()
        if name in _WITH_LENGTH:
            return self._with_length(name)
        if name == "interval":
            raise self._error("intervals cannot be stored", "Store a number of seconds, days or months.")
        if name not in _SIMPLE:
            raise self._error(f"there is no type '{token.text}'", did_you_mean(token.text, _KNOWN))
        if name == "string" and self._accept("collate"):
            collation = self._next().text
            if collation.upper() != "UTF8_BINARY":
                raise self._error(f"the collation {collation} cannot be stored", "Leave COLLATE out.")
        return _SIMPLE[name]()

    def _array(self) -> DataType:
        self._expect("<")
        element = self.data_type()
        self._expect(">")
        return ArrayType(element)

    def _map(self) -> DataType:
        self._expect("<")
        key = self.data_type()
        self._expect(",")
        value = self.data_type()
        self._expect(">")
        return MapType(key, value)

    def _struct(self) -> DataType:
        self._expect("<")
        fields = self.fields(end=">")
        self._expect(">")
        return StructType(fields)

    def _numbers(self) -> list[int]:
        numbers: list[int] = []
        if not self._accept("("):
            return numbers
        while True:
            token = self._next()
            if not token.text.isdigit():
                raise self._error(f"'{token.text or 'the end'}' is no whole number")
            numbers.append(int(token.text))
            if self._accept(")"):
                return numbers
            self._expect(",")

    def _decimal(self) -> DataType:
        numbers = self._numbers()
        precision, scale = (numbers or [10])[0], numbers[1] if len(numbers) > 1 else 0
        if len(numbers) > 2 or not 1 <= precision <= 38 or scale > precision:
            given = ", ".join(map(str, numbers))
            raise self._error(
                f"there is no DECIMAL({given})", "DECIMAL(precision, scale) has 1 to 38 digits."
            )
        return DecimalType(precision, scale)

    def _with_length(self, name: str) -> DataType:
        numbers = self._numbers()
        if len(numbers) != 1 or numbers[0] < 1:
            raise self._error(f"{name} needs a length", f"Write {name.upper()}(10), or STRING.")
        return _WITH_LENGTH[name](numbers[0])


def _string_value(text: str) -> str:
    return _ESCAPE.sub(lambda m: "'" if m[1] is None else _ESCAPED.get(m[1], m[1]), text[1:-1])
