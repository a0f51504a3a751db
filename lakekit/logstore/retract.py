"""What one reader of one topic partition passes on: pure logic, records in, changes out.

`1..9 flip 6..14` reads as `1..9 -9 -8 -7 -6 6..14`: on a flip the reader takes back, newest first, the rows of that
writer after its last good epoch that it passed on, and goes on. A reader that started in mid-epoch takes back no more
than it saw. Changes that were sent twice, by a writer and by whoever completed its work, are passed on once, as their
epoch and number never go back. Amoro's LogStore has the flips; there epochs compare as texts, here as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakekit.logstore.records import TABLE, Change, Entry, Flip

Place = tuple[int, float]
"""An epoch and a number in it."""
_BEFORE_ALL: Place = (-1, -1)


@dataclass
class PartitionReader:
    """The state of a reader of a topic partition.

    Attributes:
        guarantee: whether flips are obeyed.
        done: for each writer the last epoch that the reader has from elsewhere, such as a version of the FileStore.
    """

    guarantee: bool = True
    done: Mapping[str, int] = field(default_factory=dict)
    _last: dict[str, Place] = field(default_factory=dict)
    _open: dict[str, list[tuple[int, Change]]] = field(default_factory=dict)

    def feed(self, entry: Entry, offset: int = 0) -> list[Change]:
        """Returns what the reader passes on for the record at an offset."""
        if isinstance(entry, Change):
            return [entry] if self._passes(entry, offset) else []
        if isinstance(entry, Flip):
            return self._flip(entry) if self.guarantee else []
        self._raise_last(entry.writer, (entry.epoch, math.inf))
        self._open[entry.writer] = [o for o in self._open.get(entry.writer, []) if o[1].epoch > entry.epoch]
        return []

    def first_open(self) -> int | None:
        """Returns the offset of the oldest change that a flip may still take back, if there is one."""
        return min((changes[0][0] for changes in self._open.values() if changes), default=None)

    def _passes(self, change: Change, offset: int) -> bool:
        writer, place = change.writer, (change.epoch, change.seq)
        if change.epoch <= self.done.get(writer, -1):
            return False
        if self.guarantee or writer == TABLE:
            if place <= self._last.get(writer, _BEFORE_ALL):
                return False
            self._last[writer] = place
        if self.guarantee and writer != TABLE:
            self._open.setdefault(writer, []).append((offset, change))
        return True

    def _flip(self, flip: Flip) -> list[Change]:
        sent = self._open.get(flip.writer, [])
        self._open[flip.writer] = [o for o in sent if o[1].epoch <= flip.last_good]
        self._last[flip.writer] = flip.last_good, math.inf
        in_vain = [change for _, change in reversed(sent) if change.epoch > flip.last_good]
        return [change._replace(kind=change.kind.inverse) for change in in_vain]

    def _raise_last(self, writer: str, place: Place) -> None:
        self._last[writer] = max(self._last.get(writer, _BEFORE_ALL), place)
