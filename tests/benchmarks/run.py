"""Runs each system in a process of its own, one after the other, and keeps what was measured."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from lakekit.session import jars
from lakekit.session.java import find_java

from .check import problems
from .child import Job, folder_size
from .data import prepare
from .memory import Sampler, peak
from .systems import system_class
from .systems.base import System
from .workload import Case, Manifest

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent


@dataclass(frozen=True)
class Settings:
    """What all systems have in common.

    Attributes:
        heap: heap of the JVM, as Java writes it (4g).
        work: folder for the rows and, while a system runs, its tables.
        keep: leave the tables there.
    """

    cores: int
    heap: str
    work: Path
    keep: bool

    def spark(self, place: Path) -> dict[str, str]:
        return {
            "spark.master": f"local[{self.cores}]",
            "spark.driver.memory": self.heap,
            # Hudi's analyzer needs a deep stack for a query of 1,000 keys.
            "spark.driver.extraJavaOptions": "-Xss16m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # More than a small batch needs: adaptive execution merges them. Few would make large joins spill.
            "spark.sql.shuffle.partitions": str(8 * self.cores),
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.local.dir": str(place / "spark"),
        }


def run_case(case: Case, systems: list[str], settings: Settings, results: dict[str, Any], out: Path) -> None:
    """Runs the systems on a case; `results` is saved after each, so that nothing measured is lost."""
    say(f"{case.title}: rows")
    manifest = prepare(case.dataset, settings.work / "data")
    ingested = sum(folder_size(Path(batch.path)) for batch in manifest.batches)
    dataset = {**asdict(case.dataset), "batches": list(case.dataset.batches)}
    entry = next((e for e in results["cases"] if e["dataset"] == dataset), None)
    if entry is None:
        entry = {"title": case.title, "kind": case.kind, "dataset": dataset, "ingested_bytes": ingested}
        results["cases"].append({**entry, "systems": {}})
        entry = results["cases"][-1]
    for name in systems:
        system = system_class(name)
        if case.kind == "memory" and system.starts_from_final:
            continue
        measured = run_system(system, case, manifest, settings)
        entry["systems"][name] = measured
        out.write_text(json.dumps(results, separators=(",", ":")) + "\n")


def run_system(system: type[System], case: Case, manifest: Manifest, settings: Settings) -> dict[str, Any]:
    """Runs one system and returns its events with peak memory, and what went wrong."""
    place = Path(tempfile.mkdtemp(prefix=f"{system.name}-", dir=settings.work))
    shared = settings.spark(place)
    if system.packages:
        shared["spark.jars"] = ",".join(map(str, _jars(system)))
    python = environment(system.requirements, settings.work)
    files = {name: place / name for name in ("job.json", "events.jsonl", "output.txt")}
    job = Job(
        system=system.name,
        kind=case.kind,
        repeats=case.repeats,
        manifest=str(manifest.path),
        place=str(place),
        events=str(files["events.jsonl"]),
        shared=shared,
    )
    files["job.json"].write_text(json.dumps(asdict(job)))
    os.sync()  # the pages that the system before left dirty are not this one's to write
    started = time.monotonic()
    code, sampler = _run(python, files["job.json"], files["output.txt"])
    events = _read_events(files["events.jsonl"], sampler)
    failure = None if code == 0 else _tail(files["output.txt"])
    wrong = problems(events, manifest)
    seconds = time.monotonic() - started
    say(f"{case.title}: {system.name}: {seconds:.0f} s {failure or '; '.join(wrong)}".rstrip())
    if not settings.keep:
        shutil.rmtree(place)
    at = time.strftime("%Y-%m-%d")
    others = round(sampler.others(), 3)
    return {
        "date": at,
        "others": others,
        **describe(system),
        "events": events,
        "failure": failure,
        "problems": wrong,
    }


def describe(system: type[System]) -> dict[str, Any]:
    """What the report says about a system."""
    groups = {"session": system.session, "table": system.properties, "maintenance": system.maintenance}
    return {"title": system.title, **{group: [asdict(s) for s in chosen] for group, chosen in groups.items()}}


def machine(settings: Settings) -> dict[str, Any]:
    """What the race runs on."""
    java = subprocess.run([find_java().executable, "-version"], capture_output=True, text=True, check=True)
    hidden = {"spark.local.dir", "spark.driver.host", "spark.driver.bindAddress"}
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "java": java.stderr.splitlines()[0],
        "shared": {key: value for key, value in settings.spark(Path()).items() if key not in hidden},
    }


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def environment(requirements: Sequence[str], work: Path) -> Path:
    """Returns the Python that has the requirements: this one if there are none, else one made for it."""
    if not requirements:
        return Path(sys.executable)
    place = work / "environments" / "-".join(requirements).replace("==", "-")
    python = place / "bin" / "python"
    ready = place / "ready"
    if not ready.exists():
        say(f"environment with {', '.join(requirements)}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        ready.touch()
    return python


def _jars(system: type[System]) -> list[Path]:
    resolved = jars.resolve(system.packages)
    if not system.requirements:
        return jars.not_in_spark(resolved)
    # Bundles hold all they need; what they depend on belongs to a Spark that is not this one.
    artifacts = tuple(f"{package.split(':')[1]}-" for package in system.packages)
    return [jar for jar in resolved if jar.name.startswith(artifacts)]


def _run(python: Path, job: Path, output: Path) -> tuple[int, Sampler]:
    variables = {k: v for k, v in os.environ.items() if k != "SPARK_HOME"} | {"PYTHONPATH": str(REPOSITORY)}
    command = [str(python), "-m", "tests.benchmarks.child", str(job)]
    with output.open("w") as out:
        # In its own folder: Spark leaves files where it is started.
        process = subprocess.Popen(
            command, cwd=job.parent, env=variables, stdout=out, stderr=subprocess.STDOUT
        )
        sampler = Sampler(process.pid)
        sampler.start()
        code = process.wait()
        sampler.stop()
    return code, sampler


def _read_events(path: Path, sampler: Sampler) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for event in events:
        if event["step"] in ("load", "upsert", "compact", "cluster", "scan", "aggregate"):
            found = peak(sampler.samples, event["start"], event["end"])
            event["memory"] = None if found is None else asdict(found)
    return events


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _tail(path: Path) -> str:
    lines = path.read_text(errors="replace").splitlines()
    causes = [
        line
        for line in lines
        if re.match(r"\s*(Caused by: |Suppressed: |: )?[\w.$]+(Error|Exception)\b", line)
    ]
    return "\n".join([*lines[-10:], *(line[:500] for line in causes[-10:])])
