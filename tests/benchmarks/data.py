"""Writes the rows of a dataset once, as Parquet, and works out without Spark what every query must return.

Each value is a hash (splitmix64) of key, version and column, so a row is the same whoever makes it, and the
final state of the table follows from the version each key had last.
"""

from __future__ import annotations

import shutil
import zlib
from datetime import date, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .workload import FIRST_DAY, GROUPS, NEWEST, VALUE_COLUMNS, Batch, Dataset, KeyKind, Manifest

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

CHUNK = 250_000
FILE_ROWS = 1_000_000
LOOKUPS = 20
MANY = 1_000
RANGES = 10
RANGE_KEYS = 1_000
WIDE_KEYS = 100_000

_START = 1_640_995_200_000_000  # 2022-01-01 in microseconds
_VERSION_STEP = 60_000_000
_HEX = np.array([list(f"{i:02x}".encode()) for i in range(256)], dtype=np.uint8)
_STRING_WORDS = 6  # 16 hex digits each: 96 characters, the longest string
_FORMAT = 2  # raise it when rows or manifest change, so that no older files are taken for them


def prepare(dataset: Dataset, folder: Path) -> Manifest:
    """Returns the dataset's manifest; writes its files into `folder` unless they are there."""
    place = folder / f"{dataset.name}-s{dataset.seed}-f{_FORMAT}"
    manifest = place / "manifest.json"
    if not manifest.exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        _write(dataset, place).save()
    return Manifest.read(manifest)


def schema(key: KeyKind, days: int = 0) -> pa.Schema:
    """The Arrow schema of the rows; in a table of `days` partitions they have a day."""
    of_key = pa.int64() if key == "bigint" else pa.string()
    values = [pa.field(c, pa.int64()) for c in VALUE_COLUMNS]
    moment = pa.field("ts", pa.timestamp("us", tz="UTC"))
    day = [pa.field("day", pa.date32())] if days else []
    return pa.schema([pa.field("k", of_key), pa.field("s", pa.string()), *values, moment, *day])


def rows(keys: Ints, versions: Ints, key: KeyKind, days: int = 0) -> pa.Table:
    """Makes the rows with these key numbers and versions: about 150 bytes each.

    A key, a string of 64 + number % 32 hex digits, 8 bigints below 2^36 (so that no sum overflows) and a
    timestamp that grows with the version.
    """
    seed = _mix(keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + versions.astype(np.uint64))
    text = np.stack([_mix(seed + np.uint64(100 + word)) for word in range(_STRING_WORDS)], axis=1)
    columns: list[pa.Array] = [key_column(keys, key), _strings(_hex(text), 64 + keys % 32)]
    words = (_mix(seed + np.uint64(index)) for index in range(len(VALUE_COLUMNS)))
    columns.extend(pa.array((word >> np.uint64(28)).astype(np.int64)) for word in words)
    within = (_mix(seed + np.uint64(50)) % np.uint64(_VERSION_STEP)).astype(np.int64)
    columns.append(pa.array(_START + versions * _VERSION_STEP + within).cast(pa.timestamp("us", tz="UTC")))
    if days:
        first = (FIRST_DAY - date(1970, 1, 1)).days
        columns.append(pa.array((first + keys % days).astype(np.int32)).cast(pa.date32()))
    return pa.table(columns, schema=schema(key, days))


def key_column(keys: Ints, key: KeyKind) -> pa.Array:
    """The keys themselves: the numbers, or the UUID that belongs to each."""
    if key == "bigint":
        return pa.array(keys)
    digits = _hex(_uuid_words(keys))
    out = np.full((len(keys), 36), ord("-"), dtype=np.uint8)
    for start, end, to in ((0, 8, 0), (8, 12, 9), (12, 16, 14), (16, 20, 19), (20, 32, 24)):
        out[:, to : to + end - start] = digits[:, start:end]
    return _strings(out, np.full(len(keys), 36))


def sorted_numbers(keys: Ints, key: KeyKind) -> Ints:
    """The key numbers in the order of their keys."""
    if key == "bigint":
        return np.sort(keys)
    words = _uuid_words(keys)
    return keys[np.lexsort((words[:, 1], words[:, 0]))]


def _write(dataset: Dataset, place: Path) -> Manifest:
    rng = np.random.default_rng(dataset.seed)
    versions = np.full(dataset.keys, -1, dtype=np.int16)
    arrival = rng.permutation(dataset.load)
    _write_rows(place / "load", arrival, np.zeros(len(arrival), dtype=np.int64), dataset)
    versions[: dataset.load] = 0
    batches = []
    for number, size in enumerate(dataset.batches, start=1):
        keys = _draw(rng, dataset, size)
        path = place / f"batch-{number:03d}"
        written = np.full(size, number)
        older = np.flatnonzero(versions[keys[: int(size * dataset.late)]] > 0)
        written[older] = versions[keys[older]] - 1
        _write_rows(path, keys, written, dataset)
        versions[keys] = np.maximum(versions[keys], written)
        batches.append(Batch(size, str(path)))
    present = sorted_numbers(np.flatnonzero(versions >= 0), dataset.key)
    final = place / "final"
    expected = _write_rows(final, present, versions[present].astype(np.int64), dataset)
    picked = rng.choice(present, LOOKUPS)
    lookups = key_column(picked, dataset.key).to_pylist()
    ranges, expected["range"] = _ranges(rng, present, RANGE_KEYS, versions, dataset.key)
    wide_ranges, expected["wide range"] = _ranges(rng, present, WIDE_KEYS, versions, dataset.key)
    many = rng.choice(present, min(MANY, len(present)), replace=False)
    expected["many"] = _some(many, versions, dataset.key)
    looked_up = rows(picked, versions[picked].astype(np.int64), dataset.key)
    expected["lookup"] = [[_plain(value) for value in row.values()] for row in looked_up.to_pylist()]
    return Manifest(
        dataset=dataset,
        load=str(place / "load"),
        batches=tuple(batches),
        final=str(final),
        lookups=tuple(lookups),
        ranges=ranges,
        wide_ranges=wide_ranges,
        many=tuple(key_column(many, dataset.key).to_pylist()),
        expected=expected,
    )


def _ranges(
    rng: np.random.Generator, present: Ints, keys: int, versions: npt.NDArray[np.int16], kind: KeyKind
) -> tuple[tuple[tuple[int | str, int | str], ...], list[list[int]]]:
    """First and last key of ranges of so many keys, and what a query of each must return."""
    width = min(keys, len(present))
    starts = rng.integers(0, len(present) - width + 1, RANGES)
    first, last = (key_column(n, kind).to_pylist() for n in (present[starts], present[starts + width - 1]))
    results = [_some(present[s : s + width], versions, kind) for s in starts]
    return tuple(zip(first, last, strict=True)), results


def _draw(rng: np.random.Generator, dataset: Dataset, size: int) -> Ints:
    """The keys of a batch, in random order: uniform, or with a share of them from the newest keys."""
    if not dataset.skew:
        return rng.choice(dataset.keys, size, replace=False)
    oldest_new = int(dataset.keys * (1 - NEWEST))
    of_newest = min(round(size * dataset.skew), dataset.keys - oldest_new)
    newest = oldest_new + rng.choice(dataset.keys - oldest_new, of_newest, replace=False)
    return rng.permutation(np.concatenate([newest, rng.choice(oldest_new, size - of_newest, replace=False)]))


def _write_rows(path: Path, keys: Ints, versions: Ints, dataset: Dataset) -> dict[str, list[object]]:
    """Writes files of 1 M rows (at least two, so that two cores read them); returns the query results."""
    path.mkdir(parents=True)
    key, days = dataset.key, dataset.days
    tally = _Tally(key)
    file_rows = min(FILE_ROWS, max(-(-len(keys) // 2), 10_000))
    for number, start in enumerate(range(0, len(keys), file_rows)):
        end = min(start + file_rows, len(keys))
        with pq.ParquetWriter(path / f"part-{number:04d}.parquet", schema(key, days)) as writer:
            for low in range(start, end, CHUNK):
                part = slice(low, min(low + CHUNK, end))
                table = rows(keys[part], versions[part], key, days)
                writer.write_table(table, row_group_size=CHUNK)
                if path.name == "final":
                    tally.add(table)
    return tally.results()


class _Tally:
    """Adds up what the queries of `workload` must return."""

    def __init__(self, key: KeyKind) -> None:
        self._key = key
        self._count = 0
        self._sums = [0] * (2 + len(VALUE_COLUMNS))
        self._newest = 0
        self._groups = np.zeros((2, GROUPS), dtype=np.int64)
        self._filtered = [0, 0]
        self._crc = 0

    def add(self, table: pa.Table) -> None:
        of_key = table["k"] if self._key == "bigint" else pc.utf8_length(table["k"])
        for i, column in enumerate([of_key, pc.utf8_length(table["s"]), *(table[c] for c in VALUE_COLUMNS)]):
            self._sums[i] += pc.sum(column).as_py() or 0
        self._count += table.num_rows
        micros = table["ts"].cast(pa.int64())
        self._newest = max(self._newest, pc.max(micros).as_py())
        values = {c: table[c].to_numpy() for c in ("c0", "c1", "c2", "c3")}
        group = values["c1"] % GROUPS
        np.add.at(self._groups[0], group, 1)
        np.add.at(self._groups[1], group, values["c0"])
        matching = values["c2"] % 100 == 7
        self._filtered[0] += int(matching.sum())
        self._filtered[1] += int(values["c3"][matching].sum())
        texts = [table["k"], table["s"], *(table[c] for c in VALUE_COLUMNS), micros]
        joined = pc.binary_join_element_wise(*(t.cast(pa.string()) for t in texts), "|").cast(pa.binary())
        self._crc += sum(zlib.crc32(text) for text in joined.to_pylist())

    def results(self) -> dict[str, list[object]]:
        seen = self._groups[0] > 0
        return {
            "scan": [self._count, *self._sums, self._newest],
            "aggregate": [int(seen.sum()), self._count, int(self._groups[1].max())],
            "filter": list(self._filtered),
            "checksum": [self._count, self._crc],
        }


def _some(keys: Ints, versions: npt.NDArray[np.int16], key: KeyKind) -> list[int]:
    table = rows(keys, versions[keys].astype(np.int64), key)
    return [table.num_rows, pc.sum(table["c0"]).as_py(), pc.sum(pc.utf8_length(table["s"])).as_py()]


def _plain(value: object) -> object:
    """A value as JSON has it; a timestamp as microseconds."""
    return round(value.timestamp() * 1_000_000) if isinstance(value, datetime) else value


def _mix(words: Words) -> Words:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _uuid_words(keys: Ints) -> Words:
    """High and low 64 bits of a random (version 4) UUID for each key number."""
    number = keys.astype(np.uint64)
    high = (_mix(number) & np.uint64(0xFFFFFFFFFFFF0FFF)) | np.uint64(0x4000)
    low = (_mix(number ^ np.uint64(1 << 63)) & np.uint64(0x3FFFFFFFFFFFFFFF)) | np.uint64(0x8000000000000000)
    return np.stack([high, low], axis=1)


def _hex(words: Words) -> npt.NDArray[np.uint8]:
    """Each row's words, big-endian, as hex digits."""
    octets = np.ascontiguousarray(words.astype(">u8")).view(np.uint8).reshape(len(words), -1)
    return _HEX[octets].reshape(len(words), -1)


def _strings(characters: npt.NDArray[np.uint8], lengths: Ints) -> pa.Array:
    """The first `lengths[i]` characters of each row as a string."""
    kept = characters[np.arange(characters.shape[1]) < lengths[:, None]]
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(kept))
