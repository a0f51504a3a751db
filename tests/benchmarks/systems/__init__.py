"""The systems that race, by name.

Each is imported only when asked for: its process may run where the others cannot be imported.
"""

from __future__ import annotations

from importlib import import_module

from tests.benchmarks.systems.base import System

_PLACES = {
    "lakekit": ("lakekit", "Lakekit"),
    "delta-merge": ("delta", "DeltaMerge"),
    "delta-merge-dv": ("delta", "DeltaMergeVectors"),
    "iceberg-mor": ("iceberg", "IcebergMerge"),
    "paimon": ("paimon", "Paimon"),
    "paimon-dv": ("paimon", "PaimonVectors"),
    "hudi-mor": ("hudi", "HudiMor"),
    "hudi-cow": ("hudi", "HudiCow"),
    "delta-plain": ("delta", "PlainDelta"),
    "parquet": ("parquet", "PlainParquet"),
}

NAMES = tuple(_PLACES)
"""In the order of the report."""

REFERENCE = "lakekit"
"""The system that the others are compared with."""


def system_class(name: str) -> type[System]:
    """The adapter with this name, one of `NAMES`."""
    module, cls = _PLACES[name]
    found: type[System] = getattr(import_module(f".{module}", __name__), cls)
    return found
