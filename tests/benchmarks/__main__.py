"""The command line: ``python -m tests.benchmarks``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from . import figures, report
from .run import HERE, Settings, machine, run_case
from .systems import NAMES
from .workload import Case, memory, parse_batches, parse_rows, race

VARIANTS: dict[str, dict[str, Any]] = {
    "skewed": {"skew": 0.9},
    "partitioned": {"days": 30},
    "late": {"late": 0.1},
}
LATEST = HERE / "results" / "latest.json"


def main(arguments: list[str] | None = None) -> int:
    """Runs what the command line asks for; returns 1 if a system failed or returned wrong rows."""
    options = _parser().parse_args(arguments)
    if options.render:
        return _report(json.loads(options.render.read_text()))
    options.work.mkdir(parents=True, exist_ok=True)
    settings = Settings(options.cores, options.heap, options.work.absolute(), options.keep)
    default = options.work / "quick.json" if options.quick else LATEST
    out: Path = options.out or default
    out.parent.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"machine": machine(settings), "cases": []}
    if options.extend and out.exists():
        results["cases"] = json.loads(out.read_text())["cases"]
    for case in _cases(options):
        run_case(case, options.systems, settings, results, out)
    print("\n".join([report.tables(results), *report.failures(results)]))
    if out == LATEST:
        _report(results)
    return 1 if report.failures(results) else 0


def _report(results: dict[str, Any]) -> int:
    drawn = figures.draw(results, HERE / "results")
    report.write(results, drawn, HERE / "README.md")
    return 1 if report.failures(results) else 0


def _cases(options: argparse.Namespace) -> list[Case]:
    if options.quick:
        batches = parse_batches("3x25k,2x2.5k,2x100")
        quick = [race(50_000, key, batches) for key in options.keys]
        quick += [race(50_000, "bigint", batches, **VARIANTS[name]) for name in options.variants]
        return [*quick, memory(100_000, options.keys[0])]
    cases = []
    for size in options.sizes:
        # MERGE that copies files takes minutes for each batch into a large table.
        batches = options.batches or parse_batches("5x1M,5x10k" if size <= 5_000_000 else "2x1M,2x10k")
        cases += [race(size, key, batches) for key in options.keys]
        cases += [race(size, "bigint", batches, **VARIANTS[name]) for name in options.variants]
    return cases + ([memory(options.memory, options.keys[0])] if options.memory else [])


def _parser() -> argparse.ArgumentParser:
    def one_of(*allowed: str) -> Any:
        def names(text: str) -> list[str]:
            chosen = [item for item in text.split(",") if item]
            if unknown := [item for item in chosen if item not in allowed]:
                raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(allowed)}")
            return [name for name in allowed if name in chosen]

        return names

    def sizes(text: str) -> list[int]:
        return [parse_rows(item) for item in text.split(",") if item]

    def rows_or_none(text: str) -> int:
        return 0 if text == "0" else parse_rows(text)

    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="The race.")
    add = parser.add_argument
    add("--quick", action="store_true", help="tiny tables: shows that everything works, measures nothing")
    add("--sizes", type=sizes, default="2M,20M", help="keys of the tables")
    add("--keys", type=one_of("bigint", "uuid"), default="bigint,uuid", help="kinds of keys")
    add("--systems", type=one_of(*NAMES), default=",".join(NAMES), help=f"any of {', '.join(NAMES)}")
    add("--variants", type=one_of(*VARIANTS), default="", help=f"besides: any of {', '.join(VARIANTS)}")
    add("--batches", type=parse_batches, help="as 5x1M,5x10k, the default; above 5 M keys 2x1M,2x10k")
    add("--memory", type=rows_or_none, default="10M", help="largest batch of the memory case; 0: without it")
    add("--cores", type=int, default=2)
    add("--heap", default="4g", help="heap of the JVM")
    add("--work", type=Path, default=HERE / "work", help="folder for rows and tables")
    add("--out", type=Path, help="raw figures as JSON; the README is written only without it")
    add("--extend", action="store_true", help="add to the raw figures, replacing only what runs again")
    add("--keep", action="store_true", help="keep the tables")
    add("--render", type=Path, metavar="JSON", help="write the README from raw figures; runs nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
