"""Samples a process tree: the memory of the JVM, the Python workers of Spark and the driver; and who else ran."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Sample:
    """Bytes resident at one moment; pages of mapped files (the page cache) are not counted.

    Attributes:
        workers: all Python workers together.
        largest_worker: the largest of them.
    """

    moment: float
    jvm: int
    driver: int
    workers: int
    largest_worker: int

    @property
    def total(self) -> int:
        return self.jvm + self.driver + self.workers


@dataclass(frozen=True)
class Peak:
    jvm: int
    driver: int
    workers: int
    largest_worker: int
    total: int


class Sampler(threading.Thread):
    """Takes a sample every `interval` seconds until `stop` is called."""

    def __init__(self, pid: int, interval: float = 0.2) -> None:
        super().__init__(daemon=True)
        self.samples: list[Sample] = []
        self._root = psutil.Process(pid)
        self._interval = interval
        self._stopped = threading.Event()
        self._cpu: dict[int, float] = {}
        self._began, self._busy_before = time.monotonic(), _busy()

    def run(self) -> None:
        while not self._stopped.wait(self._interval):
            try:
                self.samples.append(self._sample())
            except psutil.NoSuchProcess:
                return

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def others(self) -> float:
        """The share of the machine's cores that was not idle and not this tree's since the sampler was made."""
        busy = _busy() - self._busy_before - sum(self._cpu.values())
        return max(busy, 0.0) / (time.monotonic() - self._began) / (psutil.cpu_count() or 1)

    def _sample(self) -> Sample:
        moment = time.time()
        jvm, workers = 0, [0]
        for process in self._root.children(recursive=True):
            try:
                memory = _resident(process)
                self._count_cpu(process)
                if process.name().startswith("java"):
                    jvm += memory
                elif process.name().startswith("python"):
                    workers.append(memory)
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
        self._count_cpu(self._root)
        return Sample(moment, jvm, _resident(self._root), sum(workers), max(workers))

    def _count_cpu(self, process: psutil.Process) -> None:
        times = process.cpu_times()
        self._cpu[process.pid] = times.user + times.system


def peak(samples: list[Sample], start: float, end: float) -> Peak | None:
    """The largest of each figure between two moments; None if no sample was taken between them."""
    within = [sample for sample in samples if start <= sample.moment <= end]
    if not within:
        return None
    return Peak(
        max(s.jvm for s in within),
        max(s.driver for s in within),
        max(s.workers for s in within),
        max(s.largest_worker for s in within),
        max(s.total for s in within),
    )


def _busy() -> float:
    """Seconds of CPU that were spent on this machine, those that its host took from it included."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))


def _resident(process: psutil.Process) -> int:
    memory = process.memory_info()
    return int(memory.rss - getattr(memory, "shared", 0))
