"""The jar cache, with the real Ivy and a Maven repository that is a folder."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakekit.errors import SetupError
from lakekit.session import jars

POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>org.example</groupId><artifactId>{name}</artifactId><version>1.0</version>
<dependencies>{dependencies}</dependencies></project>"""
DEPENDENCY = (
    "<dependency><groupId>org.example</groupId><artifactId>{}</artifactId><version>1.0</version></dependency>"
)
TOP = "org.example:top:1.0"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A Maven repository with `top`, which depends on `base`; and an empty cache."""
    root = tmp_path / "maven repository"
    for name, needs in {"top": ["base"], "base": []}.items():
        folder = root / "org" / "example" / name / "1.0"
        folder.mkdir(parents=True)
        dependencies = "".join(map(DEPENDENCY.format, needs))
        (folder / f"{name}-1.0.pom").write_text(POM.format(name=name, dependencies=dependencies))
        (folder / f"{name}-1.0.jar").write_bytes(f"the jar of {name}".encode())
    monkeypatch.setenv("LAKEKIT_MAVEN_REPOSITORY", root.as_uri())
    monkeypatch.setenv("LAKEKIT_CACHE", str(tmp_path / "the cache"))
    return root


def names(found):
    return [jar.name for jar in found]


def without_java(monkeypatch):
    def no_java():
        raise AssertionError("Java was started although all jars are cached")

    monkeypatch.setattr(jars, "find_java", no_java)


def test_jars_and_what_they_need_are_fetched_once(repository, monkeypatch):
    first = jars.resolve([TOP])
    assert names(first) == ["base-1.0.jar", "top-1.0.jar"]
    assert first[1].read_bytes() == b"the jar of top"
    without_java(monkeypatch)
    monkeypatch.setenv("LAKEKIT_MAVEN_REPOSITORY", "http://127.0.0.1:9/")
    assert jars.resolve([TOP]) == first


def test_a_truncated_or_deleted_jar_is_fetched_again(repository):
    base, top = jars.resolve([TOP])
    top.unlink()
    assert jars.resolve([TOP])[1].read_bytes() == b"the jar of top"
    base.write_bytes(b"the")
    assert jars.resolve([TOP])[0].read_bytes() == b"the jar of base"


def test_a_damaged_listing_is_written_again(repository):
    expected = jars.resolve([TOP])
    (listing,) = (jars.cache_dir() / "resolved").glob("*.json")
    for damage in ("", "{}", json.dumps({"jars": [{"path": "x"}]})):
        listing.write_text(damage)
        assert jars.resolve([TOP]) == expected


def test_a_moved_cache_still_serves(repository, monkeypatch, tmp_path):
    jars.resolve([TOP])
    moved = jars.cache_dir().rename(tmp_path / "moved")
    monkeypatch.setenv("LAKEKIT_CACHE", str(moved))
    without_java(monkeypatch)
    assert all(jar.is_relative_to(moved) for jar in jars.resolve([TOP]))


def test_two_processes_at_once(repository):
    code = f"from lakekit.session import jars; print(len(jars.resolve([{TOP!r}])))"

    def resolve(_):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(resolve, range(2)))
    assert [one.stdout.strip() for one in done] == ["2", "2"], done


def test_no_network_is_one_clear_paragraph(repository, monkeypatch):
    monkeypatch.setenv("LAKEKIT_MAVEN_REPOSITORY", "http://user:secret@127.0.0.1:9/maven?token=hidden")
    with pytest.raises(SetupError) as raised:
        jars.resolve([TOP])
    text = str(raised.value)
    assert f"jars of {TOP} are not in the cache {jars.cache_dir()}" in text
    assert "downloaded from http://127.0.0.1:9/maven" in text
    assert "LAKEKIT_MAVEN_REPOSITORY" in raised.value.hint
    assert "secret" not in text
    assert "hidden" not in text
    assert "\n" not in text


def test_an_unknown_artifact_is_named(repository):
    with pytest.raises(SetupError, match=r"org\.example#missing;1\.0: not found"):
        jars.resolve(["org.example:missing:1.0"])


def test_a_cache_that_cannot_be_made(repository, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LAKEKIT_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(SetupError, match=r"cannot be used: Not a directory\. Set LAKEKIT_CACHE"):
        jars.resolve([TOP])


def test_coordinates_are_checked(repository):
    with pytest.raises(SetupError, match="is no Maven coordinate"):
        jars.resolve(["org.example:top"])


def test_sparks_own_libraries_are_left_out(tmp_path):
    ours = [tmp_path / name for name in ("delta-spark_2.13-4.0.0.jar", "scala-library-2.13.1.jar")]
    assert jars.not_in_spark(ours) == ours[:1]


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/lakekit"),
        ("linux", {}, "/home/me/.cache/lakekit"),
        ("darwin", {}, "/home/me/Library/Caches/lakekit"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/lakekit/cache"),
        ("linux", {"LAKEKIT_CACHE": "/mine", "XDG_CACHE_HOME": "/x"}, "/mine"),
    ],
)
def test_the_cache_is_where_the_platform_keeps_caches(monkeypatch, platform, environment, expected):
    for name in ("LAKEKIT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(jars.sys, "platform", platform)
    assert jars.cache_dir().as_posix() == expected


def test_proxies_of_the_environment_reach_java(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert jars._proxy_flags() == []
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    assert jars._proxy_flags() == ["-Dhttps.proxyHost=proxy.example", "-Dhttps.proxyPort=3128"]
