"""What is measured: the rows, the batches and the queries, as plain data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

KeyKind = Literal["bigint", "uuid"]

VALUE_COLUMNS = tuple(f"c{i}" for i in range(8))
COLUMNS = ("k", "s", *VALUE_COLUMNS, "ts")
GROUPS = 1_000
"""Number of groups of the aggregate query."""

FIRST_DAY = date(2022, 1, 1)
NEWEST = 0.1
"""The share of the keys that counts as the newest."""


@dataclass(frozen=True)
class Dataset:
    """The rows of one case.

    Attributes:
        keys: size of the key space; batches draw from it uniformly, each key at most once in a batch.
        load: keys ``0 … load - 1`` are loaded first, in random order.
        batches: number of rows of each upsert batch, in order.
        key: `bigint`, or `uuid` for a string of 36 characters.
        skew: the share of a batch's rows that goes to the newest tenth of the keys; 0 for uniform.
        days: the number of partitions, by a column `day` that each key keeps; 0 for none.
        late: the share of a batch's rows that are older than what the table has, and must not win.
    """

    keys: int
    load: int
    batches: tuple[int, ...]
    key: KeyKind
    seed: int = 20220101
    skew: float = 0.0
    days: int = 0
    late: float = 0.0

    @property
    def name(self) -> str:
        sizes = "-".join(f"{count}x{short(rows)}" for rows, count in _runs(self.batches))
        changed = "".join(f"-{n}{getattr(self, n):g}" for n in ("skew", "days", "late") if getattr(self, n))
        return f"{self.key}-{short(self.load)}-of-{short(self.keys)}-{sizes}{changed}"

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The primary key; a partition column is part of it."""
        return ("day", "k") if self.days else ("k",)

    @property
    def schema_sql(self) -> str:
        kind = "BIGINT" if self.key == "bigint" else "STRING"
        values = ", ".join(f"{c} BIGINT" for c in VALUE_COLUMNS)
        return f"k {kind} NOT NULL, s STRING, {values}, ts TIMESTAMP" + (
            ", day DATE NOT NULL" if self.days else ""
        )


@dataclass(frozen=True)
class Case:
    """One dataset, and what to do with it.

    Attributes:
        kind: `race` measures everything; `memory` only loads and upserts ever larger batches.
        repeats: how often each read query runs; the median is reported.
    """

    kind: Literal["race", "memory"]
    dataset: Dataset
    repeats: int = 3

    @property
    def title(self) -> str:
        keys, updates = self.dataset.keys, sum(self.dataset.batches)
        size = f"{short(keys)} keys"
        if updates >= 5 * keys:  # the whole race, and not a part of it
            size += f", {short(int(float(f'{updates:.1g}')))} updates"
        size += f", {self.dataset.key}"
        if self.dataset.skew:
            size += f", {self.dataset.skew:.0%} of the updates on the newest {NEWEST:.0%}"
        if self.dataset.days:
            size += f", {self.dataset.days} partitions"
        if self.dataset.late:
            size += f", {self.dataset.late:.0%} of the rows late"
        return size if self.kind == "race" else f"growing batches, {size}"


@dataclass(frozen=True)
class Batch:
    rows: int
    path: str


@dataclass(frozen=True)
class Manifest:
    """A dataset on disk: where its Parquet files are, and what each query must return.

    Attributes:
        final: the rows that the table has in the end, in key order.
        lookups: keys (literals of the key type) with the row each has in the end.
        ranges: first and last key of ranges of 1,000 keys.
        wide_ranges: the same of ranges of 100,000 keys.
        many: 1,000 different keys, to be looked up at once.
        expected: result rows by name of the query, as JSON lists.
    """

    dataset: Dataset
    load: str
    batches: tuple[Batch, ...]
    final: str
    lookups: tuple[int | str, ...]
    ranges: tuple[tuple[int | str, int | str], ...]
    wide_ranges: tuple[tuple[int | str, int | str], ...]
    many: tuple[int | str, ...]
    expected: dict[str, Any]

    @property
    def path(self) -> Path:
        """The file that this was read from."""
        return Path(self.final).parent / "manifest.json"

    def save(self) -> None:
        self.path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def read(path: Path) -> Manifest:
        found = json.loads(path.read_text())
        dataset = found["dataset"]
        found["dataset"] = Dataset(**{**dataset, "batches": tuple(dataset["batches"])})
        found["batches"] = tuple(Batch(**batch) for batch in found["batches"])
        for name in ("lookups", "many"):
            found[name] = tuple(found[name])
        for name in ("ranges", "wide_ranges"):
            found[name] = tuple(tuple(ends) for ends in found[name])
        return Manifest(**found)


def race(keys: int, key: KeyKind, batches: Sequence[int], **variant: Any) -> Case:
    """All keys are loaded, then come the batches.

    A batch has at most half of the keys, so that it stays an update and tiny runs keep the proportions.
    """
    sizes = tuple(min(rows, max(keys // 2, 1)) for rows in batches)
    return Case("race", Dataset(keys, keys, sizes, key, **variant), repeats=5 if keys <= 5_000_000 else 3)


def memory(largest: int, key: KeyKind) -> Case:
    """Batches of 1 %, 10 % and 100 % of `largest` rows go into one table."""
    batches = (largest // 100, largest // 10, largest)
    return Case("memory", Dataset(largest, max(largest // 10, 1), batches, key))


def short(rows: int) -> str:
    """Writes 2000000 as 2M and 10000 as 10k."""
    for unit, sign in ((1_000_000, "M"), (1_000, "k")):
        if rows >= unit and rows % (unit // 10) == 0:
            return f"{rows / unit:g}{sign}"
    return str(rows)


def parse_rows(text: str) -> int:
    """Reads 2M, 10k or 500.

    Raises:
        ValueError: if the text is no number of rows.
    """
    unit = {"k": 1_000, "m": 1_000_000}.get(text[-1:].lower())
    rows = float(text[:-1]) * unit if unit else float(text)
    if rows < 100 or rows != int(rows):
        raise ValueError(f"'{text}' is not a number of rows of at least 100.")
    return int(rows)


def parse_batches(text: str) -> tuple[int, ...]:
    """Reads 5x1M,3x10k: the number of batches, and of rows in each.

    Raises:
        ValueError: if the text is something else.
    """
    pairs = [item.split("x") for item in text.split(",") if item]
    return tuple(rows for count, size in pairs for rows in [parse_rows(size)] * int(count))


def literal(key: int | str) -> str:
    return f"'{key}'" if isinstance(key, str) else str(key)


def scan_sql(table: str, key: KeyKind) -> str:
    """Counts the rows and touches every column."""
    sums = ", ".join(f"sum({c})" for c in VALUE_COLUMNS)
    of_key = "sum(k)" if key == "bigint" else "sum(length(k))"
    return f"SELECT count(*), {of_key}, sum(length(s)), {sums}, max(unix_micros(ts)) FROM {table}"


def aggregate_sql(table: str) -> str:
    return (
        f"SELECT count(*), sum(n), max(total) FROM (SELECT c1 % {GROUPS} AS g, count(*) AS n, "
        f"sum(c0) AS total FROM {table} GROUP BY c1 % {GROUPS})"
    )


def filter_sql(table: str) -> str:
    """About 1 % of the rows, by a column of random values, with which no statistics can help."""
    return f"SELECT count(*), sum(c3) FROM {table} WHERE c2 % 100 = 7"


def day_of(dataset: Dataset, key: int | str) -> date | None:
    """The partition of a key, None in a table without."""
    return FIRST_DAY + timedelta(days=int(key) % dataset.days) if dataset.days else None


def lookup_sql(table: str, key: int | str, day: date | None = None) -> str:
    partition = f" AND day = DATE'{day}'" if day else ""
    return f"SELECT {', '.join(COLUMNS)} FROM {table} WHERE k = {literal(key)}{partition}"


def range_sql(table: str, ends: tuple[int | str, int | str]) -> str:
    low, high = map(literal, ends)
    return f"SELECT {_SOME} FROM {table} WHERE k BETWEEN {low} AND {high}"


def many_sql(table: str, keys: Sequence[int | str]) -> str:
    return f"SELECT {_SOME} FROM {table} WHERE k IN ({', '.join(map(literal, keys))})"


_SOME = "count(*), sum(c0), sum(length(s))"
"""What a query of some rows returns."""


def checksum_sql(table: str) -> str:
    """Every value of every row: the CRC-32 of each row's text, added up."""
    values = ", ".join(f"CAST({c} AS STRING)" for c in VALUE_COLUMNS)
    row = f"concat_ws('|', CAST(k AS STRING), s, {values}, CAST(unix_micros(ts) AS STRING))"
    return f"SELECT count(*), sum(crc32({row})) FROM {table}"


def _runs(batches: tuple[int, ...]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for rows in batches:
        if runs and runs[-1][0] == rows:
            runs[-1] = (rows, runs[-1][1] + 1)
        else:
            runs.append((rows, 1))
    return runs
