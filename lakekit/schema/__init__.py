"""Columns: names, types, SQL text for them, and how rows are made to fit."""

from __future__ import annotations

from lakekit.schema.align import align
from lakekit.schema.columns import (
    check_columns,
    check_key,
    check_partitions,
    declared_type,
    evolved,
    struct_of,
)
from lakekit.schema.text import field_text, parse_schema, parse_type, type_text
from lakekit.schema.times import to_millis

__all__ = [
    "align",
    "check_columns",
    "check_key",
    "check_partitions",
    "declared_type",
    "evolved",
    "field_text",
    "parse_schema",
    "parse_type",
    "struct_of",
    "to_millis",
    "type_text",
]
