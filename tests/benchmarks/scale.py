"""What a search costs at the size of the document's five weeks, and a trained model over a day.

33 million points (66,000 smoothed walks of 500) are made and indexed in processes of their own, so
that the peak of memory is the index's: Linux' VmHWM, reset when the points are in memory. An epoch
of GKA-MLP-TNN is timed over some of its steps and told for all of them: contexts are gathered from
a memory-mapped table of neighbours, as the stage of contexts leaves it.
"""

import multiprocessing
import statistics
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch

from stages import seeds
from stages.batches import Batch
from stages.errors import DataError
from stages.fields.models.gka_mlp_tnn import GKAMLPTNN
from stages.neighbours import methods, walks
from tests.benchmarks.clock import once

POINTS, WALK = 33_000_000, 500
NEIGHBOURS, QUERIES, WINDOW, ROUNDS = 100, 256, 0.05, 5
TARGETS, CONTEXT, STEPS = 700, 64, 1440  # a step is a minute of a day of a million points


def memory_mib(name: str) -> float:
    """VmRSS or VmHWM of this process."""
    line = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)
    )
    return int(line.split()[1]) / 1024


def make_walks(folder: str, points: int, answer: Connection) -> None:
    """Write points.npy and trajectory.npy of smoothed walks (in a child process)."""
    table, trajectory = walks.smoothed_random_walk(
        points // WALK, WALK, seeds.stream(0, "search", "scale", points)
    )
    np.save(Path(folder, "points.npy"), table)
    np.save(Path(folder, "trajectory.npy"), trajectory)
    answer.send({"points": len(table)})


def index_and_ask(folder: str, method: str, answer: Connection) -> None:
    """Build one index over the points of `folder` and ask it (in a child process): seconds, MiB, ms
    per query.

    bare_mib: the process without points; peak_mib: its peak while building; taken_mib: the
    difference, points, trajectories and index.
    """
    methods.build(method, torch.zeros(2, 4)).query(
        torch.zeros(1, 4), 1
    )  # compiled code is compiled before the clock starts
    bare = memory_mib("VmRSS")
    points, trajectory = (
        torch.from_numpy(np.load(Path(folder, f"{name}.npy"))) for name in ("points", "trajectory")
    )
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    indexes: list = []
    seconds = once(lambda: indexes.append(methods.build(method, points, trajectory)))
    peak = memory_mib("VmHWM")
    asked = points[
        torch.from_numpy(
            seeds.stream(0, "search", "scale", "queries").choice(
                len(points), QUERIES, replace=False
            )
        )
    ]

    def ask() -> None:
        indexes[0].query(asked, NEIGHBOURS, window=WINDOW)

    ask()
    ms = [1e3 * once(ask) / QUERIES for _ in range(ROUNDS)]
    answer.send(
        {
            "method": method,
            "points": len(points),
            "build_s": seconds,
            "bare_mib": bare,
            "peak_mib": peak,
            "taken_mib": peak - bare,
            "k": NEIGHBOURS,
            "queries": QUERIES,
            "ms": statistics.median(ms),
            "rounds_ms": ms,
        }
    )


def apart(work, *arguments) -> dict:
    """What `work(*arguments, connection)` sends from a process of its own. DataError if it dies."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=work, args=(*arguments, sender))
    child.start()
    sender.close()
    try:
        found = receiver.recv()
    except EOFError:
        child.join()
        raise DataError(
            "a process of the benchmark died",
            where=work.__name__,
            found=f"exit code {child.exitcode}",
            remedy="free memory, or leave the large index out with --skip-33m",
        ) from None
    child.join()
    return found


def large(
    small: int, points: int = POINTS, names: tuple[str, ...] = ("boxes", "compiled")
) -> list[dict]:
    """Each method at `small` and at `points` points: build, memory, ms per query, and how much
    slower a query is at the larger size."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="tradewind-") as name:
        for count in (small, points):
            apart(make_walks, name, count)
            rows += [apart(index_and_ask, name, method) for method in names]
    for row in rows:
        first = next(other for other in rows if other["method"] == row["method"])
        row |= {"slower": row["ms"] / first["ms"], "larger": row["points"] / first["points"]}
    return rows


def epoch(points: int = 1_000_000, steps: int = 200) -> dict:
    """Seconds of an epoch of GKA-MLP-TNN: STEPS steps of TARGETS targets with CONTEXT cached
    neighbours each; `steps` are timed.

    Contexts are random rows: where they lie does not matter to the arithmetic, and for the memory
    it is the worst case.
    """
    rng = seeds.stream(0, "search", "epoch")
    x = rng.normal(size=(points, 4)).astype(np.float32)
    y = rng.normal(size=(points, 2)).astype(np.float32)
    with tempfile.TemporaryDirectory(prefix="tradewind-") as name:
        file = Path(name, "contexts.npy")
        table = np.lib.format.open_memmap(file, "w+", np.int32, (points, CONTEXT))
        for start in range(0, points, 1 << 16):
            table[start : start + (1 << 16)] = rng.integers(
                points, size=table[start : start + (1 << 16)].shape
            )
        del table
        return {
            "points": points,
            "targets": TARGETS,
            "context": CONTEXT,
            "steps": STEPS,
            "steps_timed": steps,
            **trained(
                torch.from_numpy(x), torch.from_numpy(y), np.load(file, mmap_mode="r"), steps
            ),
        }


def trained(x: torch.Tensor, y: torch.Tensor, table: np.ndarray, steps: int) -> dict:
    """Seconds of STEPS steps, from the median over parts of `steps` real ones: gather, forward,
    backward, clip, Adam."""
    torch.manual_seed(0)
    model = GKAMLPTNN(4, 2, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, fused=True)
    ones = torch.ones(TARGETS, 1, dtype=torch.bool)

    def step(number: int) -> None:
        first = number * TARGETS % (len(x) - TARGETS)
        rows = torch.from_numpy(table[first : first + TARGETS].astype(np.int64))
        target = slice(first, first + TARGETS)
        batch = Batch(x[rows], y[rows], rows >= 0, x[target, None], ones, y[target, None])
        optimizer.zero_grad()
        (model(batch).mean - batch.target_y).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 4.0)
        optimizer.step()

    part = max(1, steps // ROUNDS)
    for number in range(min(part, 10)):
        step(number)
    numbers = iter(range(part * ROUNDS))
    rounds = [
        once(lambda: [step(next(numbers)) for _ in range(part)]) / part for _ in range(ROUNDS)
    ]
    return {
        "seconds": STEPS * statistics.median(rounds),
        "rounds_ms_a_step": [1e3 * seconds for seconds in rounds],
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
