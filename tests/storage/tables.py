"""Small Delta logs for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from lakekit.storage.actions import AddFile, CommitInfo, Metadata, Protocol
from lakekit.storage.log import DeltaLog
from lakekit.storage.store import Store

FEATURES = ("deletionVectors",)
START = 1_600_000_000_000


def metadata(table_id: str = "t", configuration: Mapping[str, str] | None = None, **columns: str) -> Metadata:
    columns = columns or {"id": "long", "_bucket": "integer"}
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    partitions = ("_bucket",) if "_bucket" in columns else ()
    return Metadata(table_id, None, None, schema, partitions, configuration or {}, 1)


def protocol(*features: str) -> Protocol:
    return Protocol(3, 7, FEATURES + features, FEATURES + features)


def add(path: str, rows: int = 10, **fields: object) -> AddFile:
    stats = json.dumps({"numRecords": rows})
    return replace(AddFile(path, {"_bucket": "0"}, 100, 1, data_change=True, stats=stats), **fields)


def new_log(store: Store, versions: int = 1, **properties: str) -> DeltaLog:
    """Makes a table whose version v (from 1) adds file ``f<v>``."""
    log = DeltaLog(store)
    assert log.write(
        0, [CommitInfo({"timestamp": START}), protocol(), metadata(configuration=properties)], "create"
    )
    extend(log, 1, versions)
    return log


def extend(log: DeltaLog, first: int, end: int) -> None:
    for version in range(first, end):
        info = CommitInfo({"timestamp": START + version * 1000})
        assert log.write(version, [add(f"f{version}"), info], f"commit {version}")
