"""The temporary folder of a session: Spark's log, and what Spark spills and shuffles.

A session that ends removes its own. One that is killed, as kernels are that are restarted, cannot; its folder goes
with the next session of the same user. A lock, which the operating system gives up when a process ends, tells whose
folders are still in use.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows: folders of killed sessions stay
    fcntl = None  # type: ignore[assignment]

_PREFIX = "lakekit-"
_LOCK = "in-use"
_YOUNG_S = 60
"""Age up to which a folder is left alone: it may not be locked yet."""

_held: dict[Path, IO[bytes]] = {}


def make() -> Path:
    """Returns a new folder that is this process's until it is removed, and removes those of killed processes."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    if fcntl is not None:
        handle = (folder / _LOCK).open("wb")
        fcntl.flock(handle, fcntl.LOCK_EX)
        _held[folder] = handle
        for other in folder.parent.glob(f"{_PREFIX}*/{_LOCK}"):
            with contextlib.suppress(OSError):
                _remove_if_left(other)
    return folder


def remove(folder: Path) -> None:
    """Removes a folder that `make` made."""
    shutil.rmtree(folder, ignore_errors=True)
    if handle := _held.pop(folder, None):
        handle.close()


def _remove_if_left(lock: Path) -> None:
    """Removes a folder if no process has its lock.

    Raises:
        OSError: if one has, or it is another user's.
    """
    facts = lock.parent.lstat()
    if facts.st_uid != os.getuid() or time.time() - lock.stat().st_mtime < _YOUNG_S:
        return
    with lock.open("rb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(lock.parent)
