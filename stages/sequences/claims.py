"""The documents' claims about sequences in any order (thesis 4.3, D.1, D.2, D.4) as checks: holds,
fails or undecided.

A part compares two numbers of trained arms, or one with a bar: errors, steps and passes by their
ratio, in logarithms; shares, distances and counts by their difference. Levels, 90 % intervals
(Student's over seeds, with what varies within the cells) and what an arm of one seed borrows are
those of set_claims.py. Words of the documents that name no number are read as the bars below, and
every entry says so.
Units: passes of a burst are rounds (draft and check together), as the thesis counts them; MSE in
flight levels squared; nats a token.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stages.fields.claims import (
    AT,
    BLIND,
    NORMAL,
    SINGLE,
    Evaluated,
    Level,
    half_width,
    judged,
    leaf,
    varied,
)
from stages.files import read_json
from stages.spreads import NOWHERE, Spreads
from stages.winds.claims import Part, conclude, unmeasured

MATCHES = 0.02  # accuracies that differ by less match; table 4.2 prints 99.6 and 98.3 %
SEVERAL = 2.0  # times the steps: the smallest of the printed ratios (table 4.3: 32,500 over 16,500)
# perplexities within this factor have no gap; table 4.4 prints 1.03 (curriculum) and 1.68 (none)
# times GPT's
CLOSED = 1.05
# times the error, or SLIGHT of accuracy: worse, but slightly; table 4.5 prints 1.03 times, 0.3 %
# and 1.14 times
SLIGHTLY = 1.25
SLIGHT = 0.05
# "near" the bound: within a deviation of the passes of one sequence, or this where that is less
HALF_PASS = 0.5
VALID = 0.95
FEWER = 10.0  # an order of magnitude
EQUAL = 1.1  # errors within this factor are of equal quality
CLOSE = 0.1  # mean total variation below which a learned density matches the exact one
GPT, RANDOM, FRACTAL, CURRICULUM = "left_to_right", "random", "fractal", "curriculum"
QUALITY = {"maze": "correct", "climb": "mse_levels"}  # of samples, by kind; others: valid
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


class Ordered(Evaluated):
    """One data set's evaluation: its cells, its kind, what is known of its law."""

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
        plain = lambda order: order if order == "diffusion" else f"sigma_gpt-{order}"  # noqa: E731
        last = lambda arm: arm.rpartition("-")[2]  # noqa: E731
        one, two = self.of(first), self.of(second)
        return [(a, b) for a in one for b in two if last(a) == last(b)] or [
            ((one or [plain(first)])[0], (two or [plain(second)])[0])
        ]

    def samplers(self, arm: str) -> list[str]:
        """The samplers of an arm's first cell."""
        return list(self.cells[self.arm(arm)[0]].get("samplers", {})) if self.arm(arm) else []

    def side(
        self, arm: str, metric: str = "", sampler: str | None = None, prompt: str = ""
    ) -> "Side":
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


@dataclass(frozen=True)
class Side:
    """A number of an arm's cells: where it stands in each."""

    arm: str
    path: tuple[str, ...]


def level(measured: Ordered, side: Side, logarithm: bool) -> Level | None:
    """A number's level, of its logarithm or itself; None where one of the arm's cells (or the
    arm) lacks it."""
    found = [leaf(measured.cells[cell], side.path) for cell in measured.arm(side.arm)]
    if not found or None in found:
        return None
    form = (lambda value: math.log(max(value, 1e-30))) if logarithm else float
    values = [form(one["value"]) for one in found]
    halves = [
        (form(one["high"]) - form(one["low"])) / (2 * NORMAL)
        for one in found
        if "low" in one and "high" in one
    ]
    within = (
        max(float(np.mean(np.square(halves))), 1e-18) if len(halves) == len(found) else 0.0
    )  # an interval of no width is one
    n, by = max(one.get("n", 0) for one in found), "relative" if logarithm else "absolute"
    spread, freedom, kind = varied(measured, side.arm, side.path, values, by)
    return Level(float(np.mean(values)), spread, within, len(values), n, freedom=freedom, kind=kind)


def weighed(
    name: str, words: str, value: float, bar: float, above: bool, levels: list[Level]
) -> Part:
    """A part about a difference or a number: `above`, it should exceed the bar; else stay below
    it."""
    half, seeds = half_width(levels), max(one.seeds for one in levels)
    numbers: dict[str, Any] = {
        "value": value,
        "bar": bar,
        "seeds": seeds,
        "slices": max(one.n for one in levels),
    }
    if half is None:
        return Part(
            name,
            "undecided",
            numbers | {"verdict": "undecided"},
            f"{name}: {words} {value:.3g}; {BLIND}",
        )
    low, high = value - half, value + half
    verdict = "undecided" if low <= bar <= high else "holds" if (low > bar) == above else "fails"
    if low == high == value == bar:  # nothing varies, and the bar is met to the last bit
        verdict = "undecided"
    told = (
        f"{words} {value:.3g}, 90 % interval [{low:.3g}, {high:.3g}], should be "
        f"{'above' if above else 'below'} {bar:.3g}"
    )
    told += SINGLE if seeds < 2 else ""
    return Part(
        name, verdict, numbers | {"interval": [low, high], "verdict": verdict}, f"{name}: {told}"
    )


def lacking(measured: Ordered, name: str, sides: list[Side]) -> Part:
    """The part that says which arms were not run, or what was not measured of them."""
    absent = list(dict.fromkeys(side.arm for side in sides if not measured.arm(side.arm)))
    if absent:
        return unmeasured(name, f"{name}: no trained {' and no '.join(absent)} here")
    blind = [
        f"{'/'.join(side.path)} of {side.arm}"
        for side in sides
        if level(measured, side, False) is None
    ]
    return unmeasured(name, f"{name}: {' and '.join(blind)} was not measured")


def ratio(measured: Ordered, name: str, over: Side, under: Side, bar: float, above: bool) -> Part:
    """A part about `over` / `under`."""
    a, b = level(measured, over, True), level(measured, under, True)
    if a is None or b is None:
        return lacking(measured, name, [over, under])
    return judged(
        name, f"ratio of {over.path[-1]}", a.value - b.value, half_width([a, b]), bar, above, [a, b]
    )


def difference(
    measured: Ordered, name: str, left: Side, right: Side, bar: float, above: bool
) -> Part:
    """A part about `left` - `right`."""
    a, b = level(measured, left, False), level(measured, right, False)
    if a is None or b is None:
        return lacking(measured, name, [left, right])
    return weighed(name, f"difference of {left.path[-1]}", a.value - b.value, bar, above, [a, b])


def against(measured: Ordered, name: str, side: Side, bar: float, above: bool, words: str) -> Part:
    """A part about one number."""
    found = level(measured, side, False)
    return (
        lacking(measured, name, [side])
        if found is None
        else weighed(name, words, found.value, bar, above, [found])
    )


def better(
    measured: Ordered, name: str, good: Side, bad: Side, share: float = 0.0, factor: float = 1.0
) -> Part:
    """`good` is better than `bad` by more than `share` (mazes and the like), or its error
    `factor` times smaller (flights)."""
    if measured.kind == "climb":
        return ratio(measured, name, bad, good, factor, True)
    return difference(measured, name, good, bad, share, True)


# --- how long a model learns


class Reached(NamedTuple):
    """When a validation loss fell to a target: the step, straight between the validations
    `after` which and `by` which it did."""

    step: float
    after: float
    by: float
    at_once: bool  # the first validation had it: it may have been at any step before


def reached(curve: list, target: float) -> Reached:
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
    censored = {
        (False, False): "",
        (False, True): "low",
        (True, False): "high",
        (True, True): "both",
    }[cut[0], cut[1]]
    words, times = f"ratio of steps to {found[0]:.3g} nats", levels[0].value - levels[1].value
    part = judged(name, words, times, half_width(levels), SEVERAL, True, levels, censored)
    if "interval" in part.numbers or not censored:
        return part
    return Part(
        part.name,
        part.verdict,
        part.numbers,
        f"{part.why} ({AT[censored].strip()}: reached before the first validation)",
    )


# --- the claims


def a1(measured: Ordered) -> dict:
    """Random order against left to right, by what is sampled."""
    text, parts = (
        "A model of any order matches a left-to-right one on mazes and beats it on vertical rates.",
        [],
    )
    for gpt, arm in measured.pairs(GPT, RANDOM):
        name = f"{arm} {'matches' if measured.kind == 'maze' else 'beats'} {gpt}"
        parts.append(better(measured, name, measured.side(arm), measured.side(gpt), -MATCHES))
    note = f"'matches' is read as an accuracy at most {100 * MATCHES:g} points lower"
    return conclude(measured, "A-1", text, "thesis, table 4.2", parts, note)


def a2(measured: Ordered) -> dict:
    """Steps of training."""
    parts = [longer(measured, gpt, arm) for gpt, arm in measured.pairs(GPT, RANDOM)]
    note = (
        f"'several' is read as more than {SEVERAL:g}, the smallest printed ratio; performance as "
        "the validation loss that both reach, each in its own order (by the chain rule perfect "
        "models agree in it); within a seed a step is known to lie between two validations"
    )
    text = "Random order needs several times the training for the same performance."
    return conclude(measured, "A-2", text, "thesis, table 4.3", parts, note)


def a3(measured: Ordered) -> dict:
    """Left-to-right perplexity, with a curriculum and without."""
    path, parts = ("metrics", "perplexity_left_to_right"), []
    for gpt, arm in measured.pairs(GPT, RANDOM):
        parts.append(
            ratio(
                measured,
                f"{arm} stays behind {gpt}",
                Side(arm, path),
                Side(gpt, path),
                CLOSED,
                True,
            )
        )
    for gpt, arm in measured.pairs(GPT, CURRICULUM):
        parts.append(
            ratio(
                measured,
                f"{arm} closes the gap to {gpt}",
                Side(arm, path),
                Side(gpt, path),
                CLOSED,
                False,
            )
        )
    text = (
        "In left-to-right perplexity a model trained in random order stays behind; with a "
        "curriculum the gap closes."
    )
    return conclude(
        measured,
        "A-3",
        text,
        "thesis, table 4.4",
        parts,
        f"a gap is read as more than {CLOSED:g} x the perplexity",
    )


def a4(measured: Ordered) -> dict:
    """Fractal against random order."""
    parts = []
    for arm, fractal in measured.pairs(RANDOM, FRACTAL):
        worse, slightly = (
            f"{fractal} is worse than {arm}",
            f"{fractal} is slightly worse than {arm} only",
        )
        if measured.kind in ("text", "grammar"):
            a, b = (Side(one, ("metrics", "perplexity")) for one in (fractal, arm))
            parts += [
                ratio(measured, worse, a, b, 1.0, True),
                ratio(measured, slightly, a, b, SLIGHTLY, False),
            ]
            continue
        parts += [
            better(measured, worse, measured.side(arm), measured.side(fractal)),
            better(
                measured,
                slightly,
                measured.side(fractal),
                measured.side(arm),
                -SLIGHT,
                1 / SLIGHTLY,
            ),
        ]
    note = (
        f"'slightly' is read as at most {100 * SLIGHT:g} points of accuracy, or {SLIGHTLY:g} x the "
        "error or perplexity, each in its own order"
    )
    text = "A fractal order is as hard as a random one and slightly worse."
    return conclude(measured, "A-4", text, "thesis, table 4.5", parts, note)


def a6(measured: Ordered) -> dict:
    """What a burst costs, and whether its samples are as good."""
    parts = []
    note = (
        f"'near' is read as within a deviation of one sequence's passes, at least {HALF_PASS:g}; "
        f"valid as {100 * VALID:g} % of samples"
    )
    for arm in measured.of(RANDOM) or [f"sigma_gpt-{RANDOM}"]:
        bursts = tried(measured.samplers(arm))
        burst = TRIED if TRIED in bursts or not bursts else bursts[-1]
        rounds, quality, own = (
            measured.side(arm, "rounds", burst),
            measured.side(arm, "", burst),
            measured.side(arm, "", "own"),
        )
        if measured.kind in ("maze", "climb"):
            passes = measured.side(arm, "passes", "own")
            parts += [
                ratio(
                    measured,
                    f"{arm}: {burst} in a tenth of the passes",
                    passes,
                    rounds,
                    FEWER,
                    True,
                ),
                better(
                    measured,
                    f"{arm}: {burst} is as good as one by one",
                    quality,
                    own,
                    -MATCHES,
                    1 / EQUAL,
                ),
            ]
            continue
        law = measured.bounds.get(burst.removeprefix("burst_"))
        if law is None:
            parts.append(
                unmeasured(f"{arm}: {burst}", f"{arm}: no bound of passes was computed for {burst}")
            )
            continue
        top = law["mean"] + max(law["sd"], HALF_PASS)
        parts += [
            against(
                measured,
                f"{arm}: {burst} near the bound of {law['mean']:.3g}",
                rounds,
                top,
                False,
                "passes",
            ),
            against(measured, f"{arm}: {burst} is valid", quality, VALID, True, "share"),
        ]
    text = (
        "Bursts sample the product law in one pass, the step law in 3 to 4, a permutation of 100 "
        "in about 5.2, and mazes and trajectories with an order of magnitude fewer passes at equal "
        "quality."
    )
    if measured.kind in ("maze", "climb"):
        note = (
            f"equal quality is read as at most {100 * MATCHES:g} points of accuracy lower, or at "
            f"most {EQUAL:g} x the error"
        )
    return conclude(measured, "A-6", text, "thesis, figure 4.6 and D.2", parts, note)


def a7(measured: Ordered) -> dict:
    """Passes by the number of orders."""
    parts = []
    for arm in measured.of(RANDOM) or [f"sigma_gpt-{RANDOM}"]:
        bursts = tried(measured.samplers(arm))
        if len(bursts) < 2:
            parts.append(unmeasured(arm, f"{arm}: no bursts of two numbers of orders here"))
            continue
        fewest, most = bursts[0], bursts[-1]
        sides = (measured.side(arm, "rounds", burst) for burst in (fewest, most))
        parts.append(ratio(measured, f"{arm}: {most} < {fewest}", *sides, 1.0, True))
    return conclude(
        measured,
        "A-7",
        "The more orders a burst tries, the fewer passes it needs.",
        "thesis, figure 4.6",
        parts,
    )


def at_equal(measured: Ordered, arm: str, burst: str, diffusion: str) -> str | None:
    """The sampler of diffusion whose steps are nearest to a burst's passes; None without one or
    without passes."""
    rounds = level(measured, measured.side(arm, "rounds", burst), True)
    counts = [
        int(name.rpartition("_")[2])
        for name in measured.samplers(diffusion)
        if name.startswith("diffusion_")
    ]
    return (
        f"diffusion_{min(counts, key=lambda k: abs(math.log(k) - rounds.value))}"
        if rounds and counts
        else None
    )


def a8(measured: Ordered) -> dict:
    """Bursts against diffusion at equal passes."""
    parts = []
    for arm, diffusion in measured.pairs(RANDOM, "diffusion"):
        bursts = tried(measured.samplers(arm))
        burst = TRIED if TRIED in bursts or not bursts else bursts[-1]
        other = at_equal(measured, arm, burst, diffusion)
        name = f"{arm}, {burst} > {diffusion}, {other or 'at equal passes'}"
        sides = measured.side(arm, "", burst), measured.side(diffusion, "", other)
        parts.append(
            lacking(measured, name, list(sides))
            if other is None
            else better(measured, name, *sides)
        )
    note = "diffusion at the number of steps nearest to the burst's passes"
    return conclude(
        measured,
        "A-8",
        "Burst samples stay valid where diffusion with few steps does not.",
        "thesis, figure 4.6",
        parts,
        note,
    )


def a9(measured: Ordered) -> dict:
    """Learned against exact densities."""
    parts = []
    for arm in measured.of(RANDOM) or [f"sigma_gpt-{RANDOM}"]:
        cells = measured.arm(arm)
        shares = sorted(measured.cells[cells[0]].get("posteriors", {}), key=float) if cells else []
        parts += [
            against(
                measured,
                f"{arm}, {share} % known",
                Side(arm, ("posteriors", share)),
                CLOSE,
                False,
                "total variation",
            )
            for share in shares
        ]
        parts += [] if shares else [lacking(measured, arm, [Side(arm, ("posteriors", "0"))])]
    return conclude(
        measured,
        "A-9",
        "Learned conditional densities match the exact ones.",
        "thesis, figures 4.3 and D.1",
        parts,
        f"'match' is read as a mean total variation below {CLOSE:g} at every share of known tokens",
    )


def a10(measured: Ordered) -> dict:
    """Left to right against random order, by what is given of a flight."""
    parts = []
    for gpt, arm in measured.pairs(GPT, RANDOM):
        sides = {
            prompt: (measured.side(arm, prompt=prompt), measured.side(gpt, prompt=prompt))
            for prompt in ("0", "50")
        }
        parts += [
            better(measured, f"{arm} ahead of {gpt} with the first altitude given", *sides["0"]),
            better(
                measured, f"{gpt} ahead of {arm} with half the flight given", *reversed(sides["50"])
            ),
        ]
    return conclude(
        measured,
        "A-10",
        "With half the trajectory given, left to right overtakes random order.",
        "thesis, table D.1",
        parts,
    )


TASKS, LAWS, TEXT = ("maze", "climb"), ("product", "step", "permutation"), ("text", "grammar")
CLAIMS = (
    (a1, TASKS),
    (a2, TASKS + TEXT),
    (a3, TEXT),
    (a4, TASKS + TEXT),
    (a6, LAWS + TASKS),
    (a7, ("step", "permutation", "walk", "grammar", *TASKS)),
    (a8, LAWS + TASKS),
    (a9, ("walk", "maze")),
    (a10, ("climb",)),
)


def check(home: Path) -> list[dict]:
    """Every claim on every data set under `home` (the folder of one profile) that it speaks of;
    once, undecided, if on none. Data sets that are there to differ in size are spoken of by A-5
    alone."""
    from stages.sequences import memory_claims  # which reads levels and parts from here

    spreads = Spreads.read(home)
    found = [
        Ordered(file.parent.name, read_json(file), spreads)
        for file in sorted((home / "evaluated").glob("[!.]*/metrics.json"))
    ]
    sized, entries = memory_claims.families(found), []
    for claim, kinds in CLAIMS:
        entries += memory_claims.entries(sized) if claim is a6 else []
        mine = [
            measured
            for measured in found
            if measured.kind in kinds and not any(measured in family for family in sized)
        ]
        why = "this profile has no data set that tells anything about it"
        entries += [claim(measured) for measured in mine] or [
            claim(Ordered("–", {})) | {"verdict": "undecided", "why": why}
        ]
    return entries
