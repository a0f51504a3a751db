from __future__ import annotations

import random

import pytest

from lakekit.ingest.overlay import Arrival, Held, Overlay
from lakekit.logstore.records import RowKind

INSERT, BEFORE, AFTER, DELETE = RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE


def arrival(*rows, sequences=()):
    """Rows are (key, value), or (key, None) for a delete."""
    keys = [key.encode() for key, _ in rows]
    values = [(value or "").encode() for _, value in rows]
    return Arrival(keys, values, [value is None for _, value in rows], sequences)


def steps(overlay, rows, stored=None, epoch=1):
    known = {key.encode(): Held(*held) for key, held in (stored or {}).items()}
    return [(s.kind, s.value.decode()) for s in overlay.apply(rows, known, epoch)]


def test_new_keys_are_inserted_and_known_ones_updated():
    overlay = Overlay()
    assert steps(overlay, arrival(("a", "1"), ("b", "1")), {"b": (b"0",)}) == [
        (INSERT, "1"),
        (BEFORE, "0"),
        (AFTER, "1"),
    ]
    assert steps(overlay, arrival(("a", "2"))) == [(BEFORE, "1"), (AFTER, "2")]


def test_a_key_may_come_several_times_in_an_epoch():
    rows = arrival(("a", "1"), ("a", "2"), ("a", None), ("a", "3"))
    assert steps(Overlay(), rows) == [
        (INSERT, "1"),
        (BEFORE, "1"),
        (AFTER, "2"),
        (DELETE, "2"),
        (INSERT, "3"),
    ]


def test_deleting_what_is_not_there_changes_nothing():
    overlay = Overlay()
    assert steps(overlay, arrival(("a", None))) == []
    # and it is known then that there is no row, whatever the files say
    assert steps(overlay, arrival(("a", "1")), {"a": (b"stale",)}) == [(INSERT, "1")]


def test_late_rows_change_nothing():
    overlay = Overlay()
    rows = arrival(("a", "5"), ("a", "4"), ("a", "6"), ("a", "no sequence"), sequences=[5, 4, 6, None])
    assert steps(overlay, rows, {"a": (b"3", 3)}) == [
        (BEFORE, "3"),
        (AFTER, "5"),
        (BEFORE, "5"),
        (AFTER, "6"),
    ]


def test_unknown_keys_are_asked_for_once():
    overlay = Overlay()
    steps(overlay, arrival(("a", "1")))
    assert overlay.unknown([b"a", b"b", b"b", b"c"]) == [1, 3]


def test_what_the_files_have_is_forgotten():
    overlay = Overlay()
    steps(overlay, arrival(("a", "1"), ("b", "1")), epoch=1)
    steps(overlay, arrival(("a", "2")), epoch=2)
    overlay.forget(1)
    assert len(overlay) == 1
    assert overlay.unknown([b"a", b"b"]) == [1]


@pytest.mark.parametrize("seed", range(50))
def test_the_changelog_is_legal_and_ends_with_the_rows(seed):
    choose = random.Random(seed)
    overlay, files, expected, replayed = Overlay(), {}, {}, {}
    for epoch in range(1, 30):
        rows = [
            (f"k{choose.randint(0, 8)}", choose.choice([None, f"{epoch}.{i}"]))
            for i in range(choose.randint(0, 5))
        ]
        batch = arrival(*rows)
        stored = {key: Held(files[key]) for key in batch.keys if key in files}
        for step in overlay.apply(batch, stored, epoch):
            key = batch.keys[step.position]
            if step.kind is INSERT:
                assert key not in replayed
            elif step.kind in (BEFORE, DELETE):
                assert replayed.pop(key) == step.value
            if step.kind.adds:
                replayed[key] = step.value
        for key, value in rows:
            if value is None:
                expected.pop(key.encode(), None)
            else:
                expected[key.encode()] = value.encode()
        assert replayed == expected
        if choose.random() < 0.3:
            overlay.forget(epoch)
            files = dict(expected)
