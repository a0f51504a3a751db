"""The files for Binder name what exists."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "binder"


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed.")
def test_the_script_can_be_run_and_calls_what_there_is():
    script = FOLDER / "postBuild"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)
    modules = re.findall(r"python -m ([\w.]+)", script.read_text())
    assert "lakekit.session" in modules
    assert [module for module in modules if find_spec(module) is None] == []


def test_there_is_one_folder_for_binder_only():
    assert not (FOLDER.parent / ".binder").exists()
