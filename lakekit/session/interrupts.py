"""What is left of a KeyboardInterrupt after it has passed through PySpark."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_ATTEMPTS = 20
_PAUSE_S = 0.1


def interrupted(error: BaseException | None) -> bool:
    """Tells whether an error is a KeyboardInterrupt, or came up while one was being handled.

    An interrupt cuts PySpark's connection to the JVM. The next call, often one that only tidies up, can then fail
    with an error of its own, which hides the interrupt.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def persistently(func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Returns ``func(*args, **kwargs)``, trying again while a connection that was cut is made anew."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return func(*args, **kwargs)
        except Exception:
            time.sleep(_PAUSE_S)
    return func(*args, **kwargs)
