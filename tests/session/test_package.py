"""What `import lakekit` gives and costs."""

import subprocess
import sys

import pytest

import lakekit
from lakekit import errors


def test_importing_loads_nothing_heavy():
    heavy = {"pyspark", "pyarrow", "numpy", "IPython", "sqlglot"}
    code = f"import lakekit, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there():
    for name in lakekit.__all__:
        assert getattr(lakekit, name) is not None
    assert set(errors.__all__) <= set(lakekit.__all__)
    assert set(lakekit.__all__) <= set(dir(lakekit))


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="has no attribute 'conect'"):
        _ = lakekit.conect
