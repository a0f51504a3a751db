"""Finds a Java that Spark 4 runs on."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lakekit.errors import SetupError

SUPPORTED = (17, 21)
"""Major versions of Java that Spark 4.0 supports."""

_USUAL_FOLDERS = {
    "darwin": (
        "/Library/Java/JavaVirtualMachines/*/Contents/Home",
        "~/Library/Java/JavaVirtualMachines/*/Contents/Home",
        "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
        "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    ),
    "win32": (
        "C:/Program Files/Java/*",
        "C:/Program Files/Eclipse Adoptium/*",
        "C:/Program Files/Microsoft/jdk*",
        "C:/Program Files/Amazon Corretto/*",
        "C:/Program Files/Zulu/*",
    ),
    "linux": ("/usr/lib/jvm/*", "/usr/java/*", "/opt/java/*", "/opt/jdk*"),
}
_EVERYWHERE = ("~/.sdkman/candidates/java/*", "~/.jdks/*", "~/.jabba/jdk/*", "~/.jdk/*")


@dataclass(frozen=True)
class Java:
    """One Java installation."""

    home: Path
    executable: Path
    version: int


def find_java() -> Java:
    """Returns the first fitting Java of `JAVA_HOME`, `PATH` and the usual folders of JDKs.

    Raises:
        SetupError: if there is none; says which others were found.
    """
    unfit: dict[Path, str] = {}
    for executable in _candidates():
        try:
            java = _inspect(executable)
        except (OSError, ValueError, subprocess.SubprocessError):
            unfit.setdefault(executable, "does not run")
            continue
        if java.version in SUPPORTED:
            return java
        unfit.setdefault(executable, f"is Java {java.version}")
    wanted = " or ".join(map(str, SUPPORTED))
    if unfit:
        found = "; ".join(f"{path} {why}" for path, why in unfit.items())
        message = f"Spark needs Java {wanted}, but here {found}."
    else:
        message = f"Spark needs Java {wanted}, and none was found in JAVA_HOME, PATH or the usual folders."
    raise SetupError(message, f"{_how_to_install()}, or set JAVA_HOME to the folder of such a JDK.")


def _candidates() -> Iterator[Path]:
    name = "java.exe" if sys.platform == "win32" else "java"
    if home := os.environ.get("JAVA_HOME"):
        # A JAVA_HOME without java in it is worth a word in the error, so it is not filtered out.
        yield Path(home) / "bin" / name
    if on_path := shutil.which("java"):
        yield Path(on_path)
    for pattern in (*_USUAL_FOLDERS.get(sys.platform, ()), *_EVERYWHERE):
        folder = Path(pattern).expanduser()
        wild = next(i for i, part in enumerate(folder.parts) if "*" in part)
        base = Path(*folder.parts[:wild])
        for found in sorted(base.glob(str(Path(*folder.parts[wild:])))):
            if (found / "bin" / name).exists():
                yield found / "bin" / name


@functools.cache
def _inspect(executable: Path) -> Java:
    done = subprocess.run(
        [executable, "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=30,
        check=False,
    )
    text = done.stderr + done.stdout
    version = re.search(r'version "(?:1\.)?(\d+)', text)
    if version is None:
        raise ValueError(f"{executable} tells no version")
    home = re.search(r"^\s*java\.home = (.+?)\s*$", text, re.MULTILINE)
    # /usr/bin/java is a link (on macOS a stub): only java itself knows its home.
    return Java(Path(home[1]) if home else executable.resolve().parents[1], executable, int(version[1]))


def _how_to_install() -> str:
    if sys.platform == "darwin":
        return "Install one with: brew install openjdk@17"
    if sys.platform == "win32":
        return "Install one with: winget install EclipseAdoptium.Temurin.17.JDK"
    if shutil.which("apt-get"):
        return "Install one with: sudo apt-get install openjdk-17-jre-headless"
    if shutil.which("dnf"):
        return "Install one with: sudo dnf install java-17-openjdk-headless"
    return "Install one (for example from adoptium.net)"


def main() -> int:
    """Says which Java would be used; returns the exit code."""
    try:
        java = find_java()
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"Java {java.version} in {java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
