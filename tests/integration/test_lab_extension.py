"""The committed JupyterLab extension is what its sources build."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "extensions" / "lakekit-lab"
BUILT = "labextensions"

pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="Node is not installed: no npm here.")


@pytest.fixture(scope="module")
def npm(tmp_path_factory):
    """A copy of the sources, with what they need installed, and a way to run npm in it."""
    copy = tmp_path_factory.mktemp("extension") / "lakekit-lab"
    shutil.copytree(
        FOLDER, copy, ignore=shutil.ignore_patterns("node_modules", "lib", BUILT, "*.tsbuildinfo")
    )
    environment = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    }

    def run(*arguments):
        command = [shutil.which("npm"), *arguments]
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return copy

    run("ci", "--prefer-offline")
    return run


def files_in(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_the_committed_files_are_what_the_sources_build(npm):
    built = files_in(npm("run", "build") / BUILT)
    committed = files_in(FOLDER / BUILT)
    assert set(built) == set(committed), "build it again: npm run build, in extensions/lakekit-lab"
    assert [name for name in built if built[name] != committed[name]] == []


def test_the_sources_pass_the_linters(npm):
    npm("run", "check")


def test_the_built_files_name_no_machine_and_hold_no_source_map():
    committed = files_in(FOLDER / BUILT)
    assert not [name for name in committed if name.endswith(".map")]
    places = [
        str(FOLDER).encode(),
        str(Path.home()).encode() + b"/",
        b"node_modules/",
        b"//# sourceMappingURL=",
    ]
    assert [(name, place) for name, data in committed.items() for place in places if place in data] == []
