"""An event loop in a thread of its own, so that Kafka can be spoken to from anywhere.

A notebook's main thread has a running loop already, in which nothing may block; Spark's workers have none.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}  # by process: a forked worker inherits no threads


def run(work: Coroutine[Any, Any, T]) -> T:
    """Returns what a coroutine returns, and raises what it raises; an interrupt cancels it."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _loop() -> asyncio.AbstractEventLoop:
    with _lock:
        loop = _loops.get(os.getpid())
        if loop is None:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="lakekit-log", daemon=True).start()
        return loop
