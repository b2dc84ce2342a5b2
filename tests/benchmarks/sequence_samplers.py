"""The samplers of bench_sequences in turns: on a product law's model that learns here, and on a
profile's trained cells; their times, passes, positions and validity."""

import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import nn

from stages import params, seeds
from stages.params.orders import OrderEvaluation
from stages.scores.shell import cells_of
from stages.sequences.evaluation import passes, samples
from stages.sequences.evaluation.checkpoint import load
from stages.sequences.evaluation.data import EvaluationData, Settings
from tests.benchmarks import clock
from tests.benchmarks.sequence_networks import ARM, made, step

# steps; of one step: sequential decoding by the windows' attention, no contender for a goal but
# told beside it
WINDOWS = (1, 2, 16, 100)
SAMPLERS = ("burst_5", "exact", *(f"window_{size}" for size in WINDOWS))  # names of passes.py
SEQUENTIAL, ALIKE = "own", "window_1"
SHARE, SIZE = 0.1, "17k"  # of the product law, and of the model that learns it
ROOT = Path()  # where reports/ and data/ lie


@dataclass(frozen=True)
class Task:
    """A model that answers in any order, what its samples are judged by, the test sequences and
    how many tokens (N,) of each are given."""

    name: str
    cell: str
    model: nn.Module
    data: EvaluationData
    numbers: np.ndarray
    known: np.ndarray


@dataclass
class Draws:
    """A sampler that goes through the prompts, `count` at a call, in batches of `batch`; keeps
    what it drew."""

    task: Task
    sampler: passes.Sampler
    batch: int
    count: int
    generator: torch.Generator
    found: list[tuple[np.ndarray, passes.Drawn]] = field(default_factory=list)

    def __call__(self) -> None:
        task = self.task
        rows = (len(self.found) * self.count + np.arange(self.count)) % len(self.task.numbers)
        drawn = passes.drawn(
            self.sampler,
            task.data.tokens[task.numbers[rows]],
            task.known[rows],
            task.data.meta["vocabulary"],
            self.batch,
            self.generator,
        )
        self.found.append((rows, drawn))

    def mean(self, name: str) -> float:
        """Passes or positions of a sequence."""
        return float(np.concatenate([getattr(drawn, name) for _, drawn in self.found]).mean())


def product(
    models: dict[str, params.Model], length: int, steps: int, where: torch.device
) -> tuple[Task, dict]:
    """A model that has learnt the product law for some seconds, and what that took."""
    count = 32
    generator = seeds.torch_stream(0, "bench", "orders", "product", device=str(where))
    model = made(models, SIZE, 2, length).to(where)
    one = step(
        model,
        ARM,
        lambda: (torch.rand(count, length, generator=generator, device=where) < SHARE).long(),
        generator,
    )
    start, nats = time.perf_counter(), [one() for _ in range(steps)]
    told = {
        "steps": steps,
        "seconds": time.perf_counter() - start,
        "nats": statistics.fmean(nats[-len(nats) // 10 :]),
        "entropy": -SHARE * float(np.log(SHARE)) - (1 - SHARE) * float(np.log(1 - SHARE)),
    }
    meta = {
        "kind": "product",
        "vocabulary": 2,
        "length": length,
        "prompt": 0,
        "law": {"share": SHARE, "length": length},
    }
    data = EvaluationData(
        np.zeros((count, length), np.int64),
        np.full(count, 2),
        np.arange(count),
        meta,
        settings(where),
    )
    return Task(
        "product",
        f"sigma_gpt-{ARM}-{SIZE}",
        model.eval(),
        data,
        np.arange(count),
        np.zeros(count, np.int64),
    ), told


def settings(where: torch.device) -> Settings:
    """What judges want to know."""
    return Settings(OrderEvaluation(samples=1), 0, 1, str(where))


def trained(profile: str, dataset: str, where: torch.device) -> Task | dict:
    """The first trained cell of a data set that answers in any order; or why there is none to
    time."""
    runs = ROOT / "reports/any_order" / profile / "runs" / dataset
    prepared = ROOT / "data" / profile / "prepared" / dataset
    if not (prepared / "sequences.json").is_file():
        return {"task": dataset, "skipped": f"there is no {prepared}; `make repro` makes it"}
    for run in cells_of(runs):
        model, meta = load(run)
        if meta["order"] not in passes.ANY or not model.ordered:
            continue
        data = EvaluationData.open(prepared, settings(where))
        if any(meta[key] != data.meta[key] for key in ("vocabulary", "length")):
            return {
                "task": dataset,
                "skipped": f"{run} was trained on other sequences; `make repro` trains it again",
            }
        numbers = data.split("test")
        return Task(
            dataset,
            run.name,
            model.to(where),
            data,
            numbers,
            next(iter(data.prompts(numbers).values())),
        )
    return {
        "task": dataset,
        "skipped": f"no cell that answers in any order in {runs}; `make repro` trains one",
    }


def sampling(
    task: Task, batches: tuple[tuple[int, int], ...], rounds: int
) -> tuple[list[dict], list[dict]]:
    """Rows of times by batch and sampler, and of validity by sampler, of all that was drawn;
    `batches`: batch -> sequences that a sampler makes in a round."""
    meant = passes.samplers(task.model, ARM, (5,), ()) | passes.windows(task.model, ARM, WINDOWS)
    rows, pooled = [], {name: [] for name in (SEQUENTIAL, *SAMPLERS)}
    for batch, count in batches:
        draws = {
            name: Draws(task, meant[name], batch, count, stream(task, name)) for name in pooled
        }
        race = clock.race(
            {name: clock.Contender(one, count) for name, one in draws.items()}, rounds
        )
        for name, one in draws.items():
            pooled[name] += one.found
            costs = {
                f"{prefix}{key}": source.mean(key)
                for key in ("passes", "positions")
                for prefix, source in (("", one), ("sequential_", draws[SEQUENTIAL]))
            }
            if name != SEQUENTIAL:
                rows.append(
                    {
                        "task": task.name,
                        "cell": task.cell,
                        "tokens": task.data.meta["length"],
                        "batch": batch,
                        "sampler": name,
                        "ms": race.median(name),
                        "sequential_ms": race.median(SEQUENTIAL),
                        **race.ratios(SEQUENTIAL, name),
                        **costs,
                        "others_cores": statistics.median(race.others),
                    }
                )
    return rows, [
        {"task": task.name, "sampler": name} | validity(task, found)
        for name, found in pooled.items()
    ]


def stream(task: Task, name: str) -> torch.Generator:
    """A sampler's own random numbers."""
    return seeds.torch_stream(0, "bench", "orders", name, device=task.data.settings.device)


def validity(task: Task, found: list[tuple[np.ndarray, passes.Drawn]]) -> dict:
    """What the kind's samples are judged by first: metric, value, low, high, n, unit."""
    rows = np.concatenate([rows for rows, _ in found])
    tokens = np.concatenate([drawn.tokens for _, drawn in found])
    judged = samples.judged(task.data, task.numbers[rows], task.known[rows], tokens)
    name = next(name for name in passes.VALID if name in judged)
    return {
        "metric": name,
        **{key: judged[name][key] for key in ("value", "low", "high", "n", "unit")},
    }
