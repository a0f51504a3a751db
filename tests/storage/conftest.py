"""Fixtures of the storage tests: every store test runs on a disk and on an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakekit.storage.store import Store


@pytest.fixture
def disk(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "shop.db" / "orders"))


@pytest.fixture(params=["disk", "objects"])
def store(request: pytest.FixtureRequest, disk: Store) -> Store:
    # obstore keeps the objects of memory:// in the one store that was opened.
    return disk if request.param == "disk" else Store("memory:///shop.db/orders")
