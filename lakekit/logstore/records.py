"""The log's records, as `docs/log-format.md` describes them: bytes and headers in, plain data out, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

FORMAT = b"1"
FORMAT_HEADER, TABLE_HEADER, KIND_HEADER, WRITER_HEADER, EPOCH_HEADER, SEQ_HEADER, VERSION_HEADER = (
    "lake.format", "lake.table", "lake.kind", "lake.writer", "lake.epoch", "lake.seq", "lake.version",
)  # fmt: skip
_FLIP, _COMMIT = b"flip", b"commit"

TABLE = "@table"
"""The writer of changes that were derived from a commit of the FileStore; their epoch is the table's version."""

Headers: TypeAlias = Sequence[tuple[str, bytes]]


class RowKind(Enum):
    """What a record does to its row; the values are those of changelogs everywhere."""

    INSERT = "+I"
    UPDATE_BEFORE = "-U"
    UPDATE_AFTER = "+U"
    DELETE = "-D"

    @property
    def inverse(self) -> RowKind:
        """The kind that takes this one back."""
        return _INVERSE[self]

    @property
    def adds(self) -> bool:
        """Whether the row is there afterwards."""
        return self in (RowKind.INSERT, RowKind.UPDATE_AFTER)


_INVERSE = {
    RowKind.INSERT: RowKind.DELETE,
    RowKind.DELETE: RowKind.INSERT,
    RowKind.UPDATE_BEFORE: RowKind.UPDATE_AFTER,
    RowKind.UPDATE_AFTER: RowKind.UPDATE_BEFORE,
}


@dataclass(frozen=True, slots=True)
class Change:
    """A row that a writer sent.

    Attributes:
        writer: who; `TABLE` for a change that is in the FileStore already.
        epoch: the unit of its writer's work; the table's version for `TABLE`.
        seq: the number of the change in its epoch and topic partition, from 0.
        kind: what happened to the row.
        value: the row as JSON.
    """

    writer: str
    epoch: int
    seq: int
    kind: RowKind
    value: bytes


@dataclass(frozen=True, slots=True)
class Flip:
    """Takes back what a writer sent after its epoch `last_good`."""

    writer: str
    last_good: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Says that the FileStore has a version, whose changes are complete in the topic partition.

    Attributes:
        version: the version.
        writer: whose epochs up to `epoch` are in it; `TABLE` with the version itself for derived changes.
        epoch: see writer.
    """

    version: int
    writer: str
    epoch: int


Entry: TypeAlias = Change | Flip | Mark


def headers_of(entry: Entry, table: str) -> list[tuple[str, bytes]]:
    """Returns a record's headers.

    Args:
        entry: what the record says.
        table: id of the table it is about.
    """
    epoch = entry.last_good if isinstance(entry, Flip) else entry.epoch
    headers = [
        (FORMAT_HEADER, FORMAT),
        (TABLE_HEADER, table.encode()),
        (WRITER_HEADER, entry.writer.encode()),
        (EPOCH_HEADER, b"%d" % epoch),
    ]
    if isinstance(entry, Change):
        return [*headers, (SEQ_HEADER, b"%d" % entry.seq), (KIND_HEADER, entry.kind.value.encode())]
    if isinstance(entry, Flip):
        return [*headers, (KIND_HEADER, _FLIP)]
    return [*headers, (KIND_HEADER, _COMMIT), (VERSION_HEADER, b"%d" % entry.version)]


def parse(headers: Headers, value: bytes | None, table: str) -> Entry | None:
    """Returns what a record says, or None if it is about another table.

    Raises:
        ValueError: telling what is wrong with a record that lakekit did not write, or a newer one did.
    """
    found = dict(headers)
    if FORMAT_HEADER not in found:
        raise ValueError("it has no header 'lake.format'")
    if found[FORMAT_HEADER] != FORMAT:
        raise ValueError(f"its format is {found[FORMAT_HEADER]!r}, and this lakekit knows {FORMAT!r}")
    try:
        if found[TABLE_HEADER] != table.encode():
            return None
        writer, epoch, kind = found[WRITER_HEADER].decode(), int(found[EPOCH_HEADER]), found[KIND_HEADER]
        if kind == _FLIP:
            return Flip(writer, epoch)
        if kind == _COMMIT:
            return Mark(int(found[VERSION_HEADER]), writer, epoch)
        if value is None:
            raise ValueError("it has no value")
        return Change(writer, epoch, int(found[SEQ_HEADER]), RowKind(kind.decode()), value)
    except KeyError as error:
        raise ValueError(f"it has no header {error}") from None
