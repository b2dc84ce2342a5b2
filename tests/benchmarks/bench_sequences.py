"""`python -m tests.benchmarks.bench_sequences`: what sequences in any order cost (thesis 4.3.8,
D.3), as ratios in one run.

Four questions, contenders in turn (search/clock.py). Keys and values kept: sequential decoding of
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
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from stages import batches, files, params, seeds
from stages.errors import InputError, reported
from stages.neighbours.experiment import clock
from stages.params.orders import OrderEvaluation
from stages.sequences import evaluate, permutations
from stages.sequences.evaluation import passes
from stages.sequences.models import build
from stages.sequences.sampling.sequential import sequential
from tests.benchmarks import scaling

CACHED, SINGLE, BATCHED, MAZES, TRAINED, SHUFFLE = (
    5.0,
    2.0,
    1.0,
    4.0,
    0.9,
    1.05,
)  # at least; the last at most
SIZES, ARM = ("17k", "4m"), "random"  # of sigma_gpt
TASKS = ("mazes", "permutation", "climbs")  # whose trained cells are timed, where there are any
# steps; of one step: sequential decoding by the windows' attention, no contender for a goal but
# told beside it
WINDOWS = (1, 2, 16, 100)
SAMPLERS, SEQUENTIAL, ALIKE = (
    ("burst_5", "exact", *(f"window_{size}" for size in WINDOWS)),
    "own",
    "window_1",
)  # names of passes.py
SHARE, RATE = 0.1, 3e-3  # of the product law; learning rate
ROOT = Path()  # where reports/ and data/ lie


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


class PlainBlock(nn.Module):
    """Attention and a network of two layers, each after a norm and added to what came in;
    parameters as in our blocks."""

    def __init__(self, width: int, keys: int, hidden: int, heads: int, dropout: float):
        super().__init__()
        self.heads, self.split = heads, [heads * keys, heads * keys, width]
        self.attention_norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inward, self.outward = (
            nn.Linear(width, sum(self.split), bias=False),
            nn.Linear(width, width, bias=False),
        )
        self.widen, self.narrow, self.dropout = (
            nn.Linear(width, hidden),
            nn.Linear(hidden, width),
            nn.Dropout(dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, W) -> (B, T, W)."""
        parts = [
            part.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for part in self.inward(self.attention_norm(x)).split(self.split, 2)
        ]
        keys, values = parts[1].shape[3], parts[2].shape[3]
        query, key, value = (
            functional.pad(part, (0, max(keys, values) - part.shape[3])) for part in parts
        )  # fused: one width
        mixed = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=keys**-0.5
        )[..., :values]
        x = x + self.dropout(self.outward(mixed.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.narrow(self.widen(self.feed_norm(x)).relu()))


class Plain(nn.Module):
    """A plain causal transformer from left to right: of PlainBlocks, or (`encoder`) torch's own
    nn.TransformerEncoder, whose heads have width/heads columns for queries, keys and values."""

    def __init__(
        self,
        encoder: bool,
        vocabulary: int,
        length: int,
        width: int,
        keys: int,
        hidden: int,
        heads: int,
        blocks: int,
        dropout: float,
    ):
        super().__init__()
        self.embedding, self.positions = (
            nn.Embedding(vocabulary, width),
            nn.Embedding(length, width),
        )
        if encoder:
            layer = nn.TransformerEncoderLayer(
                width, heads, hidden, dropout, batch_first=True, norm_first=True
            )
            layer.self_attn.dropout = (
                0.0  # dropout of weights would forbid the fused kernels, which are the yardstick
            )
            self.blocks = nn.TransformerEncoder(layer, blocks, enable_nested_tensor=False)
        else:
            self.blocks = nn.Sequential(
                *(PlainBlock(width, keys, hidden, heads, dropout) for _ in range(blocks))
            )
        self.register_buffer(
            "mask",
            nn.Transformer.generate_square_subsequent_mask(length) if encoder else None,
            persistent=False,
        )
        self.readout = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) -> (B, T, V): logits[:, i] for the token i given those before it."""
        x = self.embedding(functional.pad(tokens[:, :-1], (1, 0))) + self.positions.weight
        causal = (
            {} if self.mask is None else {"mask": self.mask, "is_causal": True}
        )  # torch then hands its kernels the word, no mask
        return self.readout(self.blocks(x, **causal))


YARDSTICKS = {
    "torch encoder": True,
    "torch attention": False,
}  # name -> whether of torch's own encoder


def made(
    models: dict[str, params.Model],
    size: str,
    vocabulary: int,
    length: int,
    yardstick: str | None = None,
) -> nn.Module:
    """A new sigma-GPT of a size of params.yaml, or a yardstick of its widths, with the dropout
    of the lab's arm."""
    seeds.everything(0)
    arm, sizes = models["sigma_gpt"].arms[ARM], models["sigma_gpt"].sizes[size]
    if yardstick:
        return Plain(YARDSTICKS[yardstick], vocabulary, length, **sizes, dropout=arm["dropout"])
    return build(
        "sigma_gpt",
        {key: value for key, value in arm.items() if key not in ("order", "curriculum")},
        sizes,
        vocabulary,
        length,
    )


counted = lambda model: sum(p.numel() for p in model.parameters())  # noqa: E731


def step(
    model: nn.Module,
    kind: str | None,
    batch: Callable[[], Tensor],
    generator: torch.Generator,
    rate: float = RATE,
) -> scaling.Call:
    """A training step on `batch()` (B, T): of sigma-GPT in orders of a kind, of a yardstick
    (None) as it is. Returns nats a token."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    model.train()

    def call() -> float:
        tokens = asked = batch()
        if kind is None:
            logits = model(tokens)
        else:
            order = permutations.draw(kind, *tokens.shape, generator)
            logits, asked = model(tokens, order), tokens.gather(1, order)
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(logits.transpose(1, 2), asked)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return call


def ratios(times: clock.Times, upper: str, lower: str) -> dict[str, float]:
    """Median of the rounds' ratios, and the least and the greatest."""
    found = [a / b for a, b in zip(times.rounds_ms[upper], times.rounds_ms[lower], strict=True)]
    return {
        "ratio": statistics.median(found),
        "low": min(found),
        "high": max(found),
        "rounds": len(found),
    }


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
        **ratios(race, "False", "True"),
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
    speed = lambda name: 1e3 * count * length / race.median(name)  # noqa: E731
    rows = [{"against": name, **ratios(race, name, "random")} for name in YARDSTICKS]
    rows.append({"against": "left_to_right", **ratios(race, "random", "left_to_right")})
    return [
        {
            "size": size,
            "parameters": counted(networks["random"]),
            "against_parameters": counted(networks[row["against"]]),
            "batch": count,
            "tokens": length,
            "tokens_s": speed("random"),
            "against_tokens_s": speed(row["against"]),
            "others_cores": statistics.median(race.others),
        }
        | row
        for row in rows
    ]


@dataclass(frozen=True)
class Task:
    """A model that answers in any order, what its samples are judged by, the test sequences and
    how many tokens (N,) of each are given."""

    name: str
    cell: str
    model: nn.Module
    held: evaluate.Held
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
        task, rows = (
            self.task,
            (len(self.found) * self.count + np.arange(self.count)) % len(self.task.numbers),
        )
        drawn = passes.drawn(
            self.sampler,
            task.held.tokens[task.numbers[rows]],
            task.known[rows],
            task.held.meta["vocabulary"],
            self.batch,
            self.generator,
        )
        self.found.append((rows, drawn))

    def mean(self, name: str) -> float:
        """Passes or positions of a sequence."""
        return float(np.concatenate([getattr(drawn, name) for _, drawn in self.found]).mean())


def product(models: dict[str, params.Model], plan: Plan, where: torch.device) -> tuple[Task, dict]:
    """A model that has learnt the product law for some seconds, and what that took."""
    length, count = plan.product, 32
    generator = seeds.torch_stream(0, "bench", "orders", "product", device=str(where))
    model = made(models, SIZES[0], 2, length).to(where)
    one = step(
        model,
        ARM,
        lambda: (torch.rand(count, length, generator=generator, device=where) < SHARE).long(),
        generator,
    )
    start, nats = time.perf_counter(), [one() for _ in range(plan.steps)]
    told = {
        "steps": plan.steps,
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
    held = evaluate.Held(
        np.zeros((count, length), np.int64),
        np.full(count, 2),
        np.arange(count),
        meta,
        settings(where),
    )
    return Task(
        "product",
        f"sigma_gpt-{ARM}-{SIZES[0]}",
        model.eval(),
        held,
        np.arange(count),
        np.zeros(count, np.int64),
    ), told


def settings(where: torch.device) -> evaluate.Settings:
    """What judges want to know."""
    return evaluate.Settings(OrderEvaluation(samples=1), 0, 1, str(where))


def trained(profile: str, dataset: str, where: torch.device) -> Task | dict:
    """The first trained cell of a data set that answers in any order; or why there is none to
    time."""
    runs, prepared = (
        ROOT / "reports/any_order" / profile / "runs" / dataset,
        ROOT / "data" / profile / "prepared" / dataset,
    )
    if not (prepared / "sequences.json").is_file():
        return {"task": dataset, "skipped": f"there is no {prepared}; `make repro` makes it"}
    for run in evaluate.cells_of(runs):
        model, meta = evaluate.load(run)
        if meta["order"] not in passes.ANY or hasattr(model, "bound"):
            continue
        held = evaluate.Held.open(prepared, settings(where))
        if any(meta[key] != held.meta[key] for key in ("vocabulary", "length")):
            return {
                "task": dataset,
                "skipped": f"{run} was trained on other sequences; `make repro` trains it again",
            }
        numbers = held.split("test")
        return Task(
            dataset,
            run.name,
            model.to(where),
            held,
            numbers,
            next(iter(held.prompts(numbers).values())),
        )
    return {
        "task": dataset,
        "skipped": f"no cell that answers in any order in {runs}; `make repro` trains one",
    }


def sampling(task: Task, plan: Plan) -> tuple[list[dict], list[dict]]:
    """Rows of times by batch and sampler, and of validity by sampler, of all that was drawn."""
    meant = passes.samplers(task.model, ARM, (5,), ()) | passes.windows(task.model, ARM, WINDOWS)
    rows, pooled = [], {name: [] for name in (SEQUENTIAL, *SAMPLERS)}
    for batch, count in plan.draws:
        stream = lambda name: seeds.torch_stream(
            0, "bench", "orders", name, device=task.held.settings.device
        )  # noqa: E731
        draws = {name: Draws(task, meant[name], batch, count, stream(name)) for name in pooled}
        race = clock.race(
            {name: clock.Contender(one, count) for name, one in draws.items()}, plan.rounds
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
                        "tokens": task.held.meta["length"],
                        "batch": batch,
                        "sampler": name,
                        "ms": race.median(name),
                        "sequential_ms": race.median(SEQUENTIAL),
                        **ratios(race, SEQUENTIAL, name),
                        **costs,
                        "others_cores": statistics.median(race.others),
                    }
                )
    return rows, [
        {"task": task.name, "sampler": name} | validity(task, found)
        for name, found in pooled.items()
    ]


def validity(task: Task, found: list[tuple[np.ndarray, passes.Drawn]]) -> dict:
    """What the kind's samples are judged by first: metric, value, low, high, n, unit."""
    rows, samples = (
        np.concatenate([rows for rows, _ in found]),
        np.concatenate([drawn.tokens for _, drawn in found]),
    )
    judged = evaluate.judged(task.held, task.numbers[rows], task.known[rows], samples)
    name = next(name for name in passes.VALID if name in judged)
    return {
        "metric": name,
        **{key: judged[name][key] for key in ("value", "low", "high", "n", "unit")},
    }


def measured(
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
                product(models, plan, where)
                if name == "product"
                else (trained(profile, name, where), None)
            )
            found["learning"] = told or found["learning"]
            if isinstance(task, dict):
                found["skipped"].append(task)
            else:
                rows, valid = sampling(task, plan)
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


def goals(found: dict) -> list[dict]:
    """Every goal about which something was measured; `met` also asks for equal validity where
    the goal says so."""

    def goal(
        name: str, value: float, bar: float, least: bool = True, fair: bool = True, work: str = ""
    ) -> dict:
        return {
            "goal": name,
            "value": value,
            "bar": bar,
            "at": "least" if least else "most",
            "work": work,
            "met": fair and (value >= bar if least else value <= bar),
        }

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
        row = max(
            (
                row
                for row in found["sampling"]
                if (row["task"], row["batch"]) == (task, batch) and row["sampler"] != ALIKE
            ),
            key=lambda row: row["ratio"],
        )
        name, single, fair = (
            f"sequential / {row['sampler']}, {task}, batch {batch}",
            batch == 1,
            equal(found, task, row["sampler"]),
        )
        rows.append(goal(name, row["ratio"], SINGLE if single else BATCHED, work=work(row)))
        if task == "mazes" and single:
            rows.append(
                goal(
                    f"{name}, at equal validity ({'it is' if fair else 'it is NOT'})",
                    row["ratio"],
                    MAZES,
                    fair=fair,
                )
            )
    for row in found["training"]:
        shuffle = row["against"] == "left_to_right"
        name = (
            "step in random order / left to right"
            if shuffle
            else f"training tokens/s / {row['against']}'s"
        )
        rows.append(
            goal(
                f"{name}, {row['size']}", row["ratio"], SHUFFLE if shuffle else TRAINED, not shuffle
            )
        )
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
    found, others = (
        measured(parameters.models, profile, QUICK if quick else Plan(), where),
        clock.others(before),
    )
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


def spread(row: dict) -> str:
    """A ratio with what it lies between."""
    return f"{row['ratio']:.2f} ({row['low']:.2f}-{row['high']:.2f})"


def shown(content: dict) -> str:
    """The tables and the goals, as text."""
    machine, learning = content["machine"], content["learning"]
    device = machine["gpu"] if content["device"].startswith("cuda") else machine["cpu"]
    lines = [
        f"{device}, torch {machine['versions']['torch']}, {machine['threads']} thread(s); "
        f"others used {content['others_cores']:.2f} cores; {content['seconds']:.0f} s"
    ]
    lines += ["WARNING: other processes were busy: run it again on a quiet machine"] * (
        not content["quiet"]
    )
    lines += ["WARNING: a quick run: its sequences are too short to judge the goals by"] * content[
        "quick"
    ]
    lines.append(
        f"{'decoding':10} {'parameters':>10} {'tokens':>6} {'batch':>5} {'cached ms':>10} "
        f"{'uncached':>11} {'(min-max)':>20}"
    )
    lines += [
        f"{row['size']:10} {row['parameters']:10,} {row['tokens']:6} {row['batch']:5} "
        f"{row['ms']:10.1f} {row['uncached_ms']:11.1f} {spread(row):>20}"
        for row in content["cache"]
    ]
    lines.append(
        "\nSamplers against cached sequential decoding, a sequence; product: learnt here in "
        f"{learning['steps']} steps, {learning['seconds']:.1f} s, to {learning['nats']:.3f} nats a "
        f"token (entropy {learning['entropy']:.3f})"
    )
    lines.append(
        f"{'task':12} {'batch':>5} {'sampler':12} {'ms':>8} {'seq. ms':>8} {'ratio (min-max)':>20} "
        f"{'passes':>7} {'(seq.)':>7} {'positions':>9} {'(seq.)':>7}"
    )
    lines += [
        f"{row['task']:12} {row['batch']:5} {row['sampler']:12} {row['ms']:8.2f} "
        f"{row['sequential_ms']:8.2f} {spread(row):>20} {row['passes']:7.2f} "
        f"{row['sequential_passes']:7.2f} {row['positions']:9.1f} "
        f"{row['sequential_positions']:7.1f}"
        for row in content["sampling"]
    ]
    lines += [f"{row['task']:12} left out: {row['skipped']}" for row in content["skipped"]]
    lines.append(
        f"\n{'task':12} {'sampler':12} {'judged by':10} {'value (90 %)':>26} {'unit':6} {'n':>6}"
    )
    for row in content["validity"]:
        known = row["value"] is not None and row["low"] is not None
        within = f"{row['value']:.4g} ({row['low']:.4g}-{row['high']:.4g})" if known else "unknown"
        name = "sequential" if row["sampler"] == SEQUENTIAL else row["sampler"]
        lines.append(
            f"{row['task']:12} {name:12} {row['metric']:10} {within:>26} {row['unit']:6} "
            f"{row['n']:6}"
        )
    lines.append(
        f"\n{'training':10} {'against':16} {'parameters':>21} {'tokens/s':>10} {'against':>10} "
        f"{'ratio (min-max)':>20}"
    )
    lines += [
        f"{row['size']:10} {row['against']:16} {row['parameters']:10,} "
        f"{row['against_parameters']:10,} {row['tokens_s']:10,.0f} "
        f"{row['against_tokens_s']:10,.0f} {spread(row):>20}"
        for row in content["training"]
    ]
    return "\n".join(
        [
            *lines,
            "",
            *(
                f"{'met ' if row['met'] else 'MISS'}  {row['goal']}: {row['value']:.3g} (at "
                f"{row['at']} {row['bar']:g}{row['work']})"
                for row in content["goals"]
            ),
        ]
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command: 0 also where a goal is missed, since times are for reading."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.bench_sequences", description=__doc__.splitlines()[0]
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
        default=Path(".work/bench/orders.json"),
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
    print(shown(content))
    files.write_json(options.json, content)


if __name__ == "__main__":
    sys.exit(main())
