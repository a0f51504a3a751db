"""`Table.tail()`: the changes of a log as they come, in the notebook's own event loop."""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from lakekit.logstore.emission import Target
from lakekit.logstore.reading import LogReader, Semantics, Startup, rows_of
from lakekit.logstore.records import Flip
from lakekit.logstore.retract import LogChange

if TYPE_CHECKING:
    from typing_extensions import Self

ToPython = Callable[[Any], Sequence[Mapping[str, Any]]]


class LogRow(NamedTuple):
    """A change of a row, as a reader of the log gets it.

    Attributes:
        kind: "+I", "-U", "+U" or "-D".
        row: the values by column.
        writer: who sent it; "@table" for changes that were derived from a commit.
        epoch: the unit of its writer's work; the table's version for "@table".
        partition: of the topic.
        offset: in the partition.
        timestamp: when Kafka got it, in UTC.
        is_retraction: True if it takes back a change that was sent in vain.
    """

    kind: str
    row: Mapping[str, Any]
    writer: str
    epoch: int
    partition: int
    offset: int
    timestamp: dt.datetime
    is_retraction: bool = False


class Tail:
    """An asynchronous iterator over a log that never ends by itself: ``async for change in table.tail(): …``.

    The connection is made with the first change that is asked for, and ended by `aclose()`, by the end of
    ``async with``, or when the iterator is interrupted.
    """

    def __init__(self, target: Target, startup: Startup, semantics: Semantics, to_python: ToPython) -> None:
        """Connects to nothing yet; `to_python` turns an Arrow table into rows."""
        self._target = target
        self._reader = LogReader(target, startup, semantics)
        self._to_python = to_python
        self._ready: deque[LogRow] = deque()
        self._open = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LogRow:
        while not self._ready:
            self._ready.extend(self._rows(await self._poll()))
        return self._ready.popleft()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def start(self) -> None:
        """Connects, and finds the place to start from: what comes later is part of the iteration.

        Raises:
            LogStoreError: if the Kafka cannot be reached, or the log does not have the place any more.
        """
        if not self._open:
            await self._reader.__aenter__()
            self._open = True

    async def aclose(self) -> None:
        """Ends the connection."""
        if self._open:
            self._open = False
            await self._reader.__aexit__(None, None, None)

    @property
    def positions(self) -> dict[int, int]:
        """For each topic partition the offset that is read next."""
        return dict(self._reader.positions)

    async def _poll(self) -> list[LogChange]:
        await self.start()
        try:
            return await self._reader.poll()
        except BaseException:
            await self.aclose()
            raise

    def _rows(self, changes: Sequence[LogChange]) -> list[LogRow]:
        if not changes:
            return []
        rows = self._to_python(rows_of(self._target, changes))
        moments = {each.record.timestamp for each in changes}
        times = {millis: dt.datetime.fromtimestamp(millis / 1000, dt.timezone.utc) for millis in moments}
        return [
            LogRow(
                change.kind.sign,
                row,
                change.writer,
                change.epoch,
                record.partition,
                record.offset,
                times[record.timestamp],
                isinstance(record.entry, Flip),
            )
            for (change, record), row in zip(changes, rows, strict=True)
        ]
