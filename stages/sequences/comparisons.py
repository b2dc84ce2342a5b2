"""What is compared of models of sequences: arms by their order, samplers, sides, steps of training.

Passes of a burst are rounds (draft and check together), as the thesis counts them; MSE in flight
levels squared; nats a token.
"""

import math
import re
from typing import Any, NamedTuple

import numpy as np

from stages.claims.levels import AT, NORMAL, Level, Side, censoring, difference, judged, ratio
from stages.claims.parts import Evaluation, Part, unmeasured
from stages.spreads import NOWHERE, Spreads

SEVERAL = 2.0  # times the steps: the smallest of the printed ratios (table 4.3: 32,500 over 16,500)
GPT, RANDOM, FRACTAL, CURRICULUM = "left_to_right", "random", "fractal", "curriculum"
QUALITY = {"maze": "correct", "climb": "mse_levels"}  # of samples, by kind; others: valid
CLOSE = 0.1  # mean total variation below which a learned density matches the exact one
TRIED = "burst_5"  # the thesis' number of orders


def share_of(kind: str) -> str:
    """The metric that the samples of a kind are judged by first."""
    return QUALITY.get(kind, "valid")


def prompt_of(kind: str) -> str:
    """The prompt that samples of a kind are compared at: of flights the first altitude alone."""
    return "0" if kind == "climb" else "prompt"


def tried(samplers: Any) -> list[str]:
    """The bursts among samplers' names, fewest orders first."""
    return sorted(
        (name for name in samplers if re.fullmatch(r"burst_\d+", name)),
        key=lambda name: int(name[6:]),
    )


def stands(arm: str, samplers: Any) -> str | None:
    """The sampler that an arm's quality is told by: GPT's from left to right, others' in their
    own order, diffusion's of most steps."""
    if arm.startswith("diffusion"):
        return max(samplers, key=lambda name: int(name.rpartition("_")[2]), default=None)
    return next((name for name in ("own", GPT) if name in samplers), next(iter(samplers), None))


class Ordered(Evaluation):
    """One data set's evaluation: its cells, its kind, what is known of its law."""

    narrowest = 1e-18  # an interval of no width is one

    def __init__(self, dataset: str, content: dict[str, Any], spreads: Spreads = NOWHERE):
        super().__init__(dataset, content.get("cells", {}), spreads)
        self.kind, self.bounds = content.get("kind", ""), content.get("bounds", {})
        self.sequences, self.held_out = content.get("sequences", {}), content.get("held_out", "")

    def of(self, order: str) -> list[str]:
        """The arms of an order (`curriculum` and `curriculum_50` are both of a curriculum), or
        of diffusion."""
        if order == "diffusion":
            return self.model("diffusion")
        return [
            arm
            for arm in self.model("sigma_gpt")
            if arm.split("-")[1].split("_")[0] == order or arm.split("-")[1] == order
        ]

    def pairs(self, first: str, second: str) -> list[tuple[str, str]]:
        """Arms of two orders at one size; plain names, which tell what is missing, where there
        are none."""

        def plain(order):
            return order if order == "diffusion" else f"sigma_gpt-{order}"

        def last(arm):
            return arm.rpartition("-")[2]

        one, two = self.of(first), self.of(second)
        return [(a, b) for a in one for b in two if last(a) == last(b)] or [
            ((one or [plain(first)])[0], (two or [plain(second)])[0])
        ]

    def samplers(self, arm: str) -> list[str]:
        """The samplers of an arm's first cell."""
        return list(self.cells[self.arm(arm)[0]].get("samplers", {})) if self.arm(arm) else []

    def side(
        self, arm: str, metric: str = "", sampler: str | None = None, prompt: str = ""
    ) -> Side:
        """A number of an arm's samples: of the sampler that stands for it, at the first prompt,
        the quality, if nothing else is said."""
        sampler = sampler or stands(arm, self.samplers(arm)) or "none"
        return Side(
            arm,
            (
                "samplers",
                sampler,
                prompt or prompt_of(self.kind),
                "metrics",
                metric or share_of(self.kind),
            ),
        )


def better(
    measured: Ordered, name: str, good: Side, bad: Side, share: float = 0.0, factor: float = 1.0
) -> Part:
    """`good` is better than `bad` by more than `share` (mazes and the like), or its error
    `factor` times smaller (flights)."""
    if measured.kind == "climb":
        return ratio(measured, name, bad, good, factor, True)
    return difference(measured, name, good, bad, share, True)


class Reached(NamedTuple):
    """When a validation loss fell to a target: the step, straight between the validations
    `after` which and `by` which it did."""

    step: float
    after: float
    by: float
    at_once: bool  # the first validation had it: it may have been at any step before


def reached(curve: list[Any], target: float) -> Reached:
    """When a validation loss, [step, loss] by [step, loss], first fell to a target that it
    reaches."""
    before = None
    for step, loss in curve:
        if loss <= target:
            if before is None:
                return Reached(step, step, step, True)
            return Reached(
                before[0] + (step - before[0]) * (before[1] - target) / (before[1] - loss),
                before[0],
                step,
                False,
            )
        before = (step, loss)
    raise ValueError("the target is the worst of the losses that were reached")


def steps(
    measured: Ordered, first: str, second: str
) -> tuple[float, dict[str, list[Reached]]] | None:
    """The loss that every seed of two arms reached, and arm -> its steps until then; None where
    one has no history."""
    curves = {
        arm: [measured.cells[cell].get("history", {}).get("val", []) for cell in measured.arm(arm)]
        for arm in (first, second)
    }
    if not all(found and all(found) for found in curves.values()):
        return None
    target = max(min(loss for _, loss in one) for found in curves.values() for one in found)
    return target, {arm: [reached(one, target) for one in found] for arm, found in curves.items()}


def longer(measured: Ordered, first: str, second: str) -> Part:
    """The arm `second` needs SEVERAL times the steps of `first` to the loss that both reach."""
    name, found = f"{second} > {SEVERAL:g} x {first}", steps(measured, first, second)
    absent = [arm for arm in (first, second) if not measured.arm(arm)]
    if absent:
        return unmeasured(name, f"{name}: no trained {' and no '.join(absent)} here")
    if found is None:
        return unmeasured(name, f"{name}: no validation losses were written")
    levels, cut = [], []
    for arm in (second, first):
        logs = [math.log(one.step) for one in found[1][arm]]
        within = np.mean(
            [(math.log(one.by / one.after) / (2 * NORMAL)) ** 2 for one in found[1][arm]]
        )  # nothing is known between validations
        levels.append(
            Level(
                float(np.mean(logs)),
                float(np.var(logs, ddof=1)) if len(logs) > 1 else math.nan,
                float(within),
                len(logs),
                0,
            )
        )
        cut.append(any(one.at_once for one in found[1][arm]))
    censored = censoring(cut[1], cut[0])
    words, times = f"ratio of steps to {found[0]:.3g} nats", levels[0].value - levels[1].value
    part = judged(name, words, times, SEVERAL, True, levels, censored=censored)
    if "interval" in part.numbers or not censored:
        return part
    return Part(
        part.name,
        part.verdict,
        part.numbers,
        f"{part.why} ({AT[censored].strip()}: reached before the first validation)",
    )
