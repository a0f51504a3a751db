"""Waiting for what happens elsewhere, instead of sleeping for luck."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], what: str = "it", seconds: float = 60) -> None:
    """Waits for something that another thread or process does; fails if it does not happen in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.02)
