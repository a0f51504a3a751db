"""One IPython for all tests of the notebook."""

from __future__ import annotations

import pytest
from IPython.testing.globalipapp import start_ipython


@pytest.fixture(scope="session")
def ipython():
    """A running IPython with the extension loaded."""
    shell = start_ipython()
    shell.run_line_magic("load_ext", "lakekit")
    return shell
