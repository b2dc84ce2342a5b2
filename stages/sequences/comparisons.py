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
from stages.sequences.evaluation import stands
from stages.spreads import NOWHERE, Spreads

SEVERAL = 32_500 / 16_500  # times the steps: the smallest of the printed ratios (table 4.3)
GPT, RANDOM, FRACTAL, CURRICULUM = "left_to_right", "random", "fractal", "curriculum"
QUALITY = {"maze": "correct", "climb": "mse_levels"}  # of samples, by kind; others: valid
CLOSE = 0.1  # mean total variation below which a learned density matches the exact one
APART = {"maze": "path_posteriors"}  # distances from exact densities, by kind; others: posteriors
A_PATH_CELL = (
    "the sum over unknown cells that were empty in the prompt's maze, divided by the path cells "
    "that the law expects among them, so that a copied maze without a path has 1"
)
WITHIN = 0.02  # of GPT's final loss: its level is reached
TRIED = "burst_5"  # the thesis' number of orders


def share_of(kind: str) -> str:
    """The metric that the samples of a kind are judged by first."""
    return QUALITY.get(kind, "valid")


def apart_of(kind: str) -> str:
    """Where the distances from exact densities stand that a kind is judged by."""
    return APART.get(kind, "posteriors")


def prompt_of(kind: str) -> str:
    """The prompt that samples of a kind are compared at: of flights the first altitude alone."""
    return "0" if kind == "climb" else "prompt"


def tried(samplers: Any) -> list[str]:
    """The bursts among samplers' names, fewest orders first."""
    return sorted(
        (name for name in samplers if re.fullmatch(r"burst_\d+", name)),
        key=lambda name: int(name[6:]),
    )


class Ordered(Evaluation):
    """One data set's evaluation: its cells, its kind, what is known of its law."""

    narrowest = 1e-18  # an interval of no width is one

    def __init__(self, dataset: str, content: dict[str, Any], spreads: Spreads = NOWHERE):
        super().__init__(dataset, content.get("cells", {}), spreads)
        self.kind, self.bounds = content.get("kind", ""), content.get("bounds", {})
        self.sequences, self.held_out = content.get("sequences", {}), content.get("held_out", "")

    def of(self, order: str) -> list[str]:
        """The arms of an order (`curriculum` and `curriculum_50` are both of a curriculum), or
        of diffusion as it is meant: others are there to find what decides."""
        if order == "diffusion":
            return [arm for arm in self.model("diffusion") if "-plain" in arm]
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
    at_once: bool = False  # the first validation had it: it may have been at any step before
    never: bool = False  # no validation had it: if at all, it is after the last of them


def reached(curve: list[Any], target: float) -> Reached:
    """When a validation loss, [step, loss] by [step, loss], first fell to a target."""
    before = None
    for step, loss in curve:
        if loss <= target:
            if before is None:
                return Reached(step, step, step, at_once=True)
            return Reached(
                before[0] + (step - before[0]) * (before[1] - target) / (before[1] - loss),
                before[0],
                step,
            )
        before = (step, loss)
    last = curve[-1][0]
    return Reached(last, last, last, never=True)


def curves_of(measured: Ordered, arms: tuple[str, ...]) -> dict[str, list[list[Any]]] | None:
    """Arm -> the validation losses of each of its cells; None where one has none."""
    found = {
        arm: [measured.cells[cell].get("history", {}).get("val", []) for cell in measured.arm(arm)]
        for arm in arms
    }
    return found if all(one and all(one) for one in found.values()) else None


def steps(
    measured: Ordered, first: str, second: str
) -> tuple[float, dict[str, list[Reached]]] | None:
    """The loss that every seed of two arms reached, and arm -> its steps until then; None where
    one has no history."""
    curves = curves_of(measured, (first, second))
    if curves is None:
        return None
    target = max(min(loss for _, loss in one) for found in curves.values() for one in found)
    return target, {arm: [reached(one, target) for one in found] for arm, found in curves.items()}


def to_level(
    measured: Ordered, first: str, second: str
) -> tuple[float, dict[str, list[Reached]]] | None:
    """What table 4.3 prints: the loss that all seeds of the arm `first` end at, at their best, with
    WITHIN of it to spare, and arm -> its steps until then; None where one has no history. The other
    arm may never reach it."""
    curves = curves_of(measured, (first, second))
    if curves is None:
        return None
    target = (1 + WITHIN) * max(min(loss for _, loss in one) for one in curves[first])
    return target, {arm: [reached(one, target) for one in found] for arm, found in curves.items()}


def cut_off(found: list[Reached]) -> str:
    """How the mean of some steps is bounded: low (one never reached the loss), high (one had it at
    its first validation), both, or ''."""
    return censoring(any(one.never for one in found), any(one.at_once for one in found))


def ratio_of(over: str, under: str) -> str:
    """How the ratio of two numbers is bounded that themselves are, as `cut_off` says."""
    return censoring(
        over in ("low", "both") or under in ("high", "both"),
        over in ("high", "both") or under in ("low", "both"),
    )


def longer(measured: Ordered, first: str, second: str) -> Part:
    """The arm `second` needs SEVERAL times the steps of `first` to the loss that both reach."""
    name, found = f"{second} > {SEVERAL:.3g} x {first}", steps(measured, first, second)
    absent = [arm for arm in (first, second) if not measured.arm(arm)]
    if absent:
        return unmeasured(name, f"{name}: no trained {' and no '.join(absent)} here")
    if found is None:
        return unmeasured(name, f"{name}: no validation losses were written")
    levels = [steps_level(found[1][arm]) for arm in (second, first)]
    censored = ratio_of(*(cut_off(found[1][arm]) for arm in (second, first)))
    words, times = f"ratio of steps to {found[0]:.3g} nats", levels[0].value - levels[1].value
    part = judged(name, words, times, SEVERAL, True, levels, censored=censored)
    return bounded(part, words, censored) if censored else part


def steps_level(found: list[Reached]) -> Level:
    """The level of an arm's steps, in logarithms; nothing is known between two validations."""
    logs = [math.log(one.step) for one in found]
    within = np.mean([(math.log(one.by / one.after) / (2 * NORMAL)) ** 2 for one in found])
    spread = float(np.var(logs, ddof=1)) if len(logs) > 1 else math.nan
    return Level(float(np.mean(logs)), spread, float(within), len(logs), 0)


def bounded(part: Part, words: str, censored: str) -> Part:
    """A part whose ratio is only a bound, without the interval, which would be one around it."""
    numbers = {key: value for key, value in part.numbers.items() if key != "interval"}
    told = (
        f"{words} {AT[censored]}{numbers['value']:.3g} (reached before the first validation), "
        f"should be above {SEVERAL:.3g}"
    )
    return Part(part.name, part.verdict, numbers | {"bound": censored}, f"{part.name}: {told}")
