"""Which commits of others stand in the way."""

from __future__ import annotations

import dataclasses

from lakekit.filestore.conflicts import Footprint, Isolation, Verdict, judge
from lakekit.storage.actions import AddFile, Metadata, Txn

BUCKET_0 = ((), 0)


def added(bucket: int, data_change: bool = True) -> AddFile:
    values = {"_bucket": str(bucket)}
    return AddFile(f"_bucket={bucket}/x", values, 1, 1, data_change, '{"numRecords": 1}', {}, None)


def footprint(
    isolation: Isolation, replaced: tuple[str, ...] = (), txn: tuple[str, int] | None = None
) -> Footprint:
    return Footprint(isolation, frozenset({BUCKET_0}), frozenset(replaced), txn)


def test_upserts_of_other_buckets_do_not_concern_each_other() -> None:
    assert judge(footprint(Isolation.KEYS), [added(1)]) is Verdict.GO_ON
    assert judge(footprint(Isolation.KEYS), [added(0)]) is Verdict.REPEAT


def test_a_compaction_stands_in_the_way_only_where_our_files_were() -> None:
    compaction = [added(0).remove(1, data_change=False), added(0, data_change=False)]
    assert judge(footprint(Isolation.KEYS), compaction) is Verdict.GO_ON
    replaces = ("_bucket=0/x",)
    for isolation in (Isolation.KEYS, Isolation.TABLE):
        assert judge(footprint(isolation, replaces), compaction) is Verdict.MOVED
        assert judge(footprint(isolation, replaces), [*compaction, added(0)]) is Verdict.REPEAT
        assert judge(footprint(isolation, replaces), [added(0), *compaction]) is Verdict.REPEAT
    assert judge(footprint(Isolation.FILES, replaces), compaction) is Verdict.REPEAT


def test_what_was_computed_from_the_table_is_repeated_after_any_change() -> None:
    assert judge(footprint(Isolation.TABLE), [added(5)]) is Verdict.REPEAT
    assert judge(footprint(Isolation.TABLE), [added(5, data_change=False)]) is Verdict.GO_ON


def test_a_compaction_yields_only_for_its_own_files() -> None:
    assert judge(footprint(Isolation.FILES), [added(0)]) is Verdict.GO_ON
    touched = added(0).remove(1, data_change=True)
    assert judge(footprint(Isolation.FILES, (touched.path,)), [touched]) is Verdict.REPEAT


def test_the_same_epoch_is_done_and_an_older_one_is_repeated() -> None:
    ours = footprint(Isolation.KEYS, txn=("w", 3))
    assert judge(ours, [Txn("w", 3, 0)]) is Verdict.DONE
    assert judge(ours, [Txn("w", 2, 0)]) is Verdict.REPEAT
    assert judge(ours, [Txn("other", 9, 0)]) is Verdict.GO_ON


def test_a_changed_schema_means_checking_the_rows_again() -> None:
    metadata = Metadata.from_json({"id": "x", "format": {}, "schemaString": "{}", "partitionColumns": []})
    assert judge(footprint(Isolation.FILES), [metadata]) is Verdict.REPEAT
    assert dataclasses.is_dataclass(metadata)
