"""Starts writers, gives them commands, and sees them die."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

from tests.crash.writer import ANSWER

ROOT = Path(__file__).parents[2]
START_S, COMMAND_S = 120, 120


class Writer:
    """A writing process; it starts its Spark at once, and does nothing to the table until it is told to."""

    def __init__(self, warehouse, table, source, log):
        self._log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.writer", str(warehouse), table, str(source)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                text=True,
                start_new_session=True,
            )
        self._answers = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self._ready = False

    def request(self, do, **options):
        """Returns True when a command is done, and False if the process died of it.

        Raises:
            AssertionError: if the command failed, or neither happened in time.
        """
        if not self._ready:
            assert self._answer(START_S), self._story("the writer did not start")
            self._ready = True
        try:
            self.process.stdin.write(json.dumps({"do": do, **options}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return self._died()
        answer = self._answer(COMMAND_S)
        if answer is None:
            return self._died()
        assert "error" not in answer, self._story(f"{do}: {answer['error']}")
        return True

    def end(self):
        """Ends the process and what belongs to it, if it is still there."""
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=30)
        self.process.stdin.close()

    def _died(self):
        code = self.process.wait(timeout=30)
        assert code == -signal.SIGKILL, self._story(f"the writer ended with {code}")
        self._wait_for_jvm()
        return False

    def _wait_for_jvm(self):
        """Waits until nothing of the process group is left: what comes next must not overlap."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.02)
        raise AssertionError("the JVM of a killed writer lives on")

    def _listen(self):
        for line in self.process.stdout:
            if line.startswith(ANSWER):
                self._answers.put(json.loads(line[len(ANSWER) :]))
        self._answers.put(None)

    def _answer(self, seconds):
        try:
            return self._answers.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(self._story("no answer")) from None

    def _story(self, problem):
        return f"{problem}:\n{self._log.read_text(errors='replace')[-4000:]}"
