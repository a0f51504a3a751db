"""Checkpoints of the Delta log: the state of a table in Parquet, so that older commits need not be read.

Classic checkpoints of one or many parts and V2 checkpoints (JSON or Parquet, with sidecars) are read. Written
are classic ones of one part, which every Delta reader knows.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakekit.errors import LakeError
from lakekit.storage.actions import Action, AddFile, Other, RemoveFile, parse_action, parse_line
from lakekit.storage.faults import corrupt_file, missing_file
from lakekit.storage.listing import LOG_FOLDER, Checkpoint
from lakekit.storage.snapshot import Replay, Snapshot
from lakekit.storage.store import Store

LAST_CHECKPOINT = f"{LOG_FOLDER}/_last_checkpoint"

_ACTIONS = ("protocol", "metaData", "add", "remove", "txn", "domainMetadata", "sidecar")
_MAPS = frozenset({"partitionValues", "tags", "configuration", "options"})
_WEEK_MS = 7 * 24 * 3600 * 1000


def last_checkpoint_version(store: Store) -> int | None:
    """Returns the version that ``_last_checkpoint`` names; None if it is not there or makes no sense."""
    try:
        version = json.loads(store.read(LAST_CHECKPOINT))["version"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return version if isinstance(version, int) and version >= 0 else None


def read_checkpoint(store: Store, checkpoint: Checkpoint, removes: bool = False) -> list[Action]:
    """Returns the actions of a checkpoint.

    Args:
        store: the table's folder.
        checkpoint: one that `find_checkpoints` found.
        removes: whether to read the files that were removed too.

    Raises:
        CorruptLogError: if one of its files is missing or cannot be read.
    """
    actions: list[Action] = []
    for path in checkpoint.paths:
        for action in _read_file(store, path, removes):
            if isinstance(action, Other) and action.name == "sidecar":
                actions.extend(_read_file(store, _sidecar_path(action.fields["path"]), removes))
            else:
                actions.append(action)
    return actions


def _sidecar_path(path: str) -> str:
    return path if "/" in path else f"{LOG_FOLDER}/_sidecars/{path}"


def _read_file(store: Store, path: str, removes: bool) -> list[Action]:
    try:
        if path.endswith(".json"):
            lines = store.read(path).split(b"\n")
            return [parse_line(line.decode("utf-8")) for line in lines if line.strip()]
        with store.open_input(path) as file:
            return list(_read_parquet(pq.ParquetFile(file), removes))
    except FileNotFoundError as error:
        raise missing_file(store.root, path) from error
    except LakeError:
        raise
    except (pa.ArrowException, ValueError, KeyError, TypeError, OSError) as error:
        raise corrupt_file(store.root, path, f"{type(error).__name__}: {error}") from error


def _read_parquet(file: pq.ParquetFile, removes: bool) -> Iterator[Action]:
    schema = file.schema_arrow
    for name in _ACTIONS:
        if schema.get_field_index(name) < 0 or (name == "remove" and not removes):
            continue
        children = [child.name for child in schema.field(name).type]
        wanted = [child for child in children if not child.endswith("_parsed")]
        if name == "add" and "stats" not in children and "stats_parsed" in children:
            wanted.append("stats_parsed")
        column = file.read(columns=[f"{name}.{child}" for child in wanted]).column(0)
        for chunk in column.drop_null().chunks:
            for fields in _dicts(chunk):
                if "stats_parsed" in fields:
                    fields["stats"] = _stats_text(fields.pop("stats_parsed"))
                yield parse_action(name, fields)


def _dicts(structs: pa.StructArray) -> list[Any]:
    """Returns structs as dicts without their nulls, column by column: that is faster than row by row."""
    names = [child.name for child in structs.type]
    columns = [_values(structs.field(index)) for index in range(len(names))]
    rows = [
        {name: value for name, value in zip(names, values, strict=True) if value is not None}
        for values in zip(*columns, strict=True)
    ]
    return _where_valid(structs, rows)


def _values(array: pa.Array) -> list[Any]:
    if pa.types.is_map(array.type):
        pairs = list(zip(array.keys.to_pylist(), array.items.to_pylist(), strict=True))
        return _where_valid(
            array, [dict(pairs[start:end]) for start, end in pairwise(array.offsets.to_pylist())]
        )
    if pa.types.is_struct(array.type):
        return _dicts(array)
    return array.to_pylist()


def _where_valid(array: pa.Array, values: list[Any]) -> list[Any]:
    if not array.null_count:
        return values
    return [
        value if valid else None for value, valid in zip(values, array.is_valid().to_pylist(), strict=True)
    ]


def _stats_text(value: Any) -> str:
    if isinstance(value, dict):
        items = (f"{json.dumps(key, ensure_ascii=False)}:{_stats_text(item)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return json.dumps(value.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
    if isinstance(value, date):
        return json.dumps(value.isoformat())
    if isinstance(value, float) and not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else json.dumps("Infinity" if value > 0 else "-Infinity")
    return json.dumps(value, ensure_ascii=False)


_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_ROW_IDS = [("baseRowId", pa.int64()), ("defaultRowCommitVersion", pa.int64())]
_SCHEMA = pa.schema(
    [
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", _TEXTS),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _TEXTS),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("tags", _TEXTS),
                    ("deletionVector", _VECTOR),
                    *_ROW_IDS,
                    ("clusteringProvider", pa.string()),
                    ("stats", pa.string()),
                ]
            ),
        ),
        (
            "remove",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("deletionTimestamp", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("extendedFileMetadata", pa.bool_()),
                    ("partitionValues", _TEXTS),
                    ("size", pa.int64()),
                    ("tags", _TEXTS),
                    ("deletionVector", _VECTOR),
                    *_ROW_IDS,
                ]
            ),
        ),
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        (
            "domainMetadata",
            pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
        ),
    ]
)


def write_checkpoint(store: Store, snapshot: Snapshot, replay: Replay, now_ms: int | None = None) -> None:
    """Writes the checkpoint of a version and names it in ``_last_checkpoint`` unless that names a newer one.

    Args:
        store: the table's folder.
        snapshot: the state to write.
        replay: the replay that led to it, with tombstones: vacuum needs those that have not expired.
        now_ms: the present time in ms since 1970.
    """
    now = int(time.time() * 1000) if now_ms is None else now_ms
    expired = now - retention_ms(snapshot.configuration)
    kept = [remove for remove in replay.tombstones.values() if (remove.deletion_timestamp or 0) > expired]
    data = _to_parquet(_rows(snapshot, replay, kept))
    path = f"{LOG_FOLDER}/{snapshot.version:020d}.checkpoint.parquet"
    store.put(path, data)
    if (last_checkpoint_version(store) or -1) < snapshot.version:
        count = 2 + len(snapshot.files) + len(kept) + len(replay.txn_actions) + len(snapshot.domains)
        hint = {
            "version": snapshot.version,
            "size": count,
            "sizeInBytes": len(data),
            "numOfAddFiles": len(snapshot.files),
        }
        store.put(LAST_CHECKPOINT, json.dumps(hint, separators=(",", ":")).encode())


def _rows(
    snapshot: Snapshot, replay: Replay, removes: Iterable[RemoveFile]
) -> dict[str, list[dict[str, Any]]]:
    return {
        "protocol": [snapshot.protocol.to_json()],
        "metaData": [snapshot.metadata.to_json()],
        "add": [_checkpointed(file) for file in snapshot.files.values()],
        "remove": [_checkpointed(remove) for remove in removes],
        "txn": [txn.to_json() for txn in replay.txn_actions.values()],
        "domainMetadata": [domain.to_json() for domain in snapshot.domains.values()],
    }


def _checkpointed(file: AddFile | RemoveFile) -> dict[str, Any]:
    return {**file.to_json(), "dataChange": False}


def _to_parquet(rows: Mapping[str, list[dict[str, Any]]]) -> bytes:
    total = sum(len(group) for group in rows.values())
    columns: list[pa.Array] = []
    before = 0
    for field in _SCHEMA:
        group = [_pairs(row) for row in rows[field.name]]
        columns.append(
            pa.concat_arrays(
                [
                    pa.nulls(before, field.type),
                    pa.array(group, field.type),
                    pa.nulls(total - before - len(group), field.type),
                ]
            )
        )
        before += len(group)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, schema=_SCHEMA), sink, compression="snappy")
    return bytes(sink.getvalue())


def _pairs(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        if key in _MAPS:
            return list(value.items())
        return {name: _pairs(item, name) for name, item in value.items()}
    return value


_UNITS_MS = {
    "week": _WEEK_MS,
    "day": 24 * 3600 * 1000,
    "hour": 3600 * 1000,
    "minute": 60 * 1000,
    "second": 1000,
    "millisecond": 1,
}


def retention_ms(
    configuration: Mapping[str, str],
    option: str = "delta.deletedFileRetentionDuration",
    default: int = _WEEK_MS,
) -> int:
    """Returns a retention property, such as ``interval 7 days``, in ms; the default if it is not set."""
    total = 0
    for count, unit in re.findall(r"(\d+)\s+([a-z]+?)s?\b", configuration.get(option, "").lower()):
        if unit not in _UNITS_MS:
            return default
        total += int(count) * _UNITS_MS[unit]
    return total or default
