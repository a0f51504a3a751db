"""Finding Java: with scripts in the place of java, and with none."""

import subprocess
import sys

import pytest

from lakekit.errors import SetupError
from lakekit.session import java

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the fake java is a shell script")


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine without Java; returns a folder for fake ones."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(java, "_USUAL_FOLDERS", {sys.platform: (f"{tmp_path}/usual/*",)})
    monkeypatch.setattr(java, "_EVERYWHERE", ())
    return tmp_path


def fake_java(home, version, *, home_known=False):
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    lines = [f'openjdk version "{version}" 2024-01-01']
    if home_known:
        lines.insert(0, f"    java.home = {home}")
    executable.write_text("#!/bin/sh\n" + "".join(f"echo '{line}' >&2\n" for line in lines))
    executable.chmod(0o755)
    return executable


def test_the_real_java_is_found():
    found = java.find_java()
    assert found.version in java.SUPPORTED
    assert (found.home / "bin" / "java").exists()


def test_no_java_says_what_is_needed_and_how_to_get_it(nowhere):
    with pytest.raises(SetupError) as raised:
        java.find_java()
    assert "needs Java 17 or 21, and none was found" in raised.value.message
    assert "nstall" in raised.value.hint
    assert "JAVA_HOME" in raised.value.hint


@pytest.mark.parametrize(("text", "number"), [("1.8.0_392", 8), ("11.0.2", 11), ("24", 24), ("25-ea", 25)])
def test_a_wrong_java_is_named_with_its_version(nowhere, text, number):
    wrong = fake_java(nowhere, text)
    with pytest.raises(SetupError) as raised:
        java.find_java()
    assert f"{wrong} is Java {number}" in raised.value.message


def test_java_home_comes_first(nowhere, monkeypatch):
    fake_java(nowhere, "17.0.1")
    wanted = fake_java(nowhere / "mine", "21.0.3")
    monkeypatch.setenv("JAVA_HOME", str(nowhere / "mine"))
    assert java.find_java().executable == wanted


def test_a_wrong_java_home_is_passed_over_if_the_path_has_a_fitting_one(nowhere, monkeypatch):
    on_path = fake_java(nowhere, "17.0.1")
    fake_java(nowhere / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(nowhere / "old"))
    assert java.find_java().executable == on_path


def test_the_usual_folders_are_searched(nowhere):
    fake_java(nowhere / "usual" / "jdk-11", "11.0.2")
    wanted = fake_java(nowhere / "usual" / "jdk-21", "21.0.2")
    assert java.find_java().executable == wanted


def test_a_broken_java_home_is_named(nowhere, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(nowhere / "gone"))
    with pytest.raises(SetupError, match=r"gone/bin/java does not run"):
        java.find_java()


def test_java_itself_tells_its_home(nowhere):
    fake_java(nowhere / "real", "17.0.9", home_known=True)
    (nowhere / "bin").mkdir()
    (nowhere / "bin" / "java").symlink_to(nowhere / "real" / "bin" / "java")
    assert java.find_java().home == nowhere / "real"


def test_the_command_prints_one_paragraph_and_fails(nowhere):
    fake_java(nowhere, "11.0.2")
    code = "import sys; from lakekit.session import java; java._USUAL_FOLDERS = {}; java._EVERYWHERE = ()"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; sys.exit(java.main())"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "is Java 11" in done.stderr
