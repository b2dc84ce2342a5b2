"""The thesis' claims of token mixing as checks: holds, fails or undecided.

Accuracies and shares are compared by their difference, errors by their ratio, trained arms with
trained arms, with the spread of training of data/spreads (stages/claims/levels.py). Words that name
no number are read as the bars below, and every entry says so. What this profile does not train is
`undecided`; so is a failure of a network that has not learned the law in its steps, as `untrained`.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stages import seeds
from stages.claims.levels import Side, difference, judged, lacking, level, ratio
from stages.claims.parts import (
    RESAMPLES,
    UNDECIDED,
    Evaluation,
    Part,
    conclude,
    unmeasured,
    verdict_of,
)
from stages.files import read_json
from stages.spreads import Spreads
from stages.tokens import trials
from stages.tokens.printed import CORPORA

ACCURACY, MSE, LIKENESS, OWN, OTHER = (
    ("metrics", name) for name in ("accuracy", "mse", "likeness", "satisfied", "satisfied_other")
)
NEAR = 0.02  # of an accuracy: "at or above"
LAYOUTS = ("rezero", "parallel", "pre_norm")
LOST = 0.05  # of an accuracy: what is lost where a layout or a norm "fails", a part is "needed"
SOLVED = 10.0  # times: an error that a mixer divides by it is "solved"
FEWER = 4.0  # times the rows: below the least of "5 to 10 × more", with which it may be as good
DRAWN = 3.0  # times: own statements against others'
LINEAR = 1.1  # an exponent
SHAPES = "shapes"
LEARNED = 0.95  # of an accuracy whose best is 1: a network below it has not learned the law


def trained(measured: Evaluation, model: str, variant: str) -> list[str]:
    """A model's variant here, in each size that it was trained in."""
    return [arm for arm in measured.model(model) if arm.split("-")[1:2] == [variant]]


def side(measured: Evaluation, model: str, variant: str, path: tuple[str, ...]) -> Side:
    """A model's variant here, in the size that it was trained in; its name whole where it was
    not."""
    arms = trained(measured, model, variant)
    return Side(arms[0] if arms else f"{model}-{variant}", path)


def above(
    measured: Evaluation,
    one: tuple[str, str],
    other: tuple[str, str],
    bar: float = 0.0,
    known: bool = True,
) -> Part:
    """One arm's accuracy exceeds another's by more than the bar; `known`: of a known law."""
    left, right = (side(measured, *arm, ACCURACY) for arm in (one, other))
    name = f"{left.arm} > {right.arm}" + (f" {'+' if bar > 0 else '−'} {abs(bar):g}" if bar else "")
    part = difference(measured, name, left, right, bar, True)
    return learned(part, measured, left) if known else part


def learned(part: Part, measured: Evaluation, left: Side) -> Part:
    """The part, undecided where it fails because a network has not learned the law in its steps: a
    longer training might have."""
    found = level(measured, left, False)
    if part.verdict != "fails" or found is None or found.value >= LEARNED:
        return part
    lag = f"{left.arm} has not learned the law: {found.value:.3g} of 1"
    numbers = part.numbers | {"verdict": UNDECIDED, "untrained": [lag]}
    told = part.why.removeprefix(f"{part.name}: ")
    why = f"{part.name}: untrained: {lag}; measured: {told}"
    return replace(part, verdict=UNDECIDED, numbers=numbers, why=why)


def across(
    name: str, words: str, terms: list[tuple[int, Evaluation, Side]], bar: float, logarithm: bool
) -> Part:
    """A signed sum of levels of several sets exceeds the bar; of logarithms, their product does."""
    found = [(sign, level(one, arm, logarithm)) for sign, one, arm in terms]
    known = [(sign, one) for sign, one in found if one is not None]
    if len(known) < len(terms):
        lost = [term for term, (_, one) in zip(terms, found, strict=True) if one is None]
        return lacking(lost[0][1], name, [arm for _, one, arm in lost if one is lost[0][1]])
    total = sum(sign * one.value for sign, one in known)
    return judged(name, words, total, bar, True, [one for _, one in known], logarithm)


HYPER, ATTENTION = ("hypermixing", "tied"), ("self_attention", "post_norm")


def h1(measured: Evaluation, known: bool) -> dict[str, Any]:
    """HyperMixer against the mixers of learned rows, and against attention; `known`: the law of the
    labels is, and its best accuracy is 1."""
    rivals = (("mlp_mixer", "post_norm"), ("gmlp", "post_norm"))
    parts = [above(measured, HYPER, one, known=known) for one in rivals]
    parts.append(above(measured, HYPER, ATTENTION, -NEAR, known=known))
    note = f"'at or above' is read as no more than {NEAR:g} below"
    text = "HyperMixer is the best MLP-based mixer and at or above the transformer of equal size."
    return conclude(measured, "H-1", text, "thesis, table 2.3", parts, note)


def h2(whole: Evaluation, tenth: Evaluation) -> dict[str, Any]:
    """HyperMixer's lead over attention, a tenth of the rows against all of them."""
    name = "lead with 10 % − lead with 100 %"
    parts = [unmeasured("10 % of the data", "10 % of the data: not trained in this profile")]
    if tenth.cells:
        terms = [
            (sign if one is tenth else -sign, one, side(one, *arm, ACCURACY))
            for one in (tenth, whole)
            for sign, arm in ((1, HYPER), (-1, ATTENTION))
        ]
        parts = [across(name, "difference of leads in accuracy", terms, 0.0, False)]
    text = "Its advantage over the transformer grows when the data shrink to 10 %."
    return conclude(whole, "H-2", text, "thesis, figure 2.2b", parts)


def h3(
    measured: Evaluation, costs: dict[str, dict[str, int]], crossings: dict[str, int]
) -> dict[str, Any]:
    """Growth, and the length from which it has fewer FLOPs than attention, by formula; times are no
    result of the DAG."""
    parts, shortest = [], min(map(int, costs.get("hypermixing", {})), default=0)
    if costs:
        long = {int(count): flops for count, flops in costs["hypermixing"].items()
                if int(count) >= 1024}  # fmt: skip
        ends = min(long), max(long)
        grown = math.log(long[ends[1]] / long[ends[0]]) / math.log(ends[1] / ends[0])
        verdict = "holds" if grown <= LINEAR else "fails"
        told = f"FLOPs grow with the power {grown:.3f} of N from {ends[0]:,} to {ends[1]:,}"
        parts.append(Part("linear", verdict, {"value": grown, "bar": LINEAR, "verdict": verdict},
                          f"linear: {told}"))  # fmt: skip
    name = "faster at every length"
    if first := crossings.get("hypermixing"):
        verdict = "holds" if first <= shortest else "fails"
        numbers = {"value": first, "bar": shortest, "verdict": verdict}
        told = f"it has fewer FLOPs than attention from N = {first:,} on, asked from {shortest:,}"
        parts.append(Part(name, verdict, numbers, f"{name}: {told}"))
    else:
        parts.append(unmeasured(name, f"{name}: no length was counted from which it is"))
    note = "time is read as FLOPs, which are counted alike everywhere; `make bench-tokens` times it"
    text = "Its time grows linearly with N, and it is faster than attention at every length."
    return conclude(measured, "H-3", text, "thesis, figure 2.2a", parts, note)


def h4(measured: Evaluation, searched: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Trials until HyperMixer's best accuracy is near, against each rival's, the draws shared."""
    text = "It needs fewer trials of tuning."
    source = "thesis, figure 2.3"
    if not searched:
        parts = [unmeasured("random search", "random search: not made in this profile")]
        return conclude(measured, "H-4", text, source, parts)
    dataset, mine = next(iter(searched.items()))
    found = {model: trials.accuracies(rows) for model, rows in mine.items()}
    own = found.pop("hypermixing")
    parts = [fewer(own, model, theirs) for model, theirs in found.items()]
    note = f"'needs' is read as trials until {trials.NEAR:.0%} of a model's best are expected"
    return conclude(Evaluation(dataset, {}), "H-4", text, source, parts, note)


def fewer(own: np.ndarray, rival: str, theirs: np.ndarray) -> Part:
    """HyperMixer needs fewer trials than a rival: the interval is over the draws, which they
    share. Undecided where one has not learned the law in any trial: what is near its best is near
    nothing; and where both need more trials than were made."""
    name = f"trials of {rival} − of hypermixing"
    rng = seeds.stream(0, "tokens", "claims", "trials")
    drawn = rng.integers(len(own), size=(RESAMPLES, len(own)))
    mine, other = int(trials.needed(own)), int(trials.needed(theirs))
    beyond = mine > len(own), other > len(own)  # then at least so many
    moved = trials.needed(theirs[drawn]) - trials.needed(own[drawn])
    low, high = (float(one) for one in np.quantile(moved, (0.05, 0.95)))
    numbers: dict[str, Any] = {"bar": 0.0, "interval": [low, high], "trials": len(own)}
    if all(beyond):
        told = f"both need more than the {len(own)} trials that were made"
    else:
        numbers["value"] = other - mine
        least = "at most " if beyond[0] else "at least " if beyond[1] else ""
        told = (
            f"{least}{other - mine:d} of {len(own)} trials, 90 % interval [{low:.3g}, {high:.3g}], "
            "should be above 0"
        )
    bests = {"hypermixing": float(own.max()), rival: float(theirs.max())}
    lag = [f"{model} learns the law to {best:.3g} of 1 in its best trial"
           for model, best in bests.items() if best < LEARNED]  # fmt: skip
    verdict = UNDECIDED if lag or all(beyond) else verdict_of(low, high, 0.0)
    if lag:
        numbers["untrained"] = lag
        told = f"untrained: {'; '.join(lag)}; measured: {told}"
    return Part(name, verdict, numbers | {"verdict": verdict}, f"{name}: {told}")


def errors(
    measured: Evaluation, one: str, other: str, bar: float, over: bool, where: str = ""
) -> Part:
    """A ratio of mean squared errors on shapes; `where` tells them from others of these nets."""
    variants = {"hypermixing": "tied"}
    left, right = (
        side(measured, name, variants.get(name, "post_norm"), MSE) for name in (one, other)
    )
    name = f"error of {left.arm} / {right.arm}{where}"
    return ratio(measured, name, left, right, bar, over)


def h5(measured: Evaluation, quarter: Evaluation) -> dict[str, Any]:
    """Errors at one amount of data, MLPMixer's with four times the rows of HyperMixer's, and
    attention's with as few as these."""
    more = unmeasured("5 to 10 × more data", "5 to 10 × more data: one amount is trained on here")
    few, where = measured, ""
    if quarter.cells:
        terms = [
            (1, measured, side(measured, "mlp_mixer", "post_norm", MSE)),
            (-1, quarter, side(quarter, *HYPER, MSE)),
        ]
        name = f"error of MLPMixer with {FEWER:g} × the rows / HyperMixer"
        more = across(name, "ratio of MSE", terms, 1.0, True)
        few, where = quarter, " with a quarter of the rows"
    parts = [
        errors(measured, "unmixed", "hypermixing", SOLVED, True),
        errors(measured, "hypermixing", "mlp_mixer", 1.0, False),
        errors(few, "hypermixing", "self_attention", 1.0, False, where),
        more,
    ]
    note = (
        f"'fails' is read as an error above {SOLVED:g} × HyperMixer's; '5 to 10 × more data' as an "
        f"error that is still above HyperMixer's with {FEWER:g} × its rows, fewer than are claimed "
        "to be enough"
    )
    text = (
        "On shapes no mixing fails, MLPMixer needs 5 to 10 × more data, and HyperMixer is the most "
        "data-efficient."
    )
    return conclude(measured, "H-5", text, "thesis, figure 2.4", parts, note)


def h6(measured: Evaluation) -> dict[str, Any]:
    """Whose map of input gradients is more like that of attention."""
    left = side(measured, *HYPER, LIKENESS)
    right = side(measured, "mlp_mixer", "post_norm", LIKENESS)
    parts = [difference(measured, f"{left.arm} > {right.arm}", left, right, 0.0, True)]
    note = (
        "likeness is read as the rank correlation with the input gradients of a trained net of "
        "attention, over places that convolutions alone do not join"
    )
    text = "Its pseudo-attention resembles attention more than MLPMixer's does."
    return conclude(measured, "H-6", text, "thesis, figure B.1", parts, note)


def h7(measured: Evaluation) -> dict[str, Any]:
    """HyperMixer against each of its ablations."""
    ablations = (("hypermixing", "untied"), ("hypermixing", "token_only"),
                 ("unmixed", "post_norm"), ("weight_vector", "post_norm"))  # fmt: skip
    parts = [above(measured, HYPER, one, 0.0 if one[1] == "untied" else LOST) for one in ablations]
    note = f"'needed' and 'not enough' are read as {LOST:g} of accuracy that is lost, as in H-8"
    text = (
        "Tying helps; both feature and token mixing are needed; a shared weight vector is not "
        "enough."
    )
    return conclude(measured, "H-7", text, "thesis, table B.3", parts, note)


def h8(measured: Evaluation) -> dict[str, Any]:
    """Each layout that was trained, with and without norm."""
    parts = []
    for layout in LAYOUTS:
        bare, layered = (("hypermixing", f"{layout}_{norm}") for norm in ("none", "layer"))
        attention = "self_attention", layout
        if not any(trained(measured, *one) for one in (bare, layered, attention)):
            parts.append(unmeasured(layout, f"{layout}: not trained in this profile"))
            continue
        parts += [
            above(measured, HYPER, bare, LOST),
            above(measured, layered, bare, LOST),
            above(measured, attention, ATTENTION, -LOST),
        ]
    note = f"'fails' and 'care' are read as {LOST:g} of accuracy"
    text = (
        "Without norm HyperMixer fails in the layouts ReZero, parallel and pre-norm; layer norm "
        "mends it; attention does not care."
    )
    return conclude(measured, "H-8", text, "thesis, table B.4", parts, note)


def h9(measured: Evaluation) -> dict[str, Any]:
    """Convolutions alone against one attention layer."""
    parts = [errors(measured, "unmixed", "self_attention", SOLVED, True)]
    note = f"'solves' is read as an error {SOLVED:g} × smaller"
    text = "A net of convolutions alone cannot solve the shapes problem; one attention layer can."
    return conclude(measured, "H-9", text, "slides, attention", parts, note)


def h10(measured: Evaluation) -> dict[str, Any]:
    """Statements met, own against others', by the causal transformer that was trained longest."""
    steps = {
        name.rsplit("-s", 1)[0]: cell["history"]["val"][-1][0]
        for name, cell in measured.cells.items()
        if cell.get("history")
    }
    plain = side(measured, "self_attention", "pre_norm", OWN).arm
    arm = max(steps, key=lambda one: (steps[one], one == plain), default=plain)
    own, other = Side(arm, OWN), Side(arm, OTHER)
    parts = [ratio(measured, f"{arm}: own statements met / others'", own, other, DRAWN, True)]
    note = "" if arm == plain else f"{arm} is our extension of the plain causal transformer; "
    note += f"'learns' is read as {DRAWN:g} × as many as of statements of other pictures"
    text = "A causal transformer learns PicoCLVR: its pictures meet their statements."
    return conclude(measured, "H-10", text, "slides, PicoCLVR", parts, note)


def kind_of(about: dict[str, Any]) -> str:
    """What a set is to the claims: how it was made, or the text that it is and its share."""
    name = str(about["text"]["form"] if "text" in about else about["made"]["task"])
    share = f", 1 of {about['every']}" if about["every"] > 1 else ""
    return name.removesuffix("_text") + share


def fewest(shaped: dict[int, Evaluation], nothing: Evaluation) -> tuple[Evaluation, Evaluation]:
    """Of sets of shapes, by the rows that train, that of FEWER times the fewest rows, and that of
    the fewest: there data bind, not steps. Where there is no such pair, that of the most rows."""
    least = min(shaped, default=0)
    more = [rows for rows in shaped if rows > least and rows <= 1.05 * FEWER * least]
    if more:
        return shaped[max(more)], shaped[least]
    return (shaped[max(shaped)] if shaped else nothing), nothing


def check(home: Path) -> list[dict[str, Any]]:
    """Every claim on the sets under `home` that it speaks of."""
    spreads, found = Spreads.read(home), {}
    costs: dict[str, dict[str, int]] = {}
    crossings: dict[str, int] = {}
    shaped: dict[int, Evaluation] = {}  # by the rows that train
    for file in sorted((home / "evaluated").glob("[!.]*/metrics.json")):
        content = read_json(file)
        name, about = file.parent.name, content["about"]
        kind = kind_of(about)
        found[kind] = Evaluation(name, content["cells"], spreads)
        if kind.startswith(SHAPES):
            shaped[about["rows"]["train"]] = found[kind]
        costs |= about.get("costs", {})
        crossings |= about.get("crossings", {})
    nothing = Evaluation("–", {})
    pairs, shapes, pictures = (found.get(kind, nothing) for kind in ("pairs", SHAPES, "pictures"))
    few = fewest(shaped, nothing)
    corpus = next((kind for kind in CORPORA if f"{kind}, 1 of 10" in found), "sst2")
    text, tenth = (found.get(kind, nothing) for kind in (corpus, f"{corpus}, 1 of 10"))
    if set(found) == {"pictures"}:  # an experiment of one task has no say on others
        return [h10(pictures)]
    of_shapes = [h5(*few), h6(shapes), h9(shapes)] if shaped else []
    if len(shaped) == len(found):
        return of_shapes
    return [
        h1(text if text.cells else pairs, not text.cells), h2(text, tenth),
        h3(nothing, costs, crossings), h4(nothing, trials.searched(home)), h7(pairs), h8(pairs),
        h10(pictures), *of_shapes,
    ]  # fmt: skip
