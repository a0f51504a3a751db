"""The check of installed packages, with packages that really are of another version."""

import pytest

from lakekit.errors import SetupError
from lakekit.session import versions


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """Puts metadata of another version before that of the installed package."""

    def install(package, version):
        folder = tmp_path / f"{package.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        monkeypatch.syspath_prepend(tmp_path)

    return install


def test_the_installed_set_fits():
    versions.check_packages()


@pytest.mark.parametrize("version", ["3.5.4", "4.1.0", "5.0.0.dev1"])
def test_another_spark_is_refused_with_the_command_that_helps(pretend, version):
    pretend("pyspark", version)
    with pytest.raises(SetupError) as raised:
        versions.check_packages()
    assert f"needs pyspark 4.0, but {version} is installed" in raised.value.message
    assert 'pip install "pyspark==' in raised.value.hint


def test_another_patch_release_is_fine_and_decides_the_jars(pretend):
    pretend("delta-spark", "4.0.7")
    versions.check_packages()
    assert versions.delta_coordinates() == ["io.delta:delta-spark_2.13:4.0.7"]


def test_pandas_3_is_refused(pretend):
    pretend("pandas", "3.0.1")
    with pytest.raises(SetupError, match=r'pandas 3\.0\.1 .* pip install "pandas<3"'):
        versions.check_packages()


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(SetupError, match="delta-spark is not installed"):
        versions.check_packages()


@pytest.mark.parametrize(("text", "expected"), [("4.0.0", (4, 0)), ("4", (4, 0)), ("4.1.0.dev2", (4, 1))])
def test_minor(text, expected):
    assert versions.minor(text) == expected
