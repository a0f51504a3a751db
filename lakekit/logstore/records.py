"""The log's records, as `docs/log-format.md` describes them: bytes and headers in, plain data out, and back.

What is made once for each record is a named tuple here: that takes a third of a frozen dataclass's time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple, TypeAlias

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

    def __init__(self, value: str) -> None:
        """Keeps the value as it is in headers, and where it is read faster than as an enum's."""
        self.text = value.encode()
        self.sign = value

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


class Change(NamedTuple):
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


class Flip(NamedTuple):
    """Takes back what a writer sent after its epoch `last_good`."""

    writer: str
    last_good: int


class Mark(NamedTuple):
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

_KINDS = {kind.text: kind for kind in RowKind}


class Record(NamedTuple):
    """A record as it goes to Kafka; flips and marks have neither key nor value."""

    headers: Headers
    key: bytes | None = None
    value: bytes | None = None


def headers_of(entry: Flip | Mark, table: str) -> Headers:
    """Returns the headers of a flip or a mark; `table` is the id of the table it is about."""
    if isinstance(entry, Flip):
        return [*_common(table, entry.writer, entry.last_good), (KIND_HEADER, _FLIP)]
    version = (VERSION_HEADER, b"%d" % entry.version)
    return [*_common(table, entry.writer, entry.epoch), (KIND_HEADER, _COMMIT), version]


def change_records(
    table: str,
    writer: str,
    epoch: int,
    changes: Iterable[tuple[RowKind, bytes | None, bytes]],
    first: int = 0,
) -> Iterator[Record]:
    """Yields the records of an epoch's changes in a topic partition.

    Args:
        table: id of the table.
        writer: of the changes.
        epoch: of the changes.
        changes: kind, key and value of each.
        first: the number of the first one.
    """
    common = _common(table, writer, epoch)
    for seq, (kind, key, value) in enumerate(changes, first):
        yield Record([*common, (SEQ_HEADER, b"%d" % seq), (KIND_HEADER, kind.text)], key, value)


def _common(table: str, writer: str, epoch: int) -> Headers:
    return [
        (FORMAT_HEADER, FORMAT),
        (TABLE_HEADER, table.encode()),
        (WRITER_HEADER, writer.encode()),
        (EPOCH_HEADER, b"%d" % epoch),
    ]


def parse(headers: Headers, value: bytes | None, table: bytes) -> Entry | None:
    """Returns what a record says, or None if it is about another table.

    Args:
        headers: of the record.
        value: of the record.
        table: id of the table, as it is in headers.

    Raises:
        ValueError: telling what is wrong with a record that lakekit did not write, or a newer one did.
    """
    found = dict(headers)
    if FORMAT_HEADER not in found:
        raise ValueError("it has no header 'lake.format'")
    if found[FORMAT_HEADER] != FORMAT:
        raise ValueError(f"its format is {found[FORMAT_HEADER]!r}, and this lakekit knows {FORMAT!r}")
    try:
        if found[TABLE_HEADER] != table:
            return None
        writer, epoch, text = found[WRITER_HEADER].decode(), int(found[EPOCH_HEADER]), found[KIND_HEADER]
        kind = _KINDS.get(text)
        if kind is None:
            return _announcement(found, text, writer, epoch)
        if value is None:
            raise ValueError("it has no value")
        return Change(writer, epoch, int(found[SEQ_HEADER]), kind, value)
    except KeyError as error:
        raise ValueError(f"it has no header {error}") from None


def _announcement(found: dict[str, bytes], text: bytes, writer: str, epoch: int) -> Flip | Mark:
    if text == _FLIP:
        return Flip(writer, epoch)
    if text == _COMMIT:
        return Mark(int(found[VERSION_HEADER]), writer, epoch)
    raise ValueError(f"its kind is {text!r}, which lakekit does not know")
