"""Times that can be compared: contenders take turns in one process, and what else the machine does
meanwhile is written down.

With two threads and one other busy process small parallel kernels become many times slower, so a
round that was disturbed is run again, as far as there is patience, and ratios are taken round by
round. Times are ms per query, medians of at least ROUNDS rounds after a warm-up.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import torch

ROUNDS = 5
OTHERS = 0.25  # cores that others may use in a round
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Contender:
    """What is timed, and for how many queries it works when it is called once."""

    call: Callable[[], object]
    queries: int


@dataclass(frozen=True)
class Times:
    """Rounds kept, ms per query of each contender, and the cores that others used in each."""

    rounds_ms: dict[str, list[float]]
    others: list[float]

    def median(self, name: str) -> float:
        """ms per query."""
        return statistics.median(self.rounds_ms[name])

    def ratio(self, name: str, yardstick: str) -> float:
        """Median over rounds of a contender's time over the yardstick's in the same round."""
        return statistics.median(
            a / b for a, b in zip(self.rounds_ms[name], self.rounds_ms[yardstick], strict=True)
        )

    def ratios(self, name: str, yardstick: str) -> dict[str, float]:
        """The same with the least and the greatest of the rounds, and how many they are."""
        by_round = [
            a / b for a, b in zip(self.rounds_ms[name], self.rounds_ms[yardstick], strict=True)
        ]
        return {
            "ratio": statistics.median(by_round),
            "low": min(by_round),
            "high": max(by_round),
            "rounds": len(by_round),
        }


def busy() -> tuple[float, float, float]:
    """Now, CPU seconds of the whole machine (0 where /proc/stat is not) and of this process with
    its children, all since some moment."""
    mine = os.times()
    try:
        fields = [
            int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        ]
    except OSError:
        fields = [0] * 8
    own = mine.user + mine.system + mine.children_user + mine.children_system
    return time.perf_counter(), (sum(fields) - fields[3] - fields[4]) / TICKS, own


def others(before: tuple[float, float, float]) -> float:
    """Cores that other processes used since `before`."""
    now, machine, mine = (a - b for a, b in zip(busy(), before, strict=True))
    return max(0.0, machine - mine) / max(now, 1e-9)


def once(call: Callable[[], object]) -> float:
    """Seconds of one call, to the end of what it started on a GPU."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def race(contenders: dict[str, Contender], rounds: int = ROUNDS) -> Times:
    """Let the contenders take turns; rounds in which others used more than OTHERS cores are
    repeated, at most as many as `rounds`."""
    for contender in contenders.values():
        contender.call()
    taken: list[tuple[float, dict[str, float]]] = []
    while len(taken) < rounds or (
        len(taken) < 2 * rounds and sum(load <= OTHERS for load, _ in taken) < rounds
    ):
        before = busy()
        times = {
            name: 1e3 * once(contender.call) / contender.queries
            for name, contender in contenders.items()
        }
        taken.append((others(before), times))
    quiet = [entry for entry in taken if entry[0] <= OTHERS]
    kept = quiet if len(quiet) >= rounds else taken
    return Times(
        {name: [times[name] for _, times in kept] for name in contenders},
        [load for load, _ in kept],
    )


def machine() -> dict:
    """What the times belong to: processor, cores, memory, GPU, versions, threads; no name of the
    host."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )
    versions = {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("torch", "numpy", "scipy", "numba")},
    }
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.system(),
        "architecture": platform.machine(),
        "threads": torch.get_num_threads(),
        "versions": versions,
    }
