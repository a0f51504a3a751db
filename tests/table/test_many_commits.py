"""A table with many commits takes the next one as a young table does."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

from lakekit.storage.store import Store

if TYPE_CHECKING:
    import pytest

    import lakekit

_numbers = itertools.count()


def test_the_log_is_read_no_further_when_it_has_grown(
    lake: lakekit.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table(
        f"many_{next(_numbers)}",
        "id BIGINT NOT NULL, v BIGINT",
        primary_key=["id"],
        buckets=1,
        properties={"compaction.auto": "false"},
    )
    seen: Counter[str] = Counter()
    for name in ("read", "list"):
        original = getattr(Store, name)

        def counted(
            self: Store, path: str, *args: Any, name: str = name, original: Any = original, **kwargs: Any
        ) -> Any:
            if "_delta_log" in path:
                seen[name] += 1
            return original(self, path, *args, **kwargs)

        monkeypatch.setattr(Store, name, counted)
    by_ten = []
    for _ in range(5):
        seen.clear()
        for number in range(10):
            table.upsert([{"id": number, "v": number}])
        by_ten.append(dict(seen))
    assert by_ten[-1] == by_ten[1]  # the first ten had no checkpoint yet
    assert table.version == 50
    checkpoints = [f.path for f in Store(table.root).list("_delta_log/") if ".checkpoint." in f.path]
    assert len(checkpoints) == 5
