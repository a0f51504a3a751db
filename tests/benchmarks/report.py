"""Turns raw figures into the tables of README.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from .systems import NAMES, REFERENCE
from .workload import short

BEGIN, END = "<!-- results: written by python -m tests.benchmarks -->", "<!-- end of results -->"

READS = {
    "scan": "full scan",
    "aggregate": "aggregate",
    "filter": "filter on another column",
    "range": "range of 1,000 keys",
    "wide range": "range of 100,000 keys",
    "lookup": "point look-up by SQL",
    "many": "1,000 keys in one query",
}

_LOG_BYTES = 1_000_000
"""What a maintenance that finds nothing to do may write: a commit, a checkpoint."""

Measured = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """One measure.

    Attributes:
        of: gives the figure of a system in seconds, bytes or files, or None if it has none.
        peers: the figure of the other systems where it is another one.
    """

    label: str
    unit: str
    of: Callable[[Measured], float | None]
    peers: Callable[[Measured], float | None] | None = None


def rows(entry: Measured) -> list[Row]:
    """The measures of a case, in the order of the table."""
    batches = entry["dataset"]["batches"]
    made = [Row("load", "s", _load)]
    for size in sorted(set(batches), reverse=True):
        batch = f"upsert of {short(size)} rows"
        made.append(Row(f"{batch}, first", "s", _upsert(size, lambda seconds: seconds[0])))
        made.append(Row(f"{batch}, median", "s", _upsert(size, median)))
        made.append(Row(f"{batch}, last", "s", _upsert(size, _last_of(batches.count(size)))))
    label = "all upserts, background work included"
    made.append(Row(label, "s", lambda m: _of_upserts(m, "seconds", len(batches))))
    for step, label in READS.items():
        made += [
            Row(f"{label}, {stage} compaction", "s", _read(step, stage)) for stage in ("before", "after")
        ]
        if step in ("range", "wide range", "lookup", "many"):
            made.append(Row(f"{label}, after compaction by key", "s", _read(step, "clustered", "after")))
    for stage in ("before", "after"):
        label = f"`get()`, {stage} compaction (others: SQL)"
        made.append(Row(label, "s", _read("get", stage), _read("lookup", stage)))
        label = f"`get_many()` of 1,000 keys, {stage} compaction (others: SQL)"
        made.append(Row(label, "s", _read("get many", stage), _read("many", stage)))
    made.append(Row("compaction", "s", _compaction("compact")))
    made.append(Row("compaction by key", "s", _compaction("cluster", "compact")))
    ingested = entry["ingested_bytes"]
    label = "bytes written by the upserts ÷ bytes of the batches"
    made.append(Row(label, "ratio", lambda m: _written(m, ingested, len(batches))))
    made.append(Row("live files before compaction (data + deletes)", "files", _files("before")))
    made.append(Row("live files after compaction (data + deletes)", "files", _files("after")))
    made.append(Row("live bytes after compaction", "B", lambda m: _state(m, "after", "bytes")))
    for part, label in (("jvm", "the JVM"), ("workers", "all Python workers"), ("total", "all processes")):
        made.append(Row(f"peak resident memory of {label}", "B", _peak(part)))
    return made


def tables(results: Measured) -> str:
    """All cases as Markdown."""
    parts = [_race_table([e for e in results["cases"] if e["kind"] == "race"])]
    parts += [_memory_table(e) for e in results["cases"] if e["kind"] == "memory"]
    return "\n\n".join(part for part in parts if part)


def write(results: Measured, drawn: Sequence[Path], readme: Path) -> None:
    """Replaces what stands between the markers of the README."""
    pictures = "\n".join(f"![{path.stem}]({path.relative_to(readme.parent).as_posix()})" for path in drawn)
    parts = [_machine(results), _verdict(results), tables(results), pictures, _settings(results)]
    replace_between(readme, BEGIN, END, "\n\n".join(part for part in parts if part))


def publish(
    results: Mapping[str, Any], text: str, name: str, marks: tuple[str, str], out: Path | None
) -> None:
    """Prints a report and keeps it.

    Args:
        results: the raw figures.
        text: what they say, as Markdown.
        name: of the file in ``results`` for the raw figures.
        marks: the two lines of README.md between which the text goes.
        out: another file for the raw figures; then README.md stays as it is.
    """
    here = Path(__file__).parent
    (out or here / "results" / name).write_text(json.dumps(results, indent=1) + "\n")
    print(text)
    if out is None:
        replace_between(here / "README.md", *marks, text)


def replace_between(readme: Path, begin: str, end: str, body: str) -> None:
    """Replaces what stands between two markers of a file."""
    head, rest = readme.read_text(encoding="utf-8").split(begin)
    readme.write_text(f"{head}{begin}\n\n{body}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


def failures(results: Measured) -> list[str]:
    """Every system that failed or returned other rows than expected, and what it did."""
    found = []
    for entry in results["cases"]:
        for name, measured in entry["systems"].items():
            if measured["failure"] or measured["problems"]:
                reason = "; ".join(measured["problems"]) or "it failed"
                found.append(f"{entry['title']}: {name}: {reason}")
    return found


def _race_table(entries: Sequence[Measured]) -> str:
    present = [name for name in NAMES if any(name in entry["systems"] for entry in entries)]
    if not present:
        return ""
    titles = {name: e["systems"][name]["title"] for e in entries for name in e["systems"]}
    compared = REFERENCE in present
    head, rule = ["", "work"], ["---", "---"]
    for name in present:
        head.append(titles[name])
        rule.append("--:")
        if compared and name != REFERENCE:
            head.append("÷")
            rule.append("--:")
    lines = [_line(head), _line(rule)]
    for entry in entries:
        measured = [
            row for row in rows(entry) if any(figure(row, name, entry) is not None for name in present)
        ]
        for number, row in enumerate(measured):
            cells = [f"**{entry['title']}**" if number == 0 else "", row.label]
            reference = figure(row, REFERENCE, entry)
            for name in present:
                value = figure(row, name, entry)
                cells.append(_show(value, row.unit))
                if compared and name != REFERENCE:
                    cells.append(f"{value / reference:.2g}" if value is not None and reference else "")
            lines.append(_line(cells))
    return "\n".join(lines)


def _memory_table(entry: Measured) -> str:
    lines = [
        f"**{entry['title']}**: peak resident memory while a batch is upserted",
        "",
        _line(["system", "rows in the batch", "s", "all Python workers", "largest worker", "JVM"]),
        _line(["---", "--:", "--:", "--:", "--:", "--:"]),
    ]
    for name in NAMES:
        for event in steps(entry["systems"].get(name, {"events": []}), "upsert"):
            memory = event["memory"] or {}
            shown = [_show(memory.get(part), "B") for part in ("workers", "largest_worker", "jvm")]
            title = entry["systems"][name]["title"]
            lines.append(_line([title, f"{event['rows']:,}", _show(event["seconds"], "s"), *shown]))
    return "\n".join(lines)


def _machine(results: Measured) -> str:
    machine = results["machine"]
    measured = [m for entry in results["cases"] for m in entry["systems"].values()]
    versions: dict[str, str] = {}
    for event in (event for m in measured for event in steps(m, "versions")):
        versions |= event["versions"]
    dates = sorted({m["date"] for m in measured})
    numbers = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
    memory = f"{machine['memory_bytes'] / 2**30:.0f} GiB of memory"
    shared = ", ".join(f"`{key}={value}`" for key, value in machine["shared"].items())
    return (
        f"Measured on {' to '.join(dict.fromkeys((dates[0], dates[-1])))}: {machine['processor']}, "
        f"{machine['cores']} cores, {memory}, {machine['system']}; {machine['java']}; {numbers}.\n\n"
        f"All systems: {shared}. {_quiet(measured)}"
    )


def _quiet(measured: Sequence[Measured]) -> str:
    others = max(m["others"] for m in measured)
    text = f"Other processes and the host took at most {others:.0%} of the cores while a system ran."
    return text if others < 0.1 else f"**{text} These times are not comparable.**"


def _verdict(results: Measured) -> str:
    wrong = failures(results)
    if wrong:
        return "**Not all systems returned the rows expected:**\n" + "\n".join(f"- {text}" for text in wrong)
    return (
        "All systems returned the same rows at every stage, those expected: number of rows, sums of all "
        "columns, and the CRC-32 of every row."
    )


def _settings(results: Measured) -> str:
    lines = ["| system | where | setting | value | why |", "|---|---|---|---|---|"]
    systems = {name: m for entry in results["cases"] for name, m in entry["systems"].items()}
    for name in (name for name in NAMES if name in systems):
        title = systems[name]["title"]
        for where in ("session", "table", "maintenance"):
            lines.extend(
                _line([title, where, f"`{s['name']}`", f"`{s['value']}`", s["why"]])
                for s in systems[name][where]
            )
    return "\n".join(["How each is set up, besides its defaults:", "", *lines])


def steps(measured: Measured, step: str, stage: str | None = None) -> list[Any]:
    """The events of a step, in order."""
    return [e for e in measured["events"] if e["step"] == step and stage in (None, e.get("stage"))]


def by_size(entries: Sequence[Measured]) -> dict[int, dict[int, float]]:
    """The median seconds of lakekit's upserts of uniform bigint keys, by rows of the batch and by keys of the table."""
    found: dict[int, dict[int, float]] = {}
    for entry in entries:
        dataset = entry["dataset"]
        plain = dataset["key"] == "bigint" and not any(dataset.get(n) for n in ("skew", "days", "late"))
        if plain and REFERENCE in entry["systems"]:
            for batch in set(dataset["batches"]):
                seconds = _upsert(batch, median)(entry["systems"][REFERENCE])
                if seconds is not None:
                    found.setdefault(batch, {})[dataset["keys"]] = seconds
    return {batch: points for batch, points in found.items() if len(points) > 1}


def figure(row: Row, name: str, entry: Measured) -> float | None:
    measured = entry["systems"].get(name)
    if measured is None:
        return None
    return (row.of if name == REFERENCE or row.peers is None else row.peers)(measured)


def _load(measured: Measured) -> float | None:
    return next((float(e["seconds"]) for e in steps(measured, "load")), None)


def _compaction(*names: str) -> Callable[[Measured], float | None]:
    """The seconds of the first of these steps that the system has, if more than the log was written."""

    def find(measured: Measured) -> float | None:
        found = next((e for name in names for e in steps(measured, name)), None)
        return float(found["seconds"]) if found is not None and found["bytes_written"] > _LOG_BYTES else None

    return find


def _upsert(size: int, pick: Callable[[list[float]], float | None]) -> Callable[[Measured], float | None]:
    def find(measured: Measured) -> float | None:
        batches = [*steps(measured, "upsert"), *steps(measured, "limit")]
        seconds = [e["seconds"] for e in batches if e["rows"] == size]
        return pick(seconds) if seconds else None

    return find


def _last_of(count: int) -> Callable[[list[float]], float | None]:
    """Picks the last of so many figures; a system that failed before it has none."""
    return lambda seconds: seconds[-1] if len(seconds) == count else None


def _of_upserts(measured: Measured, part: str, count: int) -> float | None:
    """The sum of a figure over `count` upserts and what they left to do in the background; None if some are missing."""
    upserts = steps(measured, "upsert")
    if len(upserts) < count:
        return None
    return sum(float(e[part]) for e in [*upserts, *steps(measured, "settle")])


def _read(step: str, *stages: str) -> Callable[[Measured], float | None]:
    """The median at the first of these stages that the system has; a table without upserts has one stage."""

    def find(measured: Measured) -> float | None:
        for stage in (*stages, *(() if steps(measured, "upsert") else ("before",))):
            if seconds := [e["seconds"] for e in steps(measured, step, stage)]:
                return median(seconds)
        return None

    return find


def _written(measured: Measured, ingested: int, count: int) -> float | None:
    written = _of_upserts(measured, "bytes_written", count)
    return None if written is None else written / ingested


def _state(measured: Measured, stage: str, *parts: str) -> float | None:
    """The sum of parts of the state; a table without upserts has one stage."""
    for event in steps(measured, "state", stage) or (
        steps(measured, "state") if not steps(measured, "upsert") else []
    ):
        return float(sum(event["state"][part] for part in parts))
    return None


def _files(stage: str) -> Callable[[Measured], float | None]:
    return lambda measured: _state(measured, stage, "data_files", "delete_files")


def _peak(part: str) -> Callable[[Measured], float | None]:
    def find(measured: Measured) -> float | None:
        return max((float(e["memory"][part]) for e in measured["events"] if e.get("memory")), default=None)

    return find


def _show(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "s":
        return (
            f"{value * 1000:.2g} ms" if value < 0.1 else f"{value:.2f} s" if value < 10 else f"{value:.0f} s"
        )
    if unit == "B":
        return f"{value / 1e6:,.0f} MB"
    return f"{value:.1f}" if unit == "ratio" else f"{value:.0f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
