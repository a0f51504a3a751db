"""The newest rows of a stream's keys, which the FileStore does not have yet: pure logic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lakekit.logstore.records import RowKind


class Held(NamedTuple):
    """What is known of a key.

    Attributes:
        value: its row as JSON; None if there is no row.
        sequence: the row's value of the sequence field.
        epoch: that brought it; 0 for what the FileStore has.
    """

    value: bytes | None
    sequence: Any = None
    epoch: int = 0


@dataclass(frozen=True)
class Arrival:
    """Rows that have come, in order, as columns.

    Attributes:
        keys: their keys, as JSON.
        values: the rows, as JSON.
        deletes: whether the row's key is to be deleted.
        sequences: values of the sequence field; empty without one.
    """

    keys: Sequence[bytes]
    values: Sequence[bytes]
    deletes: Sequence[bool]
    sequences: Sequence[Any] = ()


class Step(NamedTuple):
    """A change of the row at `position` of an arrival."""

    position: int
    kind: RowKind
    value: bytes


@dataclass
class Overlay:
    """Rows by key, over a FileStore that is asked for those that are not here."""

    _held: dict[bytes, Held] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._held)

    def unknown(self, keys: Iterable[bytes]) -> list[int]:
        """Returns the positions of the keys of which nothing is known, each key once."""
        seen: set[bytes] = set()
        found = []
        for index, key in enumerate(keys):
            if key not in self._held and key not in seen:
                seen.add(key)
                found.append(index)
        return found

    def forget(self, epoch: int) -> None:
        """Drops what epochs up to this one brought: the FileStore has it now."""
        self._held = {key: held for key, held in self._held.items() if held.epoch > epoch}

    def apply(self, arrival: Arrival, stored: Mapping[bytes, Held], epoch: int) -> Iterator[Step]:
        """Yields what the rows of an epoch change, and takes them over.

        Args:
            arrival: the rows; one whose sequence is below that of its key's row changes nothing.
            stored: rows of the FileStore, for the keys of which nothing is known here; those it lacks do not exist.
            epoch: the number of the epoch.
        """
        for index, key in enumerate(arrival.keys):
            sequence = arrival.sequences[index] if arrival.sequences else None
            old = self._held.get(key) or stored.get(key) or _NOTHING
            if old.value is not None and _is_late(sequence, old.sequence):
                continue
            if old.value is not None:
                kind = RowKind.DELETE if arrival.deletes[index] else RowKind.UPDATE_BEFORE
                yield Step(index, kind, old.value)
            if arrival.deletes[index]:
                self._held[key] = Held(None, sequence, epoch)
                continue
            kind = RowKind.INSERT if old.value is None else RowKind.UPDATE_AFTER
            self._held[key] = Held(arrival.values[index], sequence, epoch)
            yield Step(index, kind, arrival.values[index])


_NOTHING = Held(None)


def _is_late(new: Any, old: Any) -> bool:
    """Tells whether a row is older than the one that is there; no sequence at all is the oldest."""
    if old is None:
        return False
    return new is None or bool(new < old)
