"""lakekit: keyed lake tables in a notebook, stored as ordinary Delta tables.

Importing it starts nothing: the parts are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lakekit import errors as _errors
from lakekit.errors import *  # noqa: F403 (every error is public, and errors.__all__ lists them)

if TYPE_CHECKING:
    from lakekit.lake import Lake
    from lakekit.session.connect import connect
    from lakekit.table.commit import Commit
    from lakekit.table.table import Table

__version__ = "0.1.0"

_LAZY = {
    "connect": "lakekit.session.connect",
    "Lake": "lakekit.lake",
    "Table": "lakekit.table.table",
    "Commit": "lakekit.table.commit",
}

__all__ = ["Commit", "Lake", "Table", "__version__", "connect", "load_ipython_extension"]
__all__ += _errors.__all__


def load_ipython_extension(ipython: Any) -> None:
    """Registers the magics; called by ``%load_ext lakekit``."""
    from lakekit.notebook import load_ipython_extension as load

    load(ipython)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'lakekit' has no attribute '{name}'")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
