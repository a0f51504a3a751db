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
        """Keeps the value as headers have it, and where it is read faster than as an enum's."""
        self.text = value.encode()
        self.header = KIND_HEADER, self.text
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


class LogRecord(NamedTuple):
    """An entry and where it was.

    Attributes:
        partition: of the topic.
        offset: in the partition.
        timestamp: ms since 1970, when Kafka got it.
        entry: what it says; None for a record of another table, or of no log, that is skipped.
    """

    partition: int
    offset: int
    timestamp: int
    entry: Entry | None


_KINDS = {kind.text: kind for kind in RowKind}
_N_COMMON, _N_HEADERS = 4, 6
"""How many headers the changes of an epoch begin with, and how many lakekit writes in all."""


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
        yield Record([*common, (SEQ_HEADER, b"%d" % seq), kind.header], key, value)


def _common(table: str, writer: str, epoch: int) -> Headers:
    return [
        (FORMAT_HEADER, FORMAT),
        (TABLE_HEADER, table.encode()),
        (WRITER_HEADER, writer.encode()),
        (EPOCH_HEADER, b"%d" % epoch),
    ]


class Parser:
    """Reads the records about a table.

    Those of an epoch begin with the same headers: what these say is read once.
    """

    def __init__(self, table: str) -> None:
        """Takes the id of the table."""
        self._table = table.encode()
        self._common: Headers = ()
        self._writer, self._epoch = "", 0

    def parse(self, headers: Headers, value: bytes | None) -> Entry | None:
        """Returns what a record says, or None if it is about another table.

        Raises:
            ValueError: telling what is wrong with a record that lakekit did not write, or a newer one did.
        """
        if len(headers) == _N_HEADERS and headers[:_N_COMMON] == self._common and value is not None:
            (seq_name, seq), (kind_name, text) = headers[_N_COMMON:]
            if seq_name == SEQ_HEADER and kind_name == KIND_HEADER and text in _KINDS:
                return Change(self._writer, self._epoch, int(seq), _KINDS[text], value)
        try:
            entry = self._parsed(dict(headers), value)
        except KeyError as error:
            raise ValueError(f"it has no header {error}") from None
        if isinstance(entry, Change):
            self._common, self._writer, self._epoch = headers[:_N_COMMON], entry.writer, entry.epoch
        return entry

    def _parsed(self, found: dict[str, bytes], value: bytes | None) -> Entry | None:
        if found[FORMAT_HEADER] != FORMAT:
            raise ValueError(f"its format is {found[FORMAT_HEADER]!r}, and this lakekit knows {FORMAT!r}")
        if found[TABLE_HEADER] != self._table:
            return None
        writer, epoch, text = found[WRITER_HEADER].decode(), int(found[EPOCH_HEADER]), found[KIND_HEADER]
        kind = _KINDS.get(text)
        if kind is None:
            return _announcement(found, text, writer, epoch)
        if value is None:
            raise ValueError("it has no value")
        return Change(writer, epoch, int(found[SEQ_HEADER]), kind, value)


def _announcement(found: dict[str, bytes], text: bytes, writer: str, epoch: int) -> Flip | Mark:
    if text == _FLIP:
        return Flip(writer, epoch)
    if text == _COMMIT:
        return Mark(int(found[VERSION_HEADER]), writer, epoch)
    raise ValueError(f"its kind is {text!r}, which lakekit does not know")
