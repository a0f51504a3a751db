"""What an ingestion did over time: rates, latencies and lags, worked out from its status now and then."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from lakekit.ingest.ingestion import Status


@dataclass(frozen=True)
class Sample:
    """An ingestion between two looks at it.

    Attributes:
        at: when, in seconds since 1970.
        rows_in_per_s: rows taken from the source in each second.
        changes_out_per_s: changes sent to the log in each second.
        log_latency_ms: the median of the last micro-batches; None if there was none.
        file_lag_s: see `Status`.
        pending_rows: see `Status`.
    """

    at: float
    rows_in_per_s: float
    changes_out_per_s: float
    log_latency_ms: float | None
    file_lag_s: float
    pending_rows: int


class History:
    """The last samples of an ingestion; older ones are forgotten."""

    def __init__(self, length: int = 300) -> None:
        """Keeps as many samples as `length` says."""
        self._samples: deque[Sample] = deque(maxlen=length)
        self._last: tuple[float, Status] | None = None

    def __iter__(self) -> Iterator[Sample]:
        return iter(tuple(self._samples))

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, status: Status, at: float | None = None) -> None:
        """Takes a sample; the first look is what later ones are compared with.

        Args:
            status: what the ingestion is doing.
            at: when that was, in seconds since 1970; now by default.
        """
        now = time.time() if at is None else at
        last, self._last = self._last, (now, status)
        if last is None or now <= last[0]:
            return
        seconds, before = now - last[0], last[1]
        latencies = status.log_latency_ms[-10:]
        self._samples.append(
            Sample(
                at=now,
                rows_in_per_s=max(status.rows_in - before.rows_in, 0) / seconds,
                changes_out_per_s=max(status.changes_out - before.changes_out, 0) / seconds,
                log_latency_ms=median(latencies) if latencies else None,
                file_lag_s=status.file_lag_s,
                pending_rows=status.pending_rows,
            )
        )
