"""The places at which a writer dies: functions of the protocol, wrapped in the process that is to die.

The package itself knows nothing of this. A point is the name of a step with `before`, `after`, or, where something is
sent, `torn`: half of it arrives.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading

import psutil

STREAM = (
    "before take",
    "after take",
    "before deliver",
    "after deliver",
    "before send Change",
    "torn send Change",
    "after send Change",
    "before write",
    "after write",
    "before commit STREAM",
    "after commit STREAM",
    "before mark",
    "torn send Mark",
    "after mark",
)
"""Points that a running stream passes."""
RECOVERY = (
    "before open",
    "before flip",
    "before send Flip",
    "torn send Flip",
    "after flip",
    "before write",
    "before commit STREAM",
    "after commit STREAM",
    "after write",
    "before mark",
    "torn send Mark",
    "after mark",
    "after open",
)
"""Points that a stream passes when it starts again; some only if the one before left something."""
BATCH = (
    "before commit UPSERT",
    "after commit UPSERT",
    "before commit DELETE",
    "after commit DELETE",
    "before emit",
    "torn send Change",
    "after send Change",
    "after emit",
    "before announce",
    "torn send Mark",
    "after announce",
    "before set_emitted",
    "after set_emitted",
)
"""Points that a write of rows passes."""
RANDOM = "at any time"


class Doom:
    """When this process is to die."""

    def __init__(self):
        self._point = None
        self._hits = 0
        self._lock = threading.Lock()
        self.hooks = {}
        """What else is done at points, once."""

    def arm(self, point, hit):
        """Chooses the point, and which time that it is passed."""
        with self._lock:
            self._point, self._hits = point, hit

    def arm_timer(self, seconds):
        timer = threading.Timer(seconds, die)
        timer.daemon = True
        timer.start()

    def strikes(self, point):
        """Counts a pass, and tells whether it is the last one."""
        with self._lock:
            if point != self._point:
                return False
            self._hits -= 1
            return self._hits == 0

    def passes(self, point):
        if hook := self.hooks.pop(point, None):
            hook()
        if self.strikes(point):
            die()


def die():
    """Kills this process, its JVM and the workers of that, and gives none of them time to end in order."""
    group = os.getpgid(0)
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(OSError, psutil.Error):
            if os.getpgid(child.pid) != group:  # Spark's Python workers
                child.send_signal(signal.SIGKILL)
    os.killpg(group, signal.SIGKILL)


def install(doom):
    """Wraps the steps."""
    from lakekit.ingest.epochs import StreamLog
    from lakekit.ingest.sink import Sink
    from lakekit.logstore import emitted
    from lakekit.storage.log import DeltaLog
    from lakekit.table import log as table_log

    _around(doom, Sink, "open", "open")
    _around(doom, Sink, "take", "take")
    _around(doom, Sink, "_write", "write")
    _around(doom, StreamLog, "_deliver", "deliver")
    _around(doom, StreamLog, "flip", "flip")
    _around(doom, StreamLog, "correct", "correct")
    _around(doom, StreamLog, "mark", "mark")
    _around(doom, table_log, "emit_all", "emit")
    _around(doom, table_log, "announce", "announce")
    _around(doom, emitted, "set_emitted", "set_emitted")
    _around(doom, DeltaLog, "write", _commit_name)
    _torn_sends(doom)


def _around(doom, owner, name, step):
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args, **options):
        called = step if isinstance(step, str) else step(*args)
        doom.passes(f"before {called}")
        result = original(*args, **options)
        doom.passes(f"after {called}")
        return result

    setattr(owner, name, wrapped)


def _commit_name(_log, _version, actions, *_):
    from lakekit.storage.actions import CommitInfo

    return "commit " + next(a.fields["operation"] for a in actions if isinstance(a, CommitInfo))


def _torn_sends(doom):
    from lakekit.logstore.producer import LogProducer

    original = LogProducer.send

    @functools.wraps(original)
    async def send(self, partition, records):
        held = list(records)
        step = f"send {_entry_name(held[0])}" if held else "send"
        doom.passes(f"before {step}")
        if doom.strikes(f"torn {step}"):
            await original(self, partition, held[: max(1, len(held) // 2)])
            die()
        end = await original(self, partition, held)
        doom.passes(f"after {step}")
        return end

    LogProducer.send = send


def _entry_name(record):
    from lakekit.logstore.records import TABLE_HEADER, Parser

    table = dict(record.headers)[TABLE_HEADER].decode()
    return type(Parser(table).parse(record.headers, record.value)).__name__
