"""Compaction in the background of a session."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from lakekit.errors import LakeError
from lakekit.filestore.compaction import in_turn, pick
from lakekit.table.maintenance import compact, triggers_of

if TYPE_CHECKING:
    from lakekit.lake import Lake
    from lakekit.table.table import Table

_log = logging.getLogger("lakekit")

QUIET_SECONDS = 0.5
"""How long nothing is written before waiting compactions begin."""


class BackgroundCompaction:
    """One thread of a lake that compacts tables after commits, when their triggers fire.

    A compaction takes cores from the writes of the session, so it waits until there are none for a moment, but not
    once the triggers are exceeded twofold; and it leaves one core free, as a write could only wait for its long tasks.
    Beside writes it commits part by part: the shorter a compaction is, the fewer writes overtake it.

    Attributes:
        last_error: what the last compaction failed with, or None.
    """

    def __init__(self, lake: Lake) -> None:
        """Prepares the worker; its thread starts with the first table."""
        self._lake = lake
        self._state = threading.Condition()
        self._waiting: dict[str, bool] = {}  # name of a table: whether it can wait no longer
        self._writes = 0
        self._held_back: Counter[str] = Counter()  # by name of a table
        self._last_write = 0.0
        self._hurried = 0
        self._busy = False
        self._thread: threading.Thread | None = None
        self.last_error: LakeError | None = None

    @contextmanager
    def writing(self, name: str) -> Iterator[None]:
        """Lets compactions wait while the caller writes to a table; waits while its writes are held back."""
        with self._state:
            self._state.wait_for(lambda: not self._held_back[name])
            self._writes += 1
        try:
            yield
        finally:
            with self._state:
                self._writes -= 1
                self._last_write = time.monotonic()
                self._state.notify_all()

    @contextmanager
    def holding_back(self, name: str) -> Iterator[None]:
        """Lets writes of this session to a table wait that have not begun."""
        with self._state:
            self._held_back[name] += 1
        try:
            yield
        finally:
            with self._state:
                self._held_back[name] -= 1
                self._state.notify_all()

    def after_commit(self, table: Table) -> None:
        """Asks for a compaction of the table if its options allow it and a trigger fires."""
        urgent = _is_urgent(table)
        if urgent is None:
            return
        with self._state:
            name = str(table.name)
            self._waiting[name] = urgent or self._waiting.get(name, False)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="lakekit-compaction", daemon=True)
                self._thread.start()
                self._lake.before_stop(self.stop)
            self._state.notify_all()

    def wait(self) -> None:
        """Compacts what is waiting, at once, and returns when nothing is left to compact."""
        with self._state:
            self._hurried += 1
            self._state.notify_all()
            self._state.wait_for(lambda: not self._busy and not self._waiting)
            self._hurried -= 1

    def stop(self) -> None:
        """Forgets what is waiting, lets the running compaction finish, and ends the thread."""
        with self._state:
            self._waiting.clear()
            thread, self._thread = self._thread, None
            self._state.notify_all()
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        self._use_own_pool()
        while (name := self._next()) is not None:
            urgent = None
            try:
                table = self._lake.table(name)
                self._compact(table)
                urgent = _is_urgent(table)
                self.last_error = None
            except LakeError as error:
                self.last_error = error
                _log.warning("Compaction of %s in the background failed: %s", name, error)
            except Exception as error:  # the session may be gone; a daemon thread must not print a stack
                self.last_error = LakeError(f"Compaction of {name} failed: {type(error).__name__}.")
                _log.debug("Compaction in the background failed", exc_info=error)
            with self._state:
                if urgent is not None and self._thread is threading.current_thread():
                    self._waiting[name] = urgent or self._waiting.get(name, False)
                self._busy = False
                self._state.notify_all()

    def _compact(self, table: Table) -> None:
        """Merges what the triggers ask for; beside writes only its first part, and one core is left to them."""
        choose, cores = partial(pick, triggers=triggers_of(table.options)), self._lake.cores
        if self._hurried or cores is None:
            compact(table, choose)
        else:
            spare = max(cores - 1, 1)
            compact(table, lambda files: in_turn(choose(files), spare), spare)

    def _next(self) -> str | None:
        """Waits for a table whose turn has come and returns its name; None once the thread is no longer the lake's."""
        with self._state:
            while self._thread is threading.current_thread():
                name = max(self._waiting, key=self._waiting.__getitem__, default=None)  # an urgent one first
                pause = self._pause(name)
                if name is not None and pause == 0:
                    del self._waiting[name]
                    self._busy = True
                    return name
                self._state.wait(pause)
            return None

    def _pause(self, name: str | None) -> float | None:
        """Returns in how many seconds it is the table's turn, or None if something else must happen first."""
        if name is None:
            return None
        if self._waiting[name] or self._hurried:
            return 0
        return None if self._writes else max(self._last_write + QUIET_SECONDS - time.monotonic(), 0)

    def _use_own_pool(self) -> None:
        """Lets Spark's fair scheduler share cores with the foreground; Connect gives each client its own jobs."""
        context = getattr(self._lake.spark, "_sc", None)
        if context is not None:
            context.setLocalProperty("spark.scheduler.pool", "lakekit-compaction")


def _is_urgent(table: Table) -> bool | None:
    """Returns whether the table's compaction can wait no longer; None if there is nothing to compact."""
    snapshot = table.snapshot()
    options = table.options_of(snapshot)
    triggers = triggers_of(options)
    if not options.compaction_auto or not pick(snapshot.files.values(), triggers):
        return None
    return bool(pick(snapshot.files.values(), triggers.doubled()))
