"""Random columns, predicates on them, and what the predicates mean: the model that skipping is checked against."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from lakekit.skipping.predicate import (
    And,
    Anything,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Or,
    Predicate,
    StartsWith,
)
from lakekit.skipping.values import arrow_type
from lakekit.storage.actions import AddFile, Metadata, Protocol
from lakekit.storage.snapshot import Snapshot
from lakekit.storage.stats import collect_stats, column_types

UTC = dt.timezone.utc
PREFIX = "the same thirty-two characters.."  # 32 long, so that cut bounds collide

KINDS: dict[str, str] = {
    "tiny": "byte",
    "id": "long",
    "f32": "float",
    "f64": "double",
    "dec": "decimal(12,2)",
    "big": "decimal(38,10)",
    "txt": "string",
    "bin": "binary",
    "flag": "boolean",
    "day": "date",
    "ts": "timestamp",
    "ntz": "timestamp_ntz",
}


def value_of(kind: str, at: random.Random) -> Any:
    """Returns a value of a small range, so that equal and neighbouring ones are common."""
    makers: dict[str, Callable[[], Any]] = {
        "byte": lambda: at.randint(-5, 20),
        "long": lambda: at.choice([at.randint(-5, 50), 2**53 + at.randint(-2, 2), -(2**63), 2**63 - 1]),
        "float": lambda: float(
            np.float32(at.choice([0.1, 0.3, 1.5, -0.0, 0.0, 16777217, -2.25, math.inf, at.random()]))
        ),
        "double": lambda: at.choice([0.1, 1.5, -0.0, 0.0, -2.25, math.inf, -math.inf, at.random() * 10]),
        "decimal(12,2)": lambda: Decimal(at.randint(-500, 500)).scaleb(-2),
        "decimal(38,10)": lambda: Decimal(at.randint(-(10**3), 10**3)).scaleb(-10) + at.choice([0, 10**20]),
        "string": lambda: (
            at.choice(["", "a", "ab", "b", "é", "\U0001f600", PREFIX, PREFIX + "x", PREFIX + "é"])
            + at.choice(["", "", "0", "\uffff", "\U0010ffff", "zz"])
        ),
        "binary": lambda: bytes(at.choices([0, 65, 255], k=at.randint(0, 3))),
        "boolean": lambda: at.random() < 0.5,
        "date": lambda: dt.date(2022, 1, 1) + dt.timedelta(days=at.randint(-3, 30)),
        "timestamp": lambda: (
            dt.datetime(2022, 1, 1, tzinfo=UTC) + dt.timedelta(microseconds=at.randint(-3000, 3000))
        ),
        "timestamp_ntz": lambda: (
            dt.datetime.fromisoformat("1969-12-31T23:59:59") + dt.timedelta(microseconds=at.randint(0, 3000))
        ),
    }
    return makers[kind]()


def random_table(at: random.Random, rows: int, kinds: Mapping[str, str] = KINDS) -> pa.Table:
    """Returns columns of every kind with nulls, sometimes nulls only, NaN, and clustered or mixed values."""
    columns = {}
    for name, kind in kinds.items():
        nulls = at.choice([0, 0, 0.1, 1])
        nan = at.choice([0, 0, 0.1]) if kind in ("float", "double") else 0
        values = [value_of(kind, at) for _ in range(rows)]
        if at.random() < 0.6:
            values.sort()
            start = at.randint(0, rows // 2)
            values = (values[start : start + rows // 4] * 5)[:rows]
        values = [math.nan if at.random() < nan else v for v in values]
        columns[name] = pa.array([None if at.random() < nulls else v for v in values], arrow_type(kind))
    return pa.table(columns)


def random_predicate(at: random.Random, kinds: Mapping[str, str] = KINDS, depth: int = 2) -> Predicate:
    """Returns a predicate over the columns."""
    if depth and at.random() < 0.5:
        children = tuple(random_predicate(at, kinds, depth - 1) for _ in range(at.randint(1, 3)))
        return And(children) if at.random() < 0.5 else Or(children)
    name = at.choice(list(kinds))
    kind = kinds[name]
    form = at.choice(["compare"] * 5 + ["in", "in", "null", "not null", "prefix", "any"])
    if form == "null":
        return IsNull(name)
    if form == "not null":
        return IsNotNull(name.upper())
    if form == "any":
        return Anything("f(x)")
    if form == "prefix" and kind == "string":
        return StartsWith(name, value_of(kind, at)[: at.randint(0, 40)])
    if form == "in":
        return In(name, tuple(_literal(kind, at) for _ in range(at.randint(0, 12))))
    return Comparison(name, at.choice(["=", "=", "<", "<=", ">", ">="]), _literal(kind, at))


def _literal(kind: str, at: random.Random) -> Any:
    if at.random() < 0.03:
        return None
    value = value_of(kind, at)
    if kind in ("float", "double"):
        return at.choice([value, value, math.nan, 0.1, 1, 16777217, Decimal("0.1")])
    if kind in ("byte", "long"):
        return at.choice([value, value, float(value), Decimal(value) + Decimal("0.5")])
    if kind.startswith("decimal"):
        return at.choice([value, value, float(value), int(value)])
    if kind == "date" and at.random() < 0.3:
        return value.isoformat()
    return value


def matches(predicate: Predicate, row: Mapping[str, Any], kinds: Mapping[str, str] = KINDS) -> bool:
    """Tells whether the predicate is true for a row in any way in which Spark may compare the types."""
    if isinstance(predicate, And):
        return all(matches(child, row, kinds) for child in predicate.children)
    if isinstance(predicate, Or):
        return any(matches(child, row, kinds) for child in predicate.children)
    if isinstance(predicate, Anything):
        return True
    value = row[predicate.column.lower()]
    kind = kinds[predicate.column.lower()]
    if isinstance(predicate, IsNull):
        return value is None
    if value is None:
        return False
    if isinstance(predicate, IsNotNull):
        return True
    if isinstance(predicate, StartsWith):
        return str(value).startswith(predicate.prefix)
    if isinstance(predicate, In):
        return any(_compare(value, "=", v, kind) for v in predicate.values if v is not None)
    return predicate.value is not None and _compare(value, predicate.op, predicate.value, kind)


def _compare(value: Any, op: str, literal: Any, kind: str) -> bool:
    pairs = [(value, literal)]
    if kind == "float":
        pairs = [(value, float(literal)), (value, float(np.float32(literal)))]
    elif kind == "double" or (isinstance(literal, float) and not isinstance(value, float)):
        pairs = [(float(value), float(literal))]
    elif kind == "date" and isinstance(literal, str):
        pairs = [(value, dt.date.fromisoformat(literal))]
    return any(_ordered(_rank(left), op, _rank(right)) for left, right in pairs)


def _rank(value: Any) -> tuple[bool, Any]:
    """Orders NaN above all numbers, as Spark does."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value


def _ordered(left: Any, op: str, right: Any) -> bool:
    tests: dict[str, Callable[[], bool]] = {
        "=": lambda: left == right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
    }
    return tests[op]()


def schema_json(kinds: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a Delta schema."""
    fields = [{"name": n, "type": k, "nullable": True, "metadata": {}} for n, k in kinds.items()]
    return {"type": "struct", "fields": fields}


def snapshot_of(
    files: Sequence[AddFile],
    kinds: Mapping[str, Any] = KINDS,
    partition_columns: Sequence[str] = (),
    primary_key: Sequence[str] = (),
    buckets: int | None = None,
) -> Snapshot:
    """Returns a snapshot that was never on disk."""
    configuration = {"lake.primary-key": json.dumps(list(primary_key)), "lake.bucket": str(buckets or 1)}
    columns = dict(kinds) | ({"_bucket": "integer"} if buckets else {})
    partitions = (*partition_columns, *(["_bucket"] if buckets else []))
    metadata = Metadata("id", None, None, json.dumps(schema_json(columns)), partitions, configuration, 0)
    types = column_types(schema_json(columns))
    return Snapshot(3, 0, Protocol(3, 7), metadata, {f.path: f.with_types(types) for f in files}, {})


def file_of(
    name: str,
    rows: pa.Table,
    stats: str | None = "ours",
    partition: Mapping[str, str | None] | None = None,
    tags: Mapping[str, str] | None = None,
) -> AddFile:
    """Returns an add action for rows; `stats` is "ours", None, or a text."""
    if stats == "ours":
        tags = {"lake.run": "r", "lake.level": "0"} if tags is None else tags
        stats = collect_stats(rows)
    return AddFile(f"{name}.parquet", dict(partition or {}), 1000, 0, True, stats, dict(tags or {}))


def spark_stats(rows: pa.Table, kinds: Mapping[str, str] = KINDS, tight: bool = True) -> str:
    """Returns statistics as Delta's own writer makes them: NaN is a maximum, times are cut, floats are short."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name, kind in kinds.items():
        values = [v for v in rows[name].to_pylist() if v is not None]
        nulls[name] = rows.num_rows - len(values)
        if values and kind not in ("binary", "boolean"):
            low[name] = _spark_text(min(values, key=_rank), kind, upper=False)
            high[name] = _spark_text(max(values, key=_rank), kind, upper=True)
    stats = {"numRecords": rows.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    text = json.dumps(stats | {"tightBounds": tight}, default=lambda number: f"decimal {number:f}")
    return re.sub('"decimal ([-0-9.]+)"', r"\1", text)


def _spark_text(value: Any, kind: str, upper: bool) -> Any:
    if kind == "float":
        number = np.float32(value)
        return (
            float(str(number))
            if np.isfinite(number)
            else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(number), "NaN")
        )
    if kind == "double":
        return value if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")
    if kind in ("timestamp", "timestamp_ntz"):
        cut = value.replace(microsecond=value.microsecond // 1000 * 1000)
        return cut.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if kind == "date":
        return value.isoformat()
    if kind == "string" and len(value) > 32:
        return value[:32] + ("\U0010ffff" if upper else "")
    return value
