"""The built wheel in a clean environment, away from the source tree."""

import os
import re
import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import lakekit
lake = lakekit.connect(config={"spark.driver.memory": "1g"})
lake.create_database("shop")
lake.create_table("shop.orders", "id BIGINT NOT NULL, amount INT", primary_key=["id"], buckets=1)
orders = lake.table("shop.orders")
orders.upsert([{"id": 1, "amount": 5}, {"id": 2, "amount": 6}])
print(lakekit.__file__)
print(lake.spark.table("shop.orders").count(), orders.get(id=2))
lake.stop()
"""


LABEXTENSION = ROOT / "extensions" / "lakekit-lab" / "labextensions" / "lakekit-lab"
INSTALLED = "share/jupyter/labextensions/lakekit-lab"
PIP = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([*PIP, out, ROOT], check=True)
    (built,) = out.glob("lakekit-*.whl")
    return built


def labextension_in(archive):
    """The files of the JupyterLab extension in a wheel, as they are installed."""
    marked = f".data/data/{INSTALLED}/"
    return {n.partition(marked)[2]: archive.read(n) for n in archive.namelist() if marked in n}


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith("METADATA")]
        described = archive.read(metadata).decode()
    assert {
        "lakekit/py.typed",
        "lakekit/session/log4j2.properties",
        "lakekit/logstore/log4j2.properties",
    } <= set(names)
    assert all(name.startswith(("lakekit/", "lakekit-")) for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "Requires-Dist: pyspark[connect]" in described
    assert "License-Expression: Apache-2.0" in described


def test_the_wheel_brings_the_jupyterlab_extension(wheel):
    files = [path for path in LABEXTENSION.rglob("*") if path.is_file()]
    committed = {path.relative_to(LABEXTENSION).as_posix(): path.read_bytes() for path in files}
    assert any(name.startswith("static/remoteEntry.") for name in committed)
    with zipfile.ZipFile(wheel) as archive:
        found = labextension_in(archive)
    assert b'"packageName": "lakekit"' in found.pop("install.json")
    assert found == committed


def test_a_wheel_of_the_source_archive_is_the_same(wheel, tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path], cwd=ROOT, check=True
    )
    (archive,) = tmp_path.glob("lakekit-*.tar.gz")
    assert archive.stat().st_size < 5_000_000
    subprocess.run([*PIP, tmp_path / "wheel", archive], check=True)
    (again,) = (tmp_path / "wheel").glob("lakekit-*.whl")
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        assert set(first.namelist()) == set(second.namelist())
        assert labextension_in(first) == labextension_in(second)


def test_an_editable_install_brings_the_jupyterlab_extension():
    listed = subprocess.run(
        [sys.executable, "-m", "jupyter", "labextension", "list"], capture_output=True, text=True, check=True
    )
    assert re.search(r"lakekit-lab v[\d.]+ .*enabled.*OK", listed.stdout + listed.stderr)


def test_connecting_from_the_installed_wheel(wheel, tmp_path):
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip())
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # The dependencies are those of this environment: to download Spark for each run would take minutes. A folder
    # named in a .pth file does not have its own .pth files read, so the source tree installed there is not seen.
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    work = tmp_path / "empty folder"
    work.mkdir()
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "SPARK_", "PYSPARK"))
    }

    done = subprocess.run(
        [python, "-c", SCRIPT], cwd=work, env=clean, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr == ""
    used, result = done.stdout.splitlines()
    assert Path(used).is_relative_to(packages)
    assert result == "2 {'id': 2, 'amount': 6}"
    assert [path.name for path in work.iterdir()] == ["warehouse"]
