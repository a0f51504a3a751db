from __future__ import annotations

import random

import pytest

from lakekit.logstore.records import (
    TABLE,
    Change,
    Flip,
    LogRecord,
    Mark,
    Parser,
    RowKind,
    change_records,
    headers_of,
)
from lakekit.logstore.retract import PartitionReader


def change(writer, epoch, seq, kind="+I", value=None):
    return Change(writer, epoch, seq, RowKind(kind), value or f"{writer}{epoch}.{seq}".encode())


def read(entries, **options):
    records = [LogRecord(0, offset, 0, entry) for offset, entry in enumerate(entries)]
    changes = [found.change for found in PartitionReader(**options).feed(records)]
    return [f"{change.kind.value}{change.value.decode()}" for change in changes]


def test_a_flip_takes_back_newest_first_what_came_after_the_last_good_epoch():
    log = [change("a", n, 0, value=b"%d" % n) for n in range(1, 10)]
    log += [Flip("a", 5)] + [change("a", n, 0, value=b"%d" % n) for n in range(6, 15)]
    passed = read(log)
    assert passed[:9] == [f"+I{n}" for n in range(1, 10)]
    assert passed[9:13] == ["-D9", "-D8", "-D7", "-D6"]
    assert passed[13:] == [f"+I{n}" for n in range(6, 15)]


def test_updates_are_taken_back_pair_by_pair():
    log = [change("a", 1, 0, "-U", b"old"), change("a", 1, 1, "+U", b"new"), change("a", 1, 2, "-D", b"gone")]
    assert read([*log, Flip("a", 0)]) == ["-Uold", "+Unew", "-Dgone", "+Igone", "-Unew", "+Uold"]


def test_epochs_are_numbers_and_not_texts():
    log = [change("a", 9, 0), change("a", 10, 0), Flip("a", 9)]
    assert read(log) == ["+Ia9.0", "+Ia10.0", "-Da10.0"]


def test_a_flip_concerns_its_writer_alone():
    log = [change("a", 1, 0), change("b", 7, 0), Flip("a", 0)]
    assert read(log) == ["+Ia1.0", "+Ib7.0", "-Da1.0"]


def test_a_second_crash_in_recovery_flips_again():
    log = [
        change("a", 1, 0),
        change("a", 2, 0),
        Flip("a", 1),
        change("a", 2, 0),
        Flip("a", 1),
        change("a", 2, 0),
    ]
    assert read(log) == ["+Ia1.0", "+Ia2.0", "-Da2.0", "+Ia2.0", "-Da2.0", "+Ia2.0"]


def test_a_reader_that_starts_in_mid_epoch_takes_back_no_more_than_it_saw():
    log = [change("a", 3, 5), Flip("a", 2), change("a", 3, 0), change("a", 3, 1)]
    assert read(log) == ["+Ia3.5", "-Da3.5", "+Ia3.0", "+Ia3.1"]


def test_what_a_commit_confirms_is_not_taken_back():
    log = [change("a", 1, 0), Mark(4, "a", 1), change("a", 2, 0), Flip("a", 0)]
    assert read(log) == ["+Ia1.0", "+Ia2.0", "-Da2.0"]


def test_derived_changes_pass_once_however_often_they_were_sent():
    once = [change(TABLE, 5, 0), change(TABLE, 5, 1), Mark(5, TABLE, 5), change(TABLE, 6, 0)]
    twice = [once[0], *once, *once]
    assert read(twice) == read(once) == ["+I@table5.0", "+I@table5.1", "+I@table6.0"]
    assert read(twice, guarantee=False) == read(once)


def test_what_the_files_have_already_is_left_out():
    log = [change(TABLE, 5, 0), change("a", 2, 0), change("a", 3, 0), Flip("a", 2), change("a", 3, 0)]
    assert read(log, done={TABLE: 5, "a": 2}) == ["+Ia3.0", "-Da3.0", "+Ia3.0"]


def test_without_the_guarantee_flips_are_ignored():
    log = [change("a", 1, 0), Flip("a", 0), change("a", 1, 0)]
    assert read(log, guarantee=False) == ["+Ia1.0", "+Ia1.0"]


@pytest.mark.parametrize("seed", range(200))
def test_random_crashes_leave_what_was_sent_last(seed):
    """A writer sends epochs, crashes anywhere, flips and repeats; a reader ends with each epoch's last attempt."""
    choose = random.Random(seed)
    log, sent, epoch, confirmed = [], {}, 1, 0
    while epoch <= 12:
        rows = [f"{epoch}.{choose.randint(0, 9)}.{i}".encode() for i in range(choose.randint(0, 4))]
        cut = choose.randint(0, len(rows)) if choose.random() < 0.4 else None
        log += [change("a", epoch, i, value=v) for i, v in enumerate(rows[:cut])]
        if cut is None:
            sent[epoch] = rows
            epoch += 1
            if choose.random() < 0.3:
                confirmed = epoch - 1
                log.append(Mark(epoch, "a", confirmed))
            continue
        back = choose.randint(confirmed, epoch - 1)
        log.append(Flip("a", back))
        epoch = back + 1
    there = []
    for each in read(log):
        if each.startswith("+I"):
            there.append(each[2:])
        else:
            assert there.pop() == each[2:]
    assert there == [v.decode() for n in sorted(sent) for v in sent[n]]


def test_changes_come_back_as_they_were():
    changes = [change("ä", 2**40, seq, kind) for seq, kind in enumerate(["-U", "+U", "+I", "-D"], 3)]
    sent = list(change_records("t", "ä", 2**40, [(c.kind, b"[1]", c.value) for c in changes], first=3))
    parser = Parser("t")
    assert [parser.parse(tuple(record.headers), record.value) for record in sent] == changes
    assert [record.key for record in sent] == [b"[1]"] * 4


@pytest.mark.parametrize("entry", [Flip("ä", 0), Mark(7, "a", 2**40)])
def test_flips_and_marks_come_back_as_they_were(entry):
    assert Parser("t").parse(headers_of(entry, "t"), None) == entry
    assert Parser("other").parse(headers_of(entry, "t"), None) is None


def test_each_record_is_read_by_its_own_headers():
    """Also where the headers of one resemble those of the one before."""
    sent = {
        change(writer, epoch, seq, kind): record.headers
        for seq, (writer, epoch, kind) in enumerate(
            [("a", 1, "-U"), ("a", 2, "+U"), ("b", 2, "+I"), ("a", 1, "-D")]
        )
        for record in change_records("t", writer, epoch, [(RowKind(kind), None, b"")], first=seq)
    }
    parser = Parser("t")
    for entry, headers in sent.items():
        assert parser.parse(tuple(headers), entry.value) == entry
        assert Parser("other").parse(tuple(headers), entry.value) is None
        assert parser.parse(tuple(reversed(headers)), entry.value) == entry
        assert parser.parse((*headers, ("trace", b"1")), entry.value) == entry
        with pytest.raises(ValueError, match="no value"):
            parser.parse(tuple(headers), None)
        with pytest.raises(ValueError, match=r"no header 'lake\.seq'"):
            parser.parse((*headers[:4], ("trace", b"1"), headers[5]), entry.value)
        with pytest.raises(ValueError, match="invalid literal"):
            parser.parse((*headers[:4], ("lake.seq", b"x"), headers[5]), entry.value)


def test_a_foreign_record_says_what_it_lacks():
    ours = headers_of(Flip("a", 0), "t")[:-1]
    with pytest.raises(ValueError, match=r"no header 'lake\.format'"):
        Parser("t").parse([], b"{}")
    with pytest.raises(ValueError, match="format is b'2'"):
        Parser("t").parse([("lake.format", b"2")], b"{}")
    with pytest.raises(ValueError, match=r"no header 'lake\.writer'"):
        Parser("t").parse([("lake.format", b"1"), ("lake.table", b"t")], b"{}")
    with pytest.raises(ValueError, match=r"kind is b'\?'"):
        Parser("t").parse([*ours, ("lake.kind", b"?")], b"{}")
    with pytest.raises(ValueError, match=r"no value"):
        Parser("t").parse([*ours, ("lake.kind", b"+I")], None)
