"""`python -m tests.benchmarks.bench_forecasts [--quick]` (`make bench-dynamics`): what forecasting
of systems costs, as ratios in one run beside goals, met or missed.

Steps are forward, backward and Adam of 64 windows of 16, width 256, native arithmetic; the
yardstick is torch's fused nn.LSTM. Per unit of work: the ratio
over that of the parameters. The free run is beside a loop over its starts, of which a few are
timed. A reservoir's training has no yardstick but the clock: its goal is minutes on two cores.
"""

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from stages import seeds
from stages.dynamics.free_run import free_run
from stages.dynamics.models import build
from stages.dynamics.rivals.reservoir import Reservoirs
from tests.benchmarks.clock import Contender, race

WIDTH, BATCH, TIMES = 256, 64, 16
STARTS, STEPS, ALONE = 100, 1000, 2  # of a free run; starts that the loop is timed with
SMALL = {"width": 48, "output": "change"}


class Fused(nn.Module):
    """torch's own LSTM, with the output map of ours."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.outward = nn.Linear(WIDTH, WIDTH)

    def run(self, values: torch.Tensor):
        hidden, state = self.cell(values)
        return self.outward(hidden), state


def step_of(network: nn.Module, values: torch.Tensor) -> Callable[[], object]:
    """One training step."""
    adam = torch.optim.Adam(network.parameters())

    def step() -> None:
        adam.zero_grad()
        network.run(values)[0].square().mean().backward()
        adam.step()

    return step


def forward_of(network: nn.Module, values: torch.Tensor) -> Callable[[], object]:
    """Forward alone, without gradients."""

    def forward() -> None:
        with torch.no_grad():
            network.run(values)

    return forward


def networks() -> dict[str, nn.Module]:
    """The yardstick and those that have a goal."""
    seeds.everything(0)
    wide = {"width": WIDTH, "layers": 1}
    return {
        "nn.LSTM": Fused(),
        "lstm": build("lstm", wide, WIDTH, 0.1),
        "lstm coupled": build("lstm", wide | {"gate": "coupled"}, WIDTH, 0.1),
        "gru": build("gru", wide, WIDTH, 0.1),
        "rhn depth 2": build("rhn", wide | {"depth": 2}, WIDTH, 0.1),
        "rhn depth 2, gate and attention": build(
            "rhn", wide | {"depth": 2, "gate": "dependent", "attention": "self"}, WIDTH, 0.1
        ),
        "transformer": build("transformer", {"width": WIDTH, "layers": 2}, WIDTH, 0.1),
    }


def told(what: str, value: float, goal: float, most: bool = True) -> bool:
    """Print a line; whether the goal is met."""
    met = value <= goal if most else value >= goal
    sign = "<=" if most else ">="
    print(f"{what:<64} {value:8.3g}   goal {sign} {goal:g}: {'met' if met else 'MISSED'}")
    return met


def cells(rounds: int) -> list[bool]:
    """Steps and forwards beside the fused LSTM's, by work."""
    made = networks()
    values = torch.randn(BATCH, TIMES, WIDTH, generator=seeds.torch_stream(0, "bench"))
    sizes = {name: sum(one.numel() for one in net.parameters()) for name, net in made.items()}
    found = []
    steps = race({name: Contender(step_of(net, values), 1) for name, net in made.items()}, rounds)
    for name in ("lstm", "lstm coupled", "gru", "rhn depth 2", "rhn depth 2, gate and attention"):
        work = sizes[name] / sizes["nn.LSTM"]
        words = f"step of {name}, eager, / nn.LSTM, by parameters"
        found.append(told(words, steps.ratio(name, "nn.LSTM") / work, 2.3))
    pair = steps.ratio("rhn depth 2, gate and attention", "transformer")
    found.append(told("step of the RHN with gate and attention / transformer", pair, 2.0))
    made = networks()
    for net in made.values():
        net.eval()
    forwards = race(
        {name: Contender(forward_of(net, values), 1) for name, net in made.items()}, rounds
    )
    for name in ("lstm", "gru", "rhn depth 2"):
        work = sizes[name] / sizes["nn.LSTM"]
        words = f"forward of {name} / nn.LSTM, by parameters"
        found.append(told(words, forwards.ratio(name, "nn.LSTM") / work, 2.1))
    return found


def runs(steps: int) -> list[bool]:
    """All starts at once beside a loop over them."""
    found = []
    for name in ("gru", "rhn", "transformer"):
        network = build(name, SMALL, 8, 0.1).eval()
        context = torch.randn(STARTS, TIMES, 8, generator=seeds.torch_stream(0, "bench", name))
        begun = time.perf_counter()
        free_run(network, context, steps, TIMES)
        together = time.perf_counter() - begun
        begun = time.perf_counter()
        for place in range(ALONE):
            free_run(network, context[place : place + 1], steps, TIMES)
        loop = (time.perf_counter() - begun) * STARTS / ALONE
        words = f"free run of {name}: loop over {STARTS} starts / all at once"
        found.append(told(words, loop / together, 20.0, most=False))
    return found


def reservoir(units: int, samples: int) -> bool:
    """Minutes of training one."""
    rng = seeds.stream(0, "bench", "reservoir")
    series = np.cumsum(rng.standard_normal((1, samples, 8)), 1) / np.sqrt(samples)
    rule = Reservoirs(rng, units, 0, 0, 0.9, 0.1, 0.5, 1.0, 1e-6, 0.001, 100, 1)
    begun = time.perf_counter()
    rule.train(series)
    spent = (time.perf_counter() - begun) / 60
    return told(f"reservoir of {units:,} units on {samples:,} samples [minutes]", spent, 2.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, a short run")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    found = cells(5 if quick else 15) + runs(200 if quick else STEPS)
    if not quick:
        torch.set_num_threads(2)
        found.append(reservoir(3000, 20_000))
    print(f"{sum(found)} of {len(found)} goals met")
    return 0


if __name__ == "__main__":
    sys.exit(main())
