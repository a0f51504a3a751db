"""Temporary folders of sessions, also of those that were killed."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from lakekit.session import scratch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks on Windows")

HOLDS = """
import sys, time
from lakekit.session import scratch
print(scratch.make(), flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def holder():
    """Starts a process that has a folder, and returns both."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True)
    return process, scratch.Path(process.stdout.readline().strip())


def age(folder):
    hour_ago = time.time() - 3_600
    os.utime(folder / "in-use", (hour_ago, hour_ago))


def end(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_a_session_removes_its_folder(place):
    folder = scratch.make()
    (folder / "spark.log").write_text("a line")
    scratch.remove(folder)
    assert list(place.iterdir()) == []


def test_the_folder_of_a_killed_process_goes_with_the_next_session(place):
    process, folder = holder()
    (folder / "blocks").mkdir()
    age(folder)
    first = scratch.make()
    assert folder.exists()  # its process lives
    end(process)
    second = scratch.make()
    assert not folder.exists()
    assert sorted(place.iterdir()) == sorted([first, second])
    scratch.remove(first)
    scratch.remove(second)


def test_folders_that_are_left_alone(place):
    process, young = holder()
    end(process)
    (place / "lakekit-of-others").mkdir()
    scratch.remove(scratch.make())
    assert sorted(place.iterdir()) == sorted([young, place / "lakekit-of-others"])
