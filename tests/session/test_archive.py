"""The archive of Spark's classes; `make test` has made one with ``python -m lakekit.session``."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from lakekit.errors import SetupError
from lakekit.session import archive
from lakekit.session.java import find_java

SCRIPT = """
import sys
import lakekit
config = {"spark.driver.extraJavaOptions": f"-Xlog:class+load:file={sys.argv[1]}"}
with lakekit.connect("warehouse", config=config) as lake:
    print(lake.spark.range(3).count())
"""
SPARK_CONTEXT = "org.apache.spark.SparkContext source: "


@pytest.fixture
def spark_home(tmp_path, monkeypatch):
    """A folder with one jar, which counts as the installed Spark, and an empty cache."""
    monkeypatch.setenv("LAKEKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(archive, "spark_home", lambda: tmp_path / "spark")
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "core.jar").write_bytes(b"jar")
    return tmp_path / "spark"


def test_a_session_maps_the_classes_of_the_archive(tmp_path):
    archive.make(find_java())  # takes no time when it is there
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "classes.txt")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"
    loaded = (tmp_path / "classes.txt").read_text()
    assert f"{SPARK_CONTEXT}shared objects file (top)" in loaded


def test_without_an_archive_the_jvm_gets_no_option(spark_home):
    assert archive.java_options(find_java()) == ""


def test_other_jars_have_another_archive(spark_home):
    java = find_java()
    before = archive.archive_of(java)
    before.parent.mkdir(parents=True)
    before.write_bytes(b"archive")
    assert str(before) in archive.java_options(java)
    os.utime(spark_home / "jars" / "core.jar", (1, 1))
    assert archive.archive_of(java) != before
    assert archive.java_options(java) == ""


def test_archives_that_are_used_stay_and_others_go(spark_home, monkeypatch):
    java = find_java()
    used, unused = archive.archive_of(java), archive.archive_of(java).with_name("unused.jsa")
    used.parent.mkdir(parents=True)
    long_ago = time.time() - 40 * 24 * 3600
    for each in (used, unused):
        each.write_bytes(b"archive")
        os.utime(each, (long_ago, long_ago))
    archive.java_options(java)
    os.utime(spark_home / "jars" / "core.jar", (1, 1))  # Spark was updated
    monkeypatch.setattr(archive.subprocess, "run", _writes_an_archive)
    made = archive.make(java)
    assert sorted(used.parent.iterdir()) == sorted([used, made])


def test_where_none_can_be_made_that_is_said(spark_home, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SetupError, match=r"made no archive(.|\n)*Everything works without it"):
        archive.make(find_java())
    assert list(archive.archive_of(find_java()).parent.iterdir()) == []


def _writes_an_archive(_command, env, **_):
    path = env["SPARK_SUBMIT_OPTS"].partition("ArchiveClassesAtExit=")[2].partition('"')[0]
    with open(path, "wb") as file:
        file.write(b"archive")
