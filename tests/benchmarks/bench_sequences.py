"""`python -m tests.benchmarks.bench_sequences`: what sequences in any order cost (thesis 4.3.8,
D.3), as ratios in one run.

Four questions, contenders in turn (clock.py). Keys and values kept: sequential decoding of
512 tokens against the same without them. Bursts: Algorithm 3 with 5 orders and the exact samplers
(passes.py) against cached sequential decoding, of a product law's model that learns for seconds
here and of a profile's trained cells; with passes, positions and validity. Goals are of a task's
fastest one.
Training: steps in random order against plain causal transformers, one of torch's
nn.TransformerEncoder, one of our widths through torch's attention. The shuffle: the same steps from
left to right. A training step = orders, forward, cross-entropy, backward, fused Adam.
Shapes: B sequences, T tokens, V vocabulary, W width, H heads. One thread; on the CPU, unless
TRADEWIND_DEVICE names another device.
"""

import argparse
import datetime
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm import tqdm

from stages import batches, files, params, seeds
from stages.errors import InputError, reported
from stages.sequences import permutations
from stages.sequences.sampling.sequential import sequential
from tests.benchmarks import clock, scaling
from tests.benchmarks.sequence_networks import YARDSTICKS, counted, made, step
from tests.benchmarks.sequence_samplers import ALIKE, SEQUENTIAL, product, sampling, trained
from tests.benchmarks.sequence_tables import as_text

CACHED, SINGLE, BATCHED, MAZES, TRAINED, SHUFFLE = 5.0, 2.0, 1.0, 4.0, 0.9, 1.05  # least; last most
SIZES = ("17k", "4m")  # of sigma_gpt
TASKS = ("mazes", "permutation", "climbs")  # whose trained cells are timed, where there are any


@dataclass(frozen=True)
class Plan:
    """How much is measured: tokens and rounds of each part; `draws`: batch -> sequences that a
    sampler makes in a round."""

    cached: int = 512
    decoding: tuple[tuple[str, int], ...] = (("17k", 1), ("17k", 25), ("4m", 1))  # size and batch
    product: int = 100
    steps: int = 300  # of learning the product law
    draws: tuple[tuple[int, int], ...] = ((1, 8), (25, 25))
    batch: tuple[int, int] = (25, 100)  # B and T of a training step
    rounds: int = 9
    slow_rounds: int = 2  # of decoding but the first, where a round takes up to half a minute
    slow_steps: int = 5  # rounds of training steps of the greater size


QUICK = Plan(32, (("17k", 1), ("4m", 2)), 20, 30, ((1, 2), (4, 4)), (2, 16), 2, 1, 2)


def cache(
    models: dict[str, params.Model], size: str, batch: int, plan: Plan, where: torch.device
) -> dict:
    """Sequential decoding with the cache and without it, `batch` sequences in random orders; ms
    of a sequence."""
    model = made(models, size, 2, plan.cached).to(where).eval()
    generator = seeds.torch_stream(0, "bench", "orders", "cache", device=str(where))
    order = permutations.random(batch, plan.cached, generator)

    def decode(cached: bool) -> Callable[[], object]:
        return lambda: sequential(model, order, torch.zeros_like(order), generator, cache=cached)

    race = clock.race(
        {str(cached): clock.Contender(decode(cached), batch) for cached in (True, False)},
        plan.rounds if (size, batch) == plan.decoding[0] else plan.slow_rounds,
    )
    return {
        "size": size,
        "parameters": counted(model),
        "tokens": plan.cached,
        "batch": batch,
        "ms": race.median("True"),
        "uncached_ms": race.median("False"),
        **race.ratios("False", "True"),
        "others_cores": statistics.median(race.others),
    }


def training(
    models: dict[str, params.Model], size: str, plan: Plan, where: torch.device
) -> list[dict]:
    """Tokens a second of training steps against each yardstick's, and last what random orders
    cost against left to right."""
    count, length = plan.batch
    generator = seeds.torch_stream(0, "bench", "orders", "training", device=str(where))
    tokens = torch.randint(2, (count, length), generator=generator, device=where)
    networks = {
        name: made(models, size, 2, length, name if name in YARDSTICKS else None)
        for name in ("random", "left_to_right", *YARDSTICKS)
    }
    calls = {
        name: step(model.to(where), None if name in YARDSTICKS else name, lambda: tokens, generator)
        for name, model in networks.items()
    }
    race = clock.race(
        {name: scaling.repeated(call) for name, call in calls.items()},
        plan.rounds if size == SIZES[0] else plan.slow_steps,
    )
    tokens_s = {name: 1e3 * count * length / race.median(name) for name in networks}
    rows = [{"against": name, **race.ratios(name, "random")} for name in YARDSTICKS]
    rows.append({"against": "left_to_right", **race.ratios("random", "left_to_right")})
    return [
        {
            "size": size,
            "parameters": counted(networks["random"]),
            "against_parameters": counted(networks[row["against"]]),
            "batch": count,
            "tokens": length,
            "tokens_s": tokens_s["random"],
            "against_tokens_s": tokens_s[row["against"]],
            "others_cores": statistics.median(race.others),
        }
        | row
        for row in rows
    ]


def measure_all(
    models: dict[str, params.Model], profile: str, plan: Plan, where: torch.device
) -> dict:
    """Rows of all four parts."""
    found = {
        "cache": [],
        "sampling": [],
        "validity": [],
        "training": [],
        "skipped": [],
        "learning": None,
    }
    with tqdm(
        total=len(plan.decoding) + 1 + len(TASKS) + len(SIZES), desc="bench", disable=None
    ) as bar:
        for size, batch in plan.decoding:
            found["cache"].append(cache(models, size, batch, plan, where))
            bar.update()
        for name in ("product", *TASKS):
            task, told = (
                product(models, plan.product, plan.steps, where)
                if name == "product"
                else (trained(profile, name, where), None)
            )
            found["learning"] = told or found["learning"]
            if isinstance(task, dict):
                found["skipped"].append(task)
            else:
                rows, valid = sampling(task, plan.draws, plan.rounds)
                found["sampling"] += rows
                found["validity"] += valid
            bar.update()
        for size in SIZES:
            found["training"] += training(models, size, plan, where)
            bar.update()
    return found


def equal(found: dict, task: str, sampler: str) -> bool:
    """Whether the interval of a sampler's validity overlaps that of sequential decoding."""
    one, other = (
        next(row for row in found["validity"] if (row["task"], row["sampler"]) == (task, name))
        for name in (sampler, SEQUENTIAL)
    )
    return (
        one["low"] is not None
        and other["low"] is not None
        and one["low"] <= other["high"]
        and other["low"] <= one["high"]
    )


def work(row: dict) -> str:
    """What a sampler computes for a sequence, against sequential decoding."""
    return (
        f"; {row['positions']:.0f} positions in {row['ms']:.2f} ms, one by one "
        f"{row['sequential_positions']:.0f} in {row['sequential_ms']:.2f} ms: "
        f"{row['positions'] / row['sequential_positions']:.1f} x the work"
    )


def goal(
    name: str, value: float, bar: float, least: bool = True, fair: bool = True, work: str = ""
) -> dict:
    """A goal and whether it is met: `value` at least (or at most) `bar`, and fairly."""
    return {
        "goal": name,
        "value": value,
        "bar": bar,
        "at": "least" if least else "most",
        "work": work,
        "met": fair and (value >= bar if least else value <= bar),
    }


def goals(found: dict) -> list[dict]:
    """Every goal about which something was measured; `met` also asks for equal validity where
    the goal says so."""
    rows = [
        goal(
            f"uncached / cached decoding of {row['tokens']} tokens, {row['size']}, batch "
            f"{row['batch']}",
            row["ratio"],
            CACHED,
        )
        for row in found["cache"]
    ]
    for task, batch in dict.fromkeys((row["task"], row["batch"]) for row in found["sampling"]):
        rows += sampling_goals(found, task, batch)
    for row in found["training"]:
        shuffle = row["against"] == "left_to_right"
        name = (
            "step in random order / left to right"
            if shuffle
            else f"training tokens/s / {row['against']}'s"
        )
        bar = SHUFFLE if shuffle else TRAINED
        rows.append(goal(f"{name}, {row['size']}", row["ratio"], bar, not shuffle))
    return rows


def sampling_goals(found: dict, task: str, batch: int) -> list[dict]:
    """Goals of a task's fastest sampler."""
    row = max(
        (
            row
            for row in found["sampling"]
            if (row["task"], row["batch"]) == (task, batch) and row["sampler"] != ALIKE
        ),
        key=lambda row: row["ratio"],
    )
    name, single = f"sequential / {row['sampler']}, {task}, batch {batch}", batch == 1
    rows = [goal(name, row["ratio"], SINGLE if single else BATCHED, work=work(row))]
    if task == "mazes" and single:
        fair = equal(found, task, row["sampler"])
        told = f"{name}, at equal validity ({'it is' if fair else 'it is NOT'})"
        rows.append(goal(told, row["ratio"], MAZES, fair=fair))
    return rows


def run(where: torch.device, profile: str, quick: bool) -> dict:
    """All that is printed, as one JSON object: where it was measured, rows, goals. InputError
    for an unknown profile."""
    parameters = params.load()
    if profile not in parameters.profiles:
        raise InputError(
            "unknown profile",
            where="--profile",
            found=repr(profile),
            expected=params.nearest(profile, parameters.profiles).lstrip("; "),
        )
    start, before = time.monotonic(), clock.busy()
    found = measure_all(parameters.models, profile, QUICK if quick else Plan(), where)
    others = clock.others(before)
    return {
        "date": datetime.date.today().isoformat(),
        "machine": clock.machine(),
        "device": str(where),
        "quick": quick,
        "profile": profile,
        "seconds": round(time.monotonic() - start, 1),
        "others_cores": round(others, 3),
        "quiet": others <= clock.OTHERS,
        **found,
        "goals": goals(found),
    }


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command: 0 also where a goal is missed, since times are for reading."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.bench_sequences", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument(
        "--quick", action="store_true", help="short sequences, to see that it works: seconds"
    )
    parser.add_argument(
        "--profile",
        default="mini",
        help="whose trained cells of any_order are timed, where there are any (default mini)",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        default=Path(".work/bench/sequences.json"),
        help="where to write it (default %(default)s)",
    )
    options = parser.parse_args(argv)
    return reported(lambda: measure(options))


def measure(options: argparse.Namespace) -> None:
    """Measure what the command asks for, print it and write it."""
    torch.set_num_threads(1)
    content = run(
        batches.device() if os.environ.get("TRADEWIND_DEVICE") else torch.device("cpu"),
        options.profile,
        options.quick,
    )
    print(as_text(content))
    files.write_json(options.json, content)


if __name__ == "__main__":
    sys.exit(main())
