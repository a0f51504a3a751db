"""lakekit in a notebook: ``%load_ext lakekit`` brings ``%%lakesql`` and ``%lakesql``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Registers the magics with a running IPython."""
    from lakekit.notebook import completion, panel  # noqa: F401 (the panel of JupyterLab looks for the module)
    from lakekit.notebook.magics import LakeMagics

    ipython.register_magics(LakeMagics)
    completion.register(ipython)
