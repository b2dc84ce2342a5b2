"""Document R's claims of dynamical systems as checks: holds, fails or undecided.

Valid times are compared in Lyapunov times by their difference, trained arms with trained arms, with
the spread of training of data/spreads (stages/claims/levels.py). A network that stays behind the
linear rival has not learned to forecast a system: what rests on it is `undecided`, and says
`untrained` (but D-5, which is about such networks).
Words that name no number are read as the bars below, and every entry says so. Training times are
those that tests/benchmarks/bench_dynamics.py measured once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from stages import seeds
from stages.claims.levels import Side, against, difference, lacking, level
from stages.claims.parts import UNDECIDED, Evaluation, Part, conclude, unmeasured, verdict_of
from stages.dynamics.searched import ORDERS, spread, tables
from stages.files import read_json
from stages.spreads import Spreads, kind_of

VPT, PSD, CHOSEN = (("metrics", name) for name in ("vpt", "psd_db", "vpt_val"))
RECURRENT, TRANSFORMERS = ("lstm", "gru", "rhn"), ("transformer",)
BLIND = ("additive", "rate")  # gates that see no data
OTHERWISE = ("adabelief", "pre_adabelief")  # no modification: trained by another optimizer
CLOSE = 1.0  # decibels: a spectrum is "reproduced" within them
SHARE = (0.25, 0.5)  # of the recurrent training time
RIVAL = "linear"
STILL = "persistence"  # a cell that is valid for less long "diverges", for longer "survives"
RESAMPLES = 2000  # of a search's trials
MODIFIED = {  # what R's best modification of a class was chosen from, of its arms here
    "lstm": {"coupled", "attention", "attention_coupled"},
    "gru": {"dependent", "attention", "attention_dependent"},
    "rhn": {"dependent", "attention", "attention_dependent"},
    "transformer": {"pre_dependent", "post_dependent"},
}
KINDS = "attention to the input and to the layer below, other biases, one head"
BRIEF = "a trend: R's networks are chosen by a sweep and trained until they improve no more"


def side(measured: Evaluation, model: str, variant: str, path: tuple[str, ...]) -> Side:
    """A model's variant here, in the size that it was trained in; its name whole where it was
    not."""
    arms = [arm for arm in measured.model(model) if arm.split("-")[1:2] == [variant]]
    return Side(arms[0] if arms else f"{model}-{variant}", path)


def learned(part: Part, measured: Evaluation, arms: Iterable[str], rival: str = RIVAL) -> Part:
    """The part, undecided where one of its networks is not better than a rival."""
    bar, lags = level(measured, Side(rival, VPT), False), []
    for arm in dict.fromkeys(arms):
        found = level(measured, Side(arm, VPT), False) if measured.arm(arm) else None
        if bar and found and kind_of(measured.arm(arm)[0]) and found.value <= bar.value:
            lags.append(f"{arm} is no better than {rival}")
    if not lags:
        return part
    told = part.why.removeprefix(f"{part.name}: ")
    return replace(
        part,
        verdict=UNDECIDED,
        numbers=part.numbers | {"verdict": UNDECIDED, "untrained": lags},
        why=f"{part.name}: untrained: {'; '.join(lags)}; measured: {told}",
    )


def better(measured: Evaluation, name: str, one: Side, other: Side, rival: str = RIVAL) -> Part:
    """`one` is valid for longer than `other`, both having learned."""
    part = difference(measured, name, one, other, 0.0, True)
    return learned(part, measured, (one.arm, other.arm), rival)


def best(measured: Evaluation, arms: Iterable[str]) -> str | None:
    """Of these arms the one that was valid for longest on the part that selects."""
    known = [(found.value, arm) for arm in arms
             if (found := level(measured, Side(arm, CHOSEN), False))]  # fmt: skip
    return max(known)[1] if known else None


def variants(measured: Evaluation, model: str, plain: Iterable[str]) -> list[str]:
    """The arms of a model that are modified: all but the plain ones."""
    return [arm for arm in measured.model(model) if arm.split("-")[1] not in plain]


def tried(part: Part, known: set[str], model: str) -> Part:
    """The part, undecided where it fails and not every modification was trained: another one may
    be better."""
    if part.verdict != "fails" or known >= MODIFIED[model]:
        return part
    lacks = ", ".join(sorted(MODIFIED[model] - known))
    numbers = part.numbers | {"verdict": UNDECIDED}
    return replace(
        part, verdict=UNDECIDED, numbers=numbers, why=f"{part.why}; not trained here: {lacks}"
    )


def d1(measured: Evaluation) -> dict[Any, Any]:
    """Every class's unmodified member against the best of its others."""
    parts = []
    for model, plain in (*((one, "base") for one in RECURRENT), ("transformer", "pre")):
        base = side(measured, model, plain, VPT)
        others = variants(measured, model, ("base", "pre", "post", "swept", *OTHERWISE))
        chosen = best(measured, others)
        name = f"{model}: the best modification beats {base.arm}"
        if chosen:
            part = better(measured, name, Side(chosen, VPT), base)
            parts.append(tried(part, {arm.split("-")[1] for arm in others}, model))
        else:
            parts.append(unmeasured(name, f"{name}: no modified {model} was trained here"))
    text = "Unmodified cells and transformers are the weakest of their class on Lorenz-96."
    return conclude(measured, "D-1", text, "gating, table 1", parts, BRIEF)


def d2(measured: Evaluation) -> dict[Any, Any]:
    """Attention against none, cell by cell. R's is the best of several kinds: that the one which is
    trained here does not help decides nothing about the others."""
    parts = []
    for model in RECURRENT:
        name = f"{model} with attention > without"
        one, other = (side(measured, model, variant, VPT) for variant in ("attention", "base"))
        part = better(measured, name, one, other)
        if part.verdict == "fails":
            numbers = part.numbers | {"verdict": UNDECIDED}
            why = f"{part.why}; not trained here: {KINDS}"
            part = replace(part, verdict=UNDECIDED, numbers=numbers, why=why)
        parts.append(part)
    text = "Attention helps every recurrent cell on Lorenz-96 and Kuramoto-Sivashinsky."
    return conclude(measured, "D-2", text, "gating, tables 1 and 4", parts, BRIEF)


def d3(measured: Evaluation) -> dict[Any, Any]:
    """The highway network with attention and gate against every other network."""
    best = side(measured, "rhn", "attention_dependent", VPT)
    others = [arm for model in (*RECURRENT, *TRANSFORMERS, "recurrent_transformer")
              for arm in variants(measured, model, OTHERWISE) if arm != best.arm]  # fmt: skip
    parts = [better(measured, f"{best.arm} > {arm}", best, Side(arm, VPT)) for arm in others]
    text = "The RHN with attention and gating is the best of all on chaotic systems."
    return conclude(measured, "D-3", text, "gating, tables 1 and 4", parts)


def d4(measured: Evaluation) -> dict[Any, Any]:
    """The transformer against the one with a memory."""
    parts = [
        better(
            measured,
            f"{order}: without recurrence > with",
            side(measured, "transformer", order, VPT),
            side(measured, "recurrent_transformer", order, VPT),
        )
        for order in ("pre", "post")
        if order == "pre" or measured.arm(side(measured, "recurrent_transformer", order, VPT).arm)
    ]
    text = "Recurrence harms transformers."
    return conclude(measured, "D-4", text, "gating, table 1", parts, BRIEF)


def as_printed(part: Part, cells: Iterable[Mapping[str, Any]]) -> Part:
    """The part, undecided where a network says the change, which R's do not: it is right at first,
    however little it has learned."""
    if part.verdict == UNDECIDED or all(cell["output"] == "next" for cell in cells):
        return part
    numbers = part.numbers | {"verdict": UNDECIDED}
    why = f"{part.why}; it says the change, R's the next state"
    return replace(part, verdict=UNDECIDED, numbers=numbers, why=why)


def d5(measured: Evaluation) -> dict[Any, Any]:
    """Gates that see no data, against persistence, which has learned nothing."""
    parts, still = [], Side(STILL, VPT)
    for model in RECURRENT:
        for gate in BLIND:
            one, lost = side(measured, model, gate, VPT), model != "lstm"
            name = f"{one.arm} {'diverges' if lost else 'survives'}"
            part = difference(measured, name, one, still, 0.0, not lost)
            cells = [measured.cells[cell] for cell in measured.arm(one.arm)]
            parts.append(as_printed(part, cells))
    note = (
        f"'diverge' is read as valid for less long than {STILL}, 'survive' as for longer; R reads "
        "it off valid times of 0 among the models of its sweep"
    )
    text = "Additive and learned-rate gates make GRU and RHN diverge; the LSTM survives."
    return conclude(measured, "D-5", text, "gating, section 4.3.1", parts, note)


def d6(measured: Evaluation, trials: pl.DataFrame | None) -> dict[Any, Any]:
    """The spread of valid times over a search's trials, pre-LN against post-LN."""
    name, found = "pre-LN varies less than post-LN", []
    if trials is not None:
        rng = seeds.stream(0, "dynamics", "claims", measured.dataset)
        found = [spread(trials, order, RESAMPLES, rng) for order in ORDERS]
    pre, post = found if len(found) == len(ORDERS) else (None, None)
    if pre is None or post is None:
        part = unmeasured(name, f"{name}: too few trials of a search finished in this profile")
    else:
        low, high = pre.low - post.high, pre.high - post.low
        verdict = verdict_of(low, high, 0.0, above=False)
        gap = pre.value - post.value
        numbers = {"value": gap, "bar": 0.0, "interval": [low, high], "verdict": verdict}
        why = (
            f"{name}: standard deviation of valid times over trials, Lyapunov times: "
            f"{pre.value:.3g} of {pre.trials} with pre-LN, {post.value:.3g} of {post.trials} with "
            f"post-LN; difference {gap:.3g}, at most from {low:.3g} to {high:.3g}, should be "
            "below 0"
        )
        part = Part(name, verdict, numbers, why)
    note = "of trials that no pruner ended, which makes the spread of both smaller"
    text = "Pre-LN transformers are less sensitive to hyperparameters than post-LN ones."
    return conclude(measured, "D-6", text, "gating, figure 9", [part], note)


def d7(measured: Evaluation, times: dict[Any, Any]) -> dict[Any, Any]:
    """Times of a training step, transformer over recurrent network of equal width, as measured."""
    parts = []
    for pair, told in sorted(times.get("ratios", {}).items()):
        low, high, value = told["low"], told["high"], told["value"]
        sides = [verdict_of(low, high, SHARE[0]), verdict_of(low, high, SHARE[1], above=False)]
        found = "fails" if "fails" in sides else UNDECIDED if UNDECIDED in sides else "holds"
        numbers = {"value": value, "bar": SHARE[1], "interval": [low, high], "verdict": found}
        why = (
            f"{pair}: ratio of times {value:.3g}, 90 % interval [{low:.3g}, {high:.3g}], should "
            f"lie from {SHARE[0]:g} to {SHARE[1]:g}"
        )
        parts.append(Part(pair, found, numbers, why))
    where = times.get("machine", "not named")
    note = (
        "one training step on one core at equal width, batch and window, the transformer of two "
        "blocks, the recurrent networks of one layer; R: whole trainings. The "
        f"times are of one machine ({where}), measured once: another's may decide otherwise"
    )
    text = "Transformers train in 25 to 50 % of the time of recurrent networks."
    return conclude(measured, "D-7", text, "gating, table 3", parts, note)


def d8(measured: Evaluation) -> dict[Any, Any]:
    """The best of every class, by its spectrum."""
    parts = []
    for model in (*RECURRENT, *TRANSFORMERS):
        arm = best(measured, measured.model(model))
        if arm is None:
            continue
        name = f"{arm} reproduces the spectrum"
        one = Side(arm, PSD)
        part = against(measured, name, one, CLOSE, False, "mean difference in dB")
        parts.append(learned(part, measured, (arm,)))
    if not parts:
        parts.append(lacking(measured, "spectra", [Side("rhn-base", PSD)]))
    note = f"'reproduce' is read as within {CLOSE:g} dB in the mean over frequencies"
    text = "All top models reproduce the power spectrum."
    return conclude(measured, "D-8", text, "gating, table 2", parts, note)


def d9(measured: Evaluation) -> dict[Any, Any]:
    """Of real series, of which this experiment has none."""
    parts = [unmeasured("real series", "real series: this experiment has none")]
    text = "Pre-LN transformers are robust across the seven real series."
    return conclude(measured, "D-9", text, "gating, tables 6 and 7", parts)


def check(home: Path) -> list[dict[Any, Any]]:
    """Every claim on every set under `home` that it speaks of."""
    spreads, times = Spreads.read(home), read_json(home / "benchmarks.json")
    files = sorted((home / "evaluated").glob("[!.]*/metrics.json"))
    found = [Evaluation(file.parent.name, read_json(file)["cells"], spreads) for file in files]
    lorenz = [one for one in found if one.dataset.startswith("l96")]
    nothing = Evaluation("–", {})
    entries = [claim(one) for claim in (d1,) for one in lorenz]
    entries += [claim(one) for claim in (d2, d3) for one in found]
    entries += [claim(one) for claim in (d4, d5) for one in lorenz]
    entries += [d6(one, tables(home, one.dataset).get("transformer")) for one in lorenz]
    entries += [d7(nothing, times)]
    return entries + [d8(one) for one in found] + [d9(nothing)]
