"""What a field model costs: ms and peak memory of a training step, beside torch's own
nn.TransformerEncoder (thesis figure C.4).

Step = zero_grad, forward, mean squared error, backward, clip 4, Adam 3e-4 (ours fused, as in our
trainer; the yardstick's as torch makes it); evaluation = forward in eval mode without gradients
(where torch takes its own fast path). Contenders take turns in one process; a ratio is the median
of the ratios of the rounds (clock.py). Peak memory is counted, not sampled: the most bytes
that torch's allocator had handed out at once during the first call, above what lay there before it
(model and data). So it holds activations, gradients and optimizer state, is the same in every run,
and leaves out code, and what a library keeps for itself.
Shapes: B sets, C context, T targets, X position axes, I and O values. Times in ms, memory in MiB
(2^20 bytes).
"""

import itertools
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from stages import seeds
from stages.batches import Batch, Prediction
from stages.errors import InputError
from stages.fields.models import build
from stages.layers.attention import Attention
from stages.layers.mlp import mlp
from stages.params import Model
from tests.benchmarks import clock
from tests.benchmarks.bench_msa import Yardstick

MIB = 2.0**20
SHORTEST_S = (
    0.03  # a shorter call is repeated within a round: neither clock nor load can be read so finely
)
ROUND_S = 2.0  # what a contender may spend on further rounds at one context size
MOST_ROUNDS = 5
TARGETS = 256  # of a model in figure C.4
KERNELS = {
    "cpu": ("math", "flash"),
    "cuda": ("math", "efficient"),
}  # torch's kernels for float32, by device
BACKENDS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}
Call = Callable[[], object]


@dataclass(frozen=True)
class Setting:
    """Sets of one shape: B sets of C context points and T targets; X, I and O dimensions."""

    name: str
    sets: int
    context: int
    targets: int
    dims: tuple[int, int, int]

    def batch(self, device: torch.device) -> Batch:
        """Random points, all real."""
        draw = seeds.torch_stream(0, "bench", "fields", self.name)
        x, i, o = self.dims
        shapes = ((self.context, x), (self.context, i), (self.targets, x), (self.targets, o))
        context_x, context_y, target_x, target_y = (
            torch.randn(self.sets, *shape, generator=draw) for shape in shapes
        )
        context, target = (
            torch.ones(self.sets, count, dtype=torch.bool) for count in (self.context, self.targets)
        )
        return Batch(context_x, context_y, context, target_x, target, target_y).to(device)


class Framework(nn.Module):
    """The yardstick for any dimensions: traditional encoders and MSA's readout round torch's own
    encoder of MSA's shape."""

    def __init__(self, x_dim: int, i_dim: int, o_dim: int, width: int, heads: int, layers: int):
        super().__init__()
        self.inside = Yardstick(width, heads, layers)
        self.inside.context, self.inside.target = (
            mlp(x_dim + i_dim, width, width, width),
            mlp(x_dim, width, width, width),
        )
        self.inside.readout = mlp(width, width, width, o_dim)

    def forward(self, batch: Batch) -> Prediction:
        """Mean at every target, B T O."""
        return Prediction(self.inside(batch.context_x, batch.context_y, batch.target_x))


@dataclass(frozen=True)
class Contender:
    """A model of params.yaml, or with model "torch" the yardstick of an MSA's size."""

    model: str
    arm: str = "traditional"
    size: str = "20k"

    def made(self, models: dict[str, Model], setting: Setting) -> nn.Module:
        """The model, its weights drawn and its nodes placed. InputError where it does not fit
        the setting."""
        seeds.everything(0)
        if self.model == "torch":
            return Framework(*setting.dims, **models["msa"].sizes[self.size])
        model = build(
            self.model,
            models[self.model].arms[self.arm],
            models[self.model].sizes[self.size],
            *setting.dims,
        )
        if model.has_nodes:
            positions = setting.batch(torch.device("cpu")).context_x.flatten(0, 1)
            model.place_nodes(positions, seeds.torch_stream(0, "bench", "fields", "nodes"))
        return model


def works(model: nn.Module, batch: Batch, fused: bool = True) -> dict[str, Call]:
    """A training step and an evaluation of a model on a batch, ready to be called."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, **({"fused": True} if fused else {}))

    def step() -> None:
        model.train()
        optimizer.zero_grad()
        (model(batch).mean - batch.target_y).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 4.0)
        optimizer.step()

    def evaluation() -> None:
        model.eval()
        with torch.no_grad():
            model(batch)

    return {"step": step, "evaluation": evaluation}


def fresh(
    contender: Contender,
    models: dict[str, Model],
    setting: Setting,
    device: torch.device,
    work: str,
) -> tuple[Call, int]:
    """A work of a new model, never called yet, and how many parameters the model has."""
    model = contender.made(models, setting).to(device)
    return works(model, setting.batch(device), contender.model != "torch")[work], sum(
        p.numel() for p in model.parameters()
    )


def counted(call: Call, device: torch.device) -> tuple[float, float]:
    """Peak memory of one call in MiB above what lay there before, and its seconds: by the
    allocator's own events, or CUDA's own peak."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        seconds = clock.once(call)
        return (torch.cuda.max_memory_allocated() - before) / MIB, seconds
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # else it tells of every start and stop
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        seconds = clock.once(call)
    events = [
        event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"
    ]
    held = itertools.accumulate(
        (event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())), initial=0
    )
    return max(held) / MIB, seconds


def repeated(call: Call) -> clock.Contender:
    """The call as often as it takes to be a round."""
    times = max(1, math.ceil(SHORTEST_S / max(min(clock.once(call), clock.once(call)), 1e-6)))
    return clock.Contender(lambda: [call() for _ in range(times)], times)


def pair(
    contender: Contender,
    models: dict[str, Model],
    setting: Setting,
    device: torch.device,
    work: str,
    rounds: int,
) -> dict:
    """One contender and the yardstick, of its own size for MSA and else of 20k, called in turns;
    or why there is nothing to time."""
    size = contender.size if contender.model == "msa" else Contender.size
    row = {
        "setting": setting.name,
        "model": contender.model,
        "arm": contender.arm,
        "size": contender.size,
        "work": work,
    }
    if contender.model == "geofno" and setting.dims[0] != 2:
        return row | {"skipped": "its torus has two axes: it is for X = 2"}
    try:
        contender.made(models, setting)
    except InputError as error:
        return row | {"skipped": error.found or error.what}
    mib, calls = {}, {}
    for name, one in (("ours", contender), ("torch", Contender("torch", size=size))):
        calls[name], parameters = fresh(one, models, setting, device, work)
        mib[name] = counted(calls[name], device)[0]
        row |= {"parameters": parameters} if name == "ours" else {}
    times = clock.race({name: repeated(call) for name, call in calls.items()}, rounds)
    return row | {
        "ms": times.median("ours"),
        "torch_ms": times.median("torch"),
        **times.ratios("ours", "torch"),
        "mib": mib["ours"],
        "torch_mib": mib["torch"],
        "mib_ratio": mib["ours"] / mib["torch"],
        "others_cores": statistics.median(times.others),
    }


def kernel(name: str, width: int, heads: int, points: int, device: torch.device) -> Call:
    """Forward and backward of one layer of self-attention: torch's with one of its kernels, or
    with `name` "ours" our Attention."""
    seeds.everything(0)
    tokens = torch.randn(
        1, points, width, generator=seeds.torch_stream(0, "bench", "kernel", points)
    ).to(device)
    layer = (
        Attention(width, heads)
        if name == "ours"
        else nn.MultiheadAttention(width, heads, batch_first=True)
    ).to(device)

    def call() -> None:
        layer.zero_grad()
        with nullcontext() if name == "ours" else sdpa_kernel(BACKENDS[name]):
            read: Tensor = (
                layer(tokens, None, points)
                if name == "ours"
                else layer(tokens, tokens, tokens, need_weights=False)[0]
            )
            read.sum().backward()

    return call


def contenders(
    models: dict[str, Model], size: str, device: torch.device
) -> dict[str, Callable[[int], Call]]:
    """Figure C.4's contenders, name -> context size -> call: models on wind, one set and TARGETS
    targets, and single layers."""
    shape = models["msa"].sizes[size]

    def model(name: str) -> Callable[[int], Call]:
        one = Contender(name, size=size)
        return lambda points: fresh(
            one, models, Setting("context", 1, points, TARGETS, (3, 2, 2)), device, "step"
        )[0]

    layers = {
        f"layer {name}": lambda points, name=name: kernel(
            name, shape["width"], shape["heads"], points, device
        )
        for name in ("ours", *reversed(KERNELS[device.type]))
    }
    return {
        **{name: model(name) for name in ("hypermixer", "msa")},
        **layers,
        "torch": model("torch"),
    }


def ladder(
    made: dict[str, Callable[[int], Call]],
    points: tuple[int, ...],
    device: torch.device,
    most_mib: float,
    seconds: float,
) -> Iterator[list[dict]]:
    """Rows of each context size, smallest first. A call that by quadratic growth would need more
    than `most_mib`, or longer than what is left of `seconds`, is left out and says so; so is
    every larger one of its contender."""
    end, last = time.monotonic() + seconds, {}
    for count in points:
        rows, calls = [], {}
        for name, make in made.items():
            row = {"contender": name, "points": count}
            rows.append(row)
            before = last.get(name, {"points": count, "mib": 0.0, "ms": 0.0})
            reason = before.get("skipped") or too_much(
                before, count, most_mib, max(0.0, end - time.monotonic())
            )
            if reason:
                row |= {"skipped": reason}
            else:
                try:
                    call = make(count)
                    row["mib"], first = counted(call, device)
                    row["ms"], calls[name] = 1e3 * first, call
                except (
                    RuntimeError
                ) as error:  # no such kernel for these heads, or no memory on the GPU
                    row["skipped"] = str(error).splitlines()[0]
            last[name] = dict(row)
        in_turn({row["contender"]: row for row in rows if "skipped" not in row}, calls)
        yield rows


def in_turn(rows: dict[str, dict], calls: dict[str, Call]) -> None:
    """Further rounds, contenders in turn, of those whose first call was short; else that call, in
    which memory was counted, is the time.
    Then ratios: of layers to torch's own with the kernel that it takes by itself, of models to
    torch's encoder."""
    rounds = {
        name: int(min(MOST_ROUNDS, ROUND_S / max(row["ms"] / 1e3, 1e-6)))
        for name, row in rows.items()
    }
    taken: dict[str, list[float]] = {
        name: [] if rounds[name] else [row["ms"]] for name, row in rows.items()
    }
    for number in range(max(rounds.values(), default=0)):
        for name, call in calls.items():
            if number < rounds[name]:
                taken[name].append(1e3 * clock.once(call))
    for name, row in rows.items():
        row |= {"ms": statistics.median(taken[name]), "rounds_ms": taken[name]}
    own = next((name for name in rows if name in ("layer flash", "layer efficient")), None)
    for name, row in rows.items():
        yardstick = rows.get(own if name.startswith("layer") else "torch")
        if yardstick:
            row |= {
                "ratio": row["ms"] / yardstick["ms"],
                "mib_ratio": row["mib"] / yardstick["mib"],
            }


def too_much(before: dict, points: int, most_mib: float, seconds: float) -> str | None:
    """Why a call is left out, by quadratic growth from a smaller one; None where it fits."""
    larger = (points / before["points"]) ** 2
    if larger * before["mib"] > most_mib:
        return f"would need up to {larger * before['mib'] / 1024:.3g} GiB at {points:,} points"
    if larger * before["ms"] / 1e3 > seconds:
        return (
            f"would take up to {larger * before['ms'] / 1e3:.3g} s at {points:,} points, "
            f"{seconds:.3g} s were left"
        )
    return None


def exponent(points: list[int], values: list[float]) -> float:
    """Slope of log(value) against log(points) by least squares; at least two sizes."""
    return statistics.linear_regression(
        [math.log(n) for n in points], [math.log(v) for v in values]
    ).slope


def growth(rows: list[dict], above: int) -> list[dict]:
    """Exponents of time (low and high: least and greatest of the rounds' fits) and memory, where
    two sizes from `above` on are known."""
    fits = []
    for name in dict.fromkeys(row["contender"] for row in rows):
        mine = [
            row
            for row in rows
            if row["contender"] == name and row["points"] >= above and "skipped" not in row
        ]
        if len(mine) < 2:
            continue
        points = [row["points"] for row in mine]
        rounds = [
            exponent(points, list(times))
            for times in zip(*(row["rounds_ms"] for row in mine), strict=False)
        ]
        fits.append(
            {
                "contender": name,
                "points": points,
                "time": exponent(points, [row["ms"] for row in mine]),
                "low": min(rounds),
                "high": max(rounds),
                "memory": exponent(points, [row["mib"] for row in mine]),
            }
        )
    return fits
