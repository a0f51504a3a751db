"""Compares what a system returned with what it must return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .workload import Manifest


def problems(events: Sequence[dict[str, Any]], manifest: Manifest) -> list[str]:
    """Says which queries returned something else than expected, and whether the run ended early."""
    found: dict[str, None] = {}
    for event in events:
        step, result = event["step"], event.get("result")
        if step in ("scan", "aggregate", "filter", "checksum", "many"):
            expected = [manifest.expected[step]]
        elif step == "get many":
            expected = [manifest.expected["many"]]
        elif step in ("range", "wide range"):
            expected = [manifest.expected[step][event["index"]]]
        elif step in ("lookup", "get"):
            expected = [manifest.expected["lookup"][event["index"]]]
        else:
            continue
        if result != expected:
            found[f"{step} {event['stage']}: {_brief(result)} instead of {_brief(expected)}"] = None
    if not any(event["step"] == "done" for event in events):
        found["it did not end"] = None
    return list(found)


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "..."
