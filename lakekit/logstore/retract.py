"""What one reader of one topic partition passes on: pure logic, records in, changes out.

`1..9 flip 6..14` reads as `1..9 -9 -8 -7 -6 6..14`: on a flip the reader takes back, newest first, the rows of that
writer after its last good epoch that it passed on, and goes on. A reader that started in mid-epoch takes back no more
than it saw. Changes that were sent twice, by a writer and by whoever completed its work, are passed on once, as their
epoch and number never go back. Amoro's LogStore has the flips; there epochs compare as texts, here as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lakekit.logstore.records import TABLE, Change, Entry, Flip

Place = tuple[int, float]
"""An epoch and a number in it."""


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

    def feed(self, entry: Entry, offset: int = 0) -> Iterator[Change]:
        """Yields what the reader passes on for the record at an offset."""
        if isinstance(entry, Change):
            yield from self._change(entry, offset)
        elif isinstance(entry, Flip):
            if self.guarantee:
                yield from self._flip(entry)
        else:
            self._raise_last(entry.writer, (entry.epoch, math.inf))
            self._open[entry.writer] = [
                o for o in self._open.get(entry.writer, []) if o[1].epoch > entry.epoch
            ]

    def first_open(self) -> int | None:
        """Returns the offset of the oldest change that a flip may still take back, if there is one."""
        return min((changes[0][0] for changes in self._open.values() if changes), default=None)

    def _change(self, change: Change, offset: int) -> Iterator[Change]:
        if change.epoch <= self.done.get(change.writer, -1):
            return
        if self.guarantee or change.writer == TABLE:
            if (change.epoch, change.seq) <= self._last.get(change.writer, (-1, -1)):
                return
            self._last[change.writer] = change.epoch, change.seq
        if self.guarantee and change.writer != TABLE:
            self._open.setdefault(change.writer, []).append((offset, change))
        yield change

    def _flip(self, flip: Flip) -> Iterator[Change]:
        kept = []
        for offset, change in reversed(self._open.get(flip.writer, [])):
            if change.epoch > flip.last_good:
                yield change._replace(kind=change.kind.inverse)
            else:
                kept.append((offset, change))
        self._open[flip.writer] = kept[::-1]
        self._last[flip.writer] = flip.last_good, math.inf

    def _raise_last(self, writer: str, place: Place) -> None:
        self._last[writer] = max(self._last.get(writer, (-1, -1)), place)
