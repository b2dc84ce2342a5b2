"""The documents' claims about sequences in any order (thesis 4.3, D.1, D.2, D.4) as checks: holds,
fails or undecided.

A part compares two numbers of trained arms, or one with a bar: errors, steps, passes and distances
a path cell by their ratio, in logarithms; shares, other distances and counts by their difference.
Levels, 90 % intervals (Student's over seeds, with what varies within the cells) and what an arm of
one seed borrows are those of stages/claims/levels.py. A model that has not learned decides nothing
about samples and densities (learned.py). Words of the documents that name no number are read as the
bars below, and every entry says so.
Units: passes of a burst are rounds (draft and check together), as the thesis counts them; MSE in
flight levels squared; nats a token.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from stages.claims.levels import Side, against, lacking, level, ratio
from stages.claims.parts import UNDECIDED, Part, conclude, unmeasured
from stages.claims.trained import beyond, fair, withheld
from stages.files import read_json
from stages.sequences import memory_claims
from stages.sequences.comparisons import (
    A_PATH_CELL,
    CLOSE,
    CURRICULUM,
    FRACTAL,
    GPT,
    RANDOM,
    SEVERAL,
    TRIED,
    Ordered,
    apart_of,
    better,
    longer,
    tried,
)
from stages.sequences.learned import behind, decided
from stages.spreads import Spreads

MATCHES = 0.02  # accuracies that differ by less match; table 4.2 prints 99.6 and 98.3 %
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
LONG = 40  # passes one by one: a tenth of fewer leaves a burst no 4 rounds, the most of a step law
EQUAL = 1.1  # errors within this factor are of equal quality


def a1(measured: Ordered) -> dict[Any, Any]:
    """Random order against left to right, by what is sampled."""
    text = (
        "A model of any order matches a left-to-right one on mazes and beats it on vertical rates."
    )
    parts = []
    for gpt, arm in measured.pairs(GPT, RANDOM):
        name = f"{arm} {'matches' if measured.kind == 'maze' else 'beats'} {gpt}"
        part = better(measured, name, measured.side(arm), measured.side(gpt), -MATCHES)
        part = decided(measured, part, arm, gpt)
        parts.append(withheld(part, behind(measured, (arm, gpt))))
    note = f"'matches' is read as an accuracy at most {100 * MATCHES:g} points lower"
    return conclude(measured, "A-1", text, "thesis, table 4.2", parts, note)


def a2(measured: Ordered) -> dict[Any, Any]:
    """Steps of training."""
    parts = [longer(measured, gpt, arm) for gpt, arm in measured.pairs(GPT, RANDOM)]
    note = (
        f"'several' is read as more than {SEVERAL:.3g}, the smallest printed ratio; performance as "
        "the validation loss that both reach, each in its own order (by the chain rule perfect "
        "models agree in it); within a seed a step is known to lie between two validations"
    )
    text = "Random order needs several times the training for the same performance."
    return conclude(measured, "A-2", text, "thesis, table 4.3", parts, note)


def a3(measured: Ordered) -> dict[Any, Any]:
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


def a4(measured: Ordered) -> dict[Any, Any]:
    """Fractal against random order."""
    parts = []
    for arm, fractal in measured.pairs(RANDOM, FRACTAL):
        worse = f"{fractal} is worse than {arm}"
        slightly = f"{fractal} is slightly worse than {arm} only"
        if measured.kind in ("text", "grammar"):
            a, b = (Side(one, ("metrics", "perplexity")) for one in (fractal, arm))
            parts += [
                ratio(measured, worse, a, b, 1.0, True),
                ratio(measured, slightly, a, b, SLIGHTLY, False),
            ]
            continue
        own, other = measured.side(arm), measured.side(fractal)
        apart = (
            better(measured, worse, own, other),
            better(measured, slightly, other, own, -SLIGHT, 1 / SLIGHTLY),
        )
        lags = behind(measured, (arm, fractal))
        parts += [
            fair(withheld(decided(measured, part, arm, fractal), lags), measured, (arm, fractal))
            for part in apart
        ]
    note = (
        f"'slightly' is read as at most {100 * SLIGHT:g} points of accuracy, or {SLIGHTLY:g} x the "
        "error or perplexity, each in its own order"
    )
    text = "A fractal order is as hard as a random one and slightly worse."
    return conclude(measured, "A-4", text, "thesis, table 4.5", parts, note)


def burst_of(measured: Ordered, arm: str) -> str:
    """The burst that an arm is told by: the thesis' number of orders, else the most tried."""
    bursts = tried(measured.samplers(arm))
    return TRIED if TRIED in bursts or not bursts else bursts[-1]


def worth(measured: Ordered, arm: str, burst: str) -> list[Part]:
    """A burst of a task: a tenth of the passes, samples as good as one by one."""
    rounds, quality = measured.side(arm, "rounds", burst), measured.side(arm, "", burst)
    passes, own = measured.side(arm, "passes", "own"), measured.side(arm, "", "own")
    fewer = f"{arm}: {burst} in a tenth of the passes"
    good = f"{arm}: {burst} is as good as one by one"
    one_by_one = level(measured, passes, False)
    found = (
        unmeasured(fewer, f"{fewer}: one by one takes {one_by_one.value:g}, too few to be cut so")
        if one_by_one and one_by_one.value < LONG
        else ratio(measured, fewer, passes, rounds, FEWER, True),
        better(measured, good, quality, own, -MATCHES, 1 / EQUAL),
    )
    return [withheld(decided(measured, part, arm), behind(measured, (arm,))) for part in found]


def erring(measured: Ordered, arm: str) -> list[str]:
    """Why a model of a law has not learned it: its samples, drawn one by one, are not surely
    valid; else nothing."""
    own = level(measured, measured.side(arm), False)
    if own is None or beyond([own], own.value, VALID):
        return []
    return [f"one by one its own samples are valid in {100 * own.value:.3g} %"]


def valid(measured: Ordered, arm: str, burst: str) -> Part:
    """A burst's samples are valid. Undecided where the model errs, whatever the burst adds."""
    quality = measured.side(arm, "", burst)
    part = against(measured, f"{arm}: {burst} is valid", quality, VALID, True, "share")
    return withheld(part, erring(measured, arm))


def lawful(measured: Ordered, arm: str, burst: str) -> list[Part]:
    """A burst of a law: near the fewest passes there can be, its samples valid. Of permutations
    the bound is that of the best of all orders (thesis D.2.4): of a perfect model that tries a few,
    too, more passes are expected, so that to stay above it decides nothing."""
    law = measured.bounds.get(burst.removeprefix("burst_"))
    if law is None:
        why = f"{arm}: no bound of passes was computed for {burst}"
        return [unmeasured(f"{arm}: {burst}", why)]
    rounds = measured.side(arm, "rounds", burst)
    top = law["mean"] + max(law["sd"], HALF_PASS)
    near = f"{arm}: {burst} near the bound of {law['mean']:.3g}"
    close = against(measured, near, rounds, top, False, "passes")
    if measured.kind == "permutation" and close.verdict == "fails":
        why = f"{close.why}; the bound is of the best of all orders, not of those that are tried"
        numbers = close.numbers | {"verdict": UNDECIDED}
        close = replace(close, verdict=UNDECIDED, numbers=numbers, why=why)
    return [decided(measured, part, arm) for part in (close, valid(measured, arm, burst))]


def a6(measured: Ordered) -> dict:
    """What a burst costs, and whether its samples are as good."""
    parts, task = [], measured.kind in ("maze", "climb")
    for arm in measured.of(RANDOM) or [f"sigma_gpt-{RANDOM}"]:
        burst = burst_of(measured, arm)
        parts += (worth if task else lawful)(measured, arm, burst)
    text = (
        "Bursts sample the product law in one pass, the step law in 3 to 4, a permutation of 100 "
        "in about 5.2, and mazes and trajectories with an order of magnitude fewer passes at equal "
        "quality."
    )
    if task:
        note = (
            f"equal quality is read as at most {100 * MATCHES:g} points of accuracy lower, or at "
            f"most {EQUAL:g} x the error"
        )
    else:
        note = (
            f"'near' is read as within a deviation of one sequence's passes, at least "
            f"{HALF_PASS:g}; valid as {100 * VALID:g} % of samples, asked of models whose samples "
            "one by one surely are"
        )
    return conclude(measured, "A-6", text, "thesis, figure 4.6 and D.2", parts, note)


def a7(measured: Ordered) -> dict[Any, Any]:
    """Passes by the number of orders."""
    parts = []
    for arm in measured.of(RANDOM) or [f"sigma_gpt-{RANDOM}"]:
        bursts = tried(measured.samplers(arm))
        if len(bursts) < 2:
            parts.append(unmeasured(arm, f"{arm}: no bursts of two numbers of orders here"))
            continue
        fewest, most = bursts[0], bursts[-1]
        sides: Any = (measured.side(arm, "rounds", burst) for burst in (fewest, most))
        part = ratio(measured, f"{arm}: {most} < {fewest}", *sides, 1.0, True)
        parts.append(decided(measured, part, arm))
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


def a8(measured: Ordered) -> dict[Any, Any]:
    """Bursts against diffusion at equal passes."""
    parts = []
    for arm, diffusion in measured.pairs(RANDOM, "diffusion"):
        burst = burst_of(measured, arm)
        other = at_equal(measured, arm, burst, diffusion)
        name = f"{arm}, {burst} > {diffusion}, {other or 'at equal passes'}"
        sides = measured.side(arm, "", burst), measured.side(diffusion, "", other)
        if other is None:
            parts.append(lacking(measured, name, list(sides)))
            continue
        part = decided(measured, better(measured, name, *sides), arm, diffusion)
        part = withheld(part, behind(measured, (arm, diffusion)))
        parts.append(fair(part, measured, (arm, diffusion)))
    note = (
        "diffusion at the number of steps nearest to the burst's passes; asked of models that "
        "trained for equally many steps"
    )
    return conclude(
        measured,
        "A-8",
        "Burst samples stay valid where diffusion with few steps does not.",
        "thesis, figure 4.6",
        parts,
        note,
    )


def a9(measured: Ordered) -> dict[Any, Any]:
    """Learned against exact densities; of mazes at the cells that copying does not tell."""
    parts, path, mazes = [], apart_of(measured.kind), measured.kind == "maze"
    words = "total variation a path cell" if mazes else "total variation"
    for arm in measured.of(RANDOM) or [f"sigma_gpt-{RANDOM}"]:
        cells = measured.arm(arm)
        shares = sorted(measured.cells[cells[0]].get(path, {}), key=float) if cells else []
        for share in shares:
            name, side = f"{arm}, {share} % known", Side(arm, (path, share))
            part = against(measured, name, side, CLOSE, False, words, mazes)
            part = decided(measured, part, arm)
            lags = behind(measured, (arm,)) if mazes else erring(measured, arm)
            parts.append(withheld(part, lags))
        parts += [] if shares else [lacking(measured, arm, [Side(arm, (path, "0"))])]
    text = "Learned conditional densities match the exact ones."
    note = (
        f"'match' is read as a mean total variation below {CLOSE:g} at every share of known tokens"
    )
    if mazes:
        note += f"; of mazes it is {A_PATH_CELL}"
    return conclude(measured, "A-9", text, "thesis, figures 4.3 and D.1", parts, note)


def a10(measured: Ordered) -> dict[Any, Any]:
    """Left to right against random order, by what is given of a flight."""
    parts = []
    for gpt, arm in measured.pairs(GPT, RANDOM):
        sides: Any = {
            prompt: (measured.side(arm, prompt=prompt), measured.side(gpt, prompt=prompt))
            for prompt in ("0", "50")
        }
        first, half = (
            (f"{arm} ahead of {gpt} with the first altitude given", *sides["0"]),
            (f"{gpt} ahead of {arm} with half the flight given", *reversed(sides["50"])),
        )
        for one, prompt in ((first, "0"), (half, "50")):
            part = decided(measured, better(measured, *one), arm, gpt)
            parts.append(withheld(part, behind(measured, (arm, gpt), prompt)))
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


def check(home: Path) -> list[dict[Any, Any]]:
    """Every claim on every data set under `home` (the folder of one profile) that it speaks of;
    once, undecided, if on none. Data sets that are there to differ in size are spoken of by A-5
    alone."""
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
