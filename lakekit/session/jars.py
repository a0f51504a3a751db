"""Jars from a Maven repository, resolved once into a cache of the user.

The resolver is the Ivy inside pyspark, so nothing has to be installed for it. What it found is written down,
and a later start reads that list: no network, no extra JVM.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from lakekit.errors import SetupError
from lakekit.session.java import find_java

_COORDINATE = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+)\Z")
_TIMEOUT_S = 900


def cache_dir() -> Path:
    """Returns the folder for jars: `LAKEKIT_CACHE`, or the platform's cache folder of the user."""
    if chosen := os.environ.get("LAKEKIT_CACHE"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "lakekit"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "lakekit" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser() / "lakekit"


def spark_home() -> Path:
    """Returns the folder of the Spark that pyspark starts."""
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def resolve(coordinates: Sequence[str]) -> list[Path]:
    """Returns the jars of Maven coordinates and of all they depend on, downloading what is not cached.

    Downloads come from Maven Central, or from the mirror in `LAKEKIT_MAVEN_REPOSITORY`.

    Args:
        coordinates: texts of the form ``group:artifact:version``.

    Raises:
        SetupError: if a jar is not cached and cannot be downloaded, or the cache cannot be written.
    """
    wanted, cache = sorted(coordinates), cache_dir()
    listing = _listing(wanted, cache)
    if jars := _read_listing(listing, cache):
        return jars
    try:
        listing.parent.mkdir(parents=True, exist_ok=True)
        with _lock(cache / "lock"):
            # Another kernel may have resolved the same while this one waited.
            if jars := _read_listing(listing, cache):
                return jars
            _drop_damaged(listing, cache)
            jars = _run_ivy(wanted, cache)
            _write_listing(listing, cache, wanted, jars)
    except OSError as error:
        raise SetupError(
            f"The jar cache {cache} cannot be used: {error.strerror or error}.",
            "Set LAKEKIT_CACHE to a folder that can be written.",
        ) from error
    return jars


def cached(coordinates: Sequence[str]) -> list[Path]:
    """Returns the jars of Maven coordinates that an earlier `resolve` has left; empty if one of them is missing."""
    cache = cache_dir()
    return _read_listing(_listing(sorted(coordinates), cache), cache)


def _listing(wanted: Sequence[str], cache: Path) -> Path:
    key = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:16]
    return cache / "resolved" / f"{key}.json"


def not_in_spark(jars: Sequence[Path]) -> list[Path]:
    """Leaves out jars of which Spark has its own version: two versions of one would clash."""
    own = {_artifact(jar) for jar in (spark_home() / "jars").glob("*.jar")}
    return [jar for jar in jars if _artifact(jar) not in own]


def _artifact(jar: Path) -> str:
    return re.sub(r"-\d[\w.-]*\.jar\Z", "", jar.name)


def _read_listing(listing: Path, cache: Path) -> list[Path]:
    """Returns the jars of an earlier run, or nothing unless all of them are there and whole."""
    try:
        sizes = {cache / entry["path"]: entry["size"] for entry in json.loads(listing.read_text())["jars"]}
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return list(sizes) if all(jar.is_file() and jar.stat().st_size == sizes[jar] for jar in sizes) else []


def _drop_damaged(listing: Path, cache: Path) -> None:
    """Removes what has lost its size: Ivy looks only whether a file is there."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        for entry in json.loads(listing.read_text())["jars"]:
            jar = cache / entry["path"]
            if jar.is_file() and jar.stat().st_size != entry["size"]:
                jar.unlink()


def _write_listing(listing: Path, cache: Path, wanted: list[str], jars: list[Path]) -> None:
    entries = [{"path": jar.relative_to(cache).as_posix(), "size": jar.stat().st_size} for jar in jars]
    with tempfile.NamedTemporaryFile("w", dir=listing.parent, suffix=".tmp", delete=False) as out:
        json.dump({"coordinates": wanted, "jars": entries}, out, indent=1)
    os.replace(out.name, listing)


def _run_ivy(coordinates: list[str], cache: Path) -> list[Path]:
    repository = os.environ.get("LAKEKIT_MAVEN_REPOSITORY", "")
    ivy = next((spark_home() / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        raise SetupError(
            f"The pyspark in {spark_home()} has no Ivy among its jars.",
            "Install it again: pip install --force-reinstall pyspark.",
        )
    java = find_java()
    with tempfile.TemporaryDirectory(prefix="lakekit-ivy-") as work:
        settings, module, found = (Path(work) / name for name in ("settings.xml", "ivy.xml", "classpath"))
        settings.write_text(_settings_xml(cache / "ivy", repository), encoding="utf-8")
        module.write_text(_module_xml(coordinates), encoding="utf-8")
        command = [str(java.executable), *_proxy_flags(), "-jar", str(ivy)]
        try:
            done = subprocess.run(
                [*command, "-settings", settings, "-ivy", module, "-confs", "default", "-cachepath", found],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise _unresolved(coordinates, repository, f"no answer within {_TIMEOUT_S} s") from error
        if done.returncode != 0 or not found.exists():
            raise _unresolved(coordinates, repository, _reason(done.stdout + done.stderr))
        return sorted(Path(path) for path in found.read_text().strip().split(os.pathsep))


def _settings_xml(ivy_cache: Path, repository: str) -> str:
    # Without a root, Ivy's resolver asks Maven Central.
    root = f" root={quoteattr(repository.rstrip('/') + '/')}" if repository else ""
    return f"""<ivysettings>
  <settings defaultResolver="maven"/>
  <caches defaultCacheDir={quoteattr(str(ivy_cache))}/>
  <timeout-constraints>
    <timeout-constraint name="net" connectionTimeout="15000" readTimeout="120000"/>
  </timeout-constraints>
  <resolvers><ibiblio name="maven" m2compatible="true"{root} timeoutConstraint="net"/></resolvers>
</ivysettings>"""


def _module_xml(coordinates: list[str]) -> str:
    lines = []
    for coordinate in coordinates:
        match = _COORDINATE.match(coordinate)
        if match is None:
            raise SetupError(f"{coordinate!r} is no Maven coordinate.", "Write it as group:artifact:version.")
        org, name, rev = (quoteattr(part) for part in match.groups())
        lines.append(f'    <dependency org={org} name={name} rev={rev} conf="default->default"/>')
    return "\n".join(
        [
            '<ivy-module version="2.0">',
            '  <info organisation="lakekit" module="jars"/>',
            '  <configurations><conf name="default"/></configurations>',
            "  <dependencies>",
            *lines,
            "  </dependencies>",
            "</ivy-module>",
        ]
    )


def _proxy_flags() -> list[str]:
    """Java does not read the proxy variables that pip and curl read."""
    flags = []
    for scheme in ("http", "https"):
        proxy = os.environ.get(f"{scheme}_proxy") or os.environ.get(f"{scheme.upper()}_PROXY")
        url = urllib.parse.urlsplit(proxy or "")
        if url.hostname:
            flags += [f"-D{scheme}.proxyHost={url.hostname}", f"-D{scheme}.proxyPort={url.port or 80}"]
    return flags


def _reason(output: str) -> str:
    problems = [line.strip() for line in output.splitlines()]
    for pattern in (
        r"Server access error.*",
        r"\w*(?:UnknownHost|Connect|SSL|Timeout)\w*Exception.*",
        r"\S+: not found",
    ):
        for line in problems:
            if match := re.search(pattern, line):
                return match[0].strip(": ")
    return next((line for line in reversed(problems) if line), "Ivy said nothing")


def _unresolved(coordinates: list[str], repository: str, reason: str) -> SetupError:
    # A mirror's address may hold a password.
    shown = re.sub(r"(?<=//)[^/@]*@|[?#].*", "", repository) or "Maven Central"
    told = reason.replace(repository, shown) if repository else reason
    return SetupError(
        f"The jars of {', '.join(coordinates)} are not in the cache {cache_dir()} and could not be "
        f"downloaded from {shown} ({told[:300]}).",
        "Connect to the network for the first start, or set LAKEKIT_MAVEN_REPOSITORY to a mirror you can "
        "reach, or LAKEKIT_CACHE to a folder that was filled elsewhere.",
    )


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Holds an exclusive lock of the operating system on a file; it ends with the process at the latest."""
    with path.open("a+b") as handle:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
