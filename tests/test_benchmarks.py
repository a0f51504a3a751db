"""The race itself runs by `make bench`; here is what must hold for its figures to mean anything."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.benchmarks import report
from tests.benchmarks.check import problems
from tests.benchmarks.data import key_column, prepare, rows, sorted_numbers
from tests.benchmarks.systems import NAMES, system_class
from tests.benchmarks.workload import (
    COLUMNS,
    Dataset,
    Manifest,
    day_of,
    memory,
    parse_batches,
    parse_rows,
    race,
    short,
)

CASES = {
    "bigint": {"key": "bigint"},
    "uuid": {"key": "uuid"},
    "skewed": {"key": "bigint", "skew": 0.9},
    "partitioned": {"key": "bigint", "days": 30},
    "late": {"key": "bigint", "late": 0.2},
}


@pytest.fixture(scope="module", params=CASES)
def manifest(request, tmp_path_factory):
    dataset = Dataset(keys=3_000, load=2_000, batches=(1_500, 1_500, 200), **CASES[request.param])
    return prepare(dataset, tmp_path_factory.mktemp("data"))


def read(path):
    return pq.read_table(path).to_pylist()


def test_final_rows_are_those_of_a_dict_that_takes_every_batch(manifest):
    model = {row["k"]: row for row in read(manifest.load)}
    for batch in manifest.batches:
        changed = read(batch.path)
        assert len(changed) == batch.rows == len({row["k"] for row in changed})
        newer = [r for r in changed if r["k"] not in model or r["ts"] > model[r["k"]]["ts"]]
        assert (len(newer) < len(changed)) == (manifest.dataset.late > 0 and batch != manifest.batches[0])
        model |= {row["k"]: row for row in newer}
    final = read(manifest.final)
    assert [row["k"] for row in final] == sorted(model)
    assert {row["k"]: row for row in final} == model


def test_expected_results_are_those_of_the_final_rows(manifest):
    final = read(manifest.final)
    texts = []
    for row in final:
        micros = round(row["ts"].timestamp() * 1_000_000)
        texts.append("|".join(str(row[c]) for c in COLUMNS[:-1]) + f"|{micros}")
    assert manifest.expected["checksum"] == [len(final), sum(zlib.crc32(t.encode()) for t in texts)]
    assert manifest.expected["scan"][3] == sum(row["c0"] for row in final)
    matching = [row["c3"] for row in final if row["c2"] % 100 == 7]
    assert manifest.expected["filter"] == [len(matching), sum(matching)]
    for (low, high), expected in zip(manifest.ranges, manifest.expected["range"], strict=True):
        within = [row for row in final if low <= row["k"] <= high]
        assert expected == [len(within), sum(r["c0"] for r in within), sum(len(r["s"]) for r in within)]
        assert len(within) == 1_000
    by_key = {row["k"]: row for row in final}
    for key, expected in zip(manifest.lookups, manifest.expected["lookup"], strict=True):
        assert expected[:-1] == [by_key[key][column] for column in COLUMNS[:-1]]


def test_skew_partitions_and_names_of_datasets(manifest):
    dataset = manifest.dataset
    numbers = [row["k"] for row in read(manifest.batches[0].path)]
    if dataset.skew:
        assert (
            sum(k >= 2_700 for k in numbers) == 300
        )  # all of the newest tenth; 90 % of the batch would be more
    for row in read(manifest.final):
        assert row.get("day") == day_of(dataset, row["k"])
    assert len({Dataset(3_000, 2_000, (10,), **case).name for case in CASES.values()}) == len(CASES)


def test_a_manifest_survives_its_file(manifest):
    assert Manifest.read(manifest.path) == manifest


def test_prepared_rows_are_not_written_again(manifest):
    before = manifest.path.stat().st_mtime_ns
    assert prepare(manifest.dataset, manifest.path.parent.parent) == manifest
    assert manifest.path.stat().st_mtime_ns == before


def test_strings_have_the_length_of_the_workload():
    numbers = np.arange(100)
    made = rows(numbers, np.zeros(100, dtype=np.int64), "bigint")
    assert [len(s) for s in made["s"].to_pylist()] == [64 + i % 32 for i in range(100)]


def test_uuids_sort_as_their_numbers_do():
    keys = key_column(sorted_numbers(np.arange(5_000), "uuid"), "uuid").to_pylist()
    assert keys == sorted(keys)
    assert len(set(keys)) == 5_000
    assert all(len(k) == 36 and k[14] == "4" and k[19] in "89ab" for k in keys)


def test_a_wrong_result_is_a_problem(manifest):
    right = {"step": "filter", "stage": "before", "result": [manifest.expected["filter"]]}
    wrong = {"step": "scan", "stage": "before", "result": [[1, 2, 3]]}
    assert problems([right, {"step": "done"}], manifest) == []
    assert [p.split(":")[0] for p in problems([wrong, {"step": "done"}], manifest)] == ["scan before"]
    assert problems([right], manifest) == ["it did not end"]


def measured(name, seconds, *, upserts=True):
    events = [{"step": "load", "seconds": seconds, "memory": None}]
    if upserts:
        each = {
            "step": "upsert",
            "rows": 500,
            "bytes_written": 10,
            "memory": {"jvm": 5e8, "workers": 0, "total": 6e8},
        }
        events += [{**each, "seconds": seconds * factor} for factor in (9, 1, 2)]
        events.append({"step": "compact", "bytes_written": 2e6 * seconds, "seconds": seconds / 4})
        events.append({"step": "settle", "bytes_written": 15, "seconds": seconds / 2})
    events.append({"step": "scan", "stage": "before", "seconds": seconds})
    if upserts:
        events.append({"step": "scan", "stage": "after", "seconds": seconds / 2})
    return {"title": name, "events": events, "failure": None, "problems": []}


def test_the_table_shows_medians_and_ratios():
    systems = {
        "lakekit": measured("lakekit", 1.0),
        "delta-merge": measured("Delta", 4.0),
        "delta-plain": measured("plain", 0.5, upserts=False),
    }
    dataset = {"keys": 1_000, "load": 1_000, "batches": [500, 500, 500], "key": "bigint"}
    entry = {"title": "1k", "kind": "race", "dataset": dataset, "ingested_bytes": 15, "systems": systems}
    lines = [
        [c.strip() for c in line.split("|")[1:-1]] for line in report.tables({"cases": [entry]}).splitlines()
    ]
    assert lines[0] == ["", "work", "lakekit", "Delta", "÷", "plain", "÷"]
    found = {line[1]: line[2:] for line in lines}
    assert found["upsert of 500 rows, first"] == ["9.00 s", "36 s", "4", "", ""]
    assert found["upsert of 500 rows, median"] == ["2.00 s", "8.00 s", "4", "", ""]
    assert found["full scan, after compaction"] == ["0.50 s", "2.00 s", "4", "0.50 s", "1"]
    assert found["bytes written by the upserts ÷ bytes of the batches"][0] == "3.0"
    assert found["compaction"] == ["0.25 s", "1.00 s", "4", "", ""]
    assert found["all upserts, background work included"] == ["12 s", "50 s", "4", "", ""]
    assert "aggregate, before compaction" not in found


def test_a_system_that_failed_half_way_has_neither_a_last_upsert_nor_a_sum():
    failed = measured("Delta", 4.0)
    failed["events"] = failed["events"][:3]  # two of three batches
    systems = {"lakekit": measured("lakekit", 1.0), "delta-merge": failed}
    dataset = {"keys": 1_000, "load": 1_000, "batches": [500, 500, 500], "key": "bigint"}
    entry = {"title": "1k", "kind": "race", "dataset": dataset, "ingested_bytes": 15, "systems": systems}
    lines = report.tables({"cases": [entry]}).splitlines()
    found = {cells[2].strip(): cells[4].strip() for cells in (line.split("|") for line in lines)}
    assert found["upsert of 500 rows, first"] == "36 s"
    assert found["upsert of 500 rows, last"] == found["all upserts, background work included"] == ""


def test_a_compaction_that_had_nothing_to_do_has_no_time():
    done = measured("lakekit", 0.25)  # writes less than a file of data
    dataset = {"keys": 1_000, "load": 1_000, "batches": [500], "key": "bigint"}
    entry = {
        "title": "1k",
        "kind": "race",
        "dataset": dataset,
        "ingested_bytes": 15,
        "systems": {"lakekit": done},
    }
    assert "| compaction |" not in report.tables({"cases": [entry]})


def test_failures_name_case_and_system():
    bad = measured("Delta", 1.0) | {"problems": ["scan before: 1 instead of 2"]}
    entry = {"title": "1k", "systems": {"lakekit": measured("lakekit", 1.0), "delta-merge": bad}}
    assert report.failures({"cases": [entry]}) == ["1k: delta-merge: scan before: 1 instead of 2"]


def test_every_system_can_be_imported_and_has_its_name():
    assert [system_class(name).name for name in NAMES] == list(NAMES)


@pytest.mark.parametrize(
    ("text", "number"), [("2M", 2_000_000), ("10k", 10_000), ("500", 500), ("1.5M", 1_500_000)]
)
def test_sizes_are_read_and_shown(text, number):
    assert parse_rows(text) == number
    assert short(number) == text


@pytest.mark.parametrize("text", ["", "10", "x", "2G", "0.5k5"])
def test_bad_sizes_are_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        parse_rows(text)


def test_cases_have_the_batches_of_the_workload():
    batches = parse_batches("3x1M,2x10k")
    assert batches == (1_000_000,) * 3 + (10_000,) * 2
    assert race(20_000_000, "uuid", batches).dataset.batches == batches
    assert race(100_000, "bigint", batches).dataset.batches == (50_000,) * 3 + (10_000,) * 2
    assert memory(10_000_000, "bigint").dataset.batches == (100_000, 1_000_000, 10_000_000)
    assert race(100_000, "bigint", batches).title == "100k keys, bigint"
    assert race(100_000, "bigint", [50_000] * 10).title == "100k keys, 500k updates, bigint"
    assert race(100_000, "bigint", batches, days=30).title == "100k keys, bigint, 30 partitions"


@pytest.mark.parametrize("text", ["5", "1M", "x10k", "2x"])
def test_bad_batches_are_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        parse_batches(text)
