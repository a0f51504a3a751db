"""What one reader of one topic partition passes on: pure logic, records in, changes out.

`1..9 flip 6..14` reads as `1..9 -9 -8 -7 -6 6..14`: on a flip the reader takes back, newest first, the rows of that
writer after its last good epoch that it passed on, and goes on. A reader that started in mid-epoch takes back no more
than it saw. Changes that were sent twice, by a writer and by whoever completed its work, are passed on once, as their
epoch and number never go back. Amoro's LogStore has the flips; there epochs compare as texts, here as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lakekit.logstore.records import TABLE, Change, Flip, LogRecord, Mark, RowKind

Place = tuple[int, float]
"""An epoch and a number in it."""
_BEFORE_ALL: Place = (-1, -1)


class LogChange(NamedTuple):
    """A change that a reader passes on, with the record that made it do so (of a flip, if it takes back)."""

    change: Change
    record: LogRecord


@dataclass
class _Passed:
    """What of an epoch was passed on, in columns: of so many small objects Python's collector would make work."""

    seqs: list[int] = field(default_factory=list)
    kinds: list[RowKind] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)


@dataclass
class _Writer:
    """What a reader knows of a writer.

    Attributes:
        last: the place of its last change, or what a flip or a mark made of it.
        open: for each epoch that a flip may still take back, what was passed on.
    """

    last: Place
    open: dict[int, _Passed] = field(default_factory=dict)


class PartitionReader:
    """The state of a reader of a topic partition."""

    def __init__(self, guarantee: bool = True, done: Mapping[str, int] | None = None) -> None:
        """Has read nothing yet.

        Args:
            guarantee: whether flips are obeyed.
            done: for each writer the last epoch that the reader has from elsewhere, such as a version of the FileStore.
        """
        self._guarantee = guarantee
        self._done = done or {}
        self._writers: dict[str, _Writer] = {}

    def feed(self, records: Iterable[LogRecord]) -> list[LogChange]:
        """Returns what the reader passes on for the records that come next."""
        passed = []
        for record in records:
            entry = record.entry
            if isinstance(entry, Change):
                if self._passes(entry):
                    passed.append(LogChange(entry, record))
            elif isinstance(entry, Flip):
                passed += [LogChange(change, record) for change in self._flip(entry)]
            elif isinstance(entry, Mark):
                self._confirm(entry)
        return passed

    def _writer(self, name: str) -> _Writer:
        found = self._writers.get(name)
        if found is None:
            found = self._writers[name] = _Writer(_BEFORE_ALL)
        return found

    def _passes(self, change: Change) -> bool:
        name, epoch, seq, kind, value = change
        if epoch <= self._done.get(name, -1):
            return False
        if not self._guarantee and name != TABLE:
            return True
        writer = self._writer(name)
        if (epoch, seq) <= writer.last:
            return False
        writer.last = epoch, seq
        if name != TABLE:
            own = writer.open.get(epoch)
            if own is None:
                own = writer.open[epoch] = _Passed()
            own.seqs.append(seq)
            own.kinds.append(kind)
            own.values.append(value)
        return True

    def _flip(self, flip: Flip) -> list[Change]:
        if not self._guarantee:
            return []
        writer = self._writer(flip.writer)
        writer.last = flip.last_good, math.inf
        in_vain: list[Change] = []
        # Epochs never go back but by a flip: the last one came last.
        for epoch in sorted((e for e in writer.open if e > flip.last_good), reverse=True):
            own = writer.open.pop(epoch)
            rows = zip(reversed(own.seqs), reversed(own.kinds), reversed(own.values), strict=True)
            in_vain += [Change(flip.writer, epoch, seq, kind.inverse, value) for seq, kind, value in rows]
        return in_vain

    def _confirm(self, mark: Mark) -> None:
        writer = self._writer(mark.writer)
        writer.last = max(writer.last, (mark.epoch, math.inf))
        for epoch in [e for e in writer.open if e <= mark.epoch]:
            del writer.open[epoch]
