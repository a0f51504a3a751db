from __future__ import annotations

import pytest

from lakekit.ingest.corrections import LastChanges, corrections
from lakekit.logstore.records import TABLE, Change, Flip, LogRecord, RowKind
from lakekit.logstore.retract import LogChange

STORED = {"other": 4}
"""The last epoch in the files of each stream but the one that corrects."""


def last(*changes):
    """Takes (writer, epoch, kind, value) of the one key b"k"."""
    found = LastChanges()
    for writer, epoch, kind, value in changes:
        change = Change(writer, epoch, 0, RowKind(kind), value)
        found.add(("own", 7), [b"k"], [LogChange(change, LogRecord(2, 0, 0, change))], STORED)
    return found


def corrected(found, stored):
    done = list(corrections(found, {} if stored is None else {b"k": stored}))
    assert {(partition, key) for partition, _, key, _ in done} <= {(2, b"k")}
    return [f"{kind.value}{value.decode()}" for _, kind, _, value in done]


@pytest.mark.parametrize(
    ("change", "stored", "expected"),
    [
        (("+I", b"a"), b"a", []),
        (("+U", b"a"), b"b", ["-Ua", "+Ub"]),
        (("+I", b"a"), None, ["-Da"]),
        (("-D", b"a"), b"b", ["+Ib"]),
        (("-D", b"a"), None, []),
    ],
)
def test_a_key_comes_to_what_the_files_have(change, stored, expected):
    assert corrected(last(("own", 7, *change)), stored) == expected


def test_corrections_go_on_with_the_numbers_of_their_epoch():
    found, changes = (
        LastChanges(),
        [Change("own", n, seq, RowKind("+I"), b"a") for n, seq in [(6, 9), (7, 0), (7, 1)]],
    )
    taken_back = Change("own", 7, 1, RowKind("-D"), b"a")
    records = [LogRecord(2, 0, 0, change) for change in changes] + [LogRecord(2, 0, 0, Flip("own", 6))]
    for change, record in zip([*changes, taken_back], records, strict=True):
        found.add(("own", 7), [b"k"], [LogChange(change, record)], STORED)
    assert found.numbers == {2: 2}


def test_who_changed_a_key_last_answers_for_it():
    for other in [(TABLE, 9, "+U", b"b"), ("other", 5, "+U", b"b"), ("other", 4, "+U", b"b")]:
        assert corrected(last(("own", 7, "+I", b"a"), other), b"c") == []


@pytest.mark.parametrize(
    ("kind", "expected"), [("+U", ["-Ua", "+Ub"]), ("-D", ["-Da"]), ("-U", ["-Ua", "+Ub"])]
)
def test_what_another_stream_has_not_committed_yet_stays(kind, expected):
    assert corrected(last(("other", 5, kind, b"b"), ("own", 7, "+U", b"a")), b"c") == expected


@pytest.mark.parametrize("settled", [(TABLE, 9, "+U", b"d"), ("other", 4, "+U", b"d")])
def test_what_the_files_have_of_another_stream_does_not_count(settled):
    found = last(("other", 5, "+U", b"b"), settled, ("own", 7, "+U", b"a"))
    assert corrected(found, b"c") == ["-Ua", "+Uc"]
