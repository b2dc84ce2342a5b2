"""Document G's claims as checks: holds, fails or undecided.

Likelihoods are compared in nats a target, errors in the set's unit, by their difference task by
task (stages/claims/paired.py), with the spread of training of data/spreads. A model has not learned
that is no better than the prior, or errs more than linear interpolation where that was trained;
nor has a model of both sources that others are held to, where the exact law of one source does
better. What rests on it is `undecided`, and says `untrained`. Words that name no number are read
as the bars below, and every entry says so.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from stages.claims.levels import Side, against, level
from stages.claims.paired import PairedEvaluation, combined, difference, evaluations
from stages.claims.parts import Part, conclude, unmeasured, verdict_of
from stages.claims.trained import withheld
from stages.fields.grids import costs
from stages.fields.grids.layout import EXACT_OFF, EXACT_ON, PRIOR
from stages.files import read_json
from stages.scores import items
from stages.scores.items import Items
from stages.spreads import Spreads, kind_of

LL, RMSE, LAND = (("metrics", name) for name in ("log_likelihood", "rmse", "land_over_sea"))
FEW, MANY = ("metrics", "rmse_few"), ("metrics", "rmse_many")
REAL = "britain"
DIVIDED = "our SetConv divides by its density and keeps it, where document G adds the plain sum"
NOTHING_LOST = 0.01  # nats: what a grid encoder loses at most against the plain TNP
FAR = 0.1  # nats: "far better"
SAME = 0.05  # nats: "the same as"
ROWS = 120  # of document G's grid
FASTER = 80.0  # times: what the document tells of steps a second
LINEAR = "linear_interpolation-plain"
BRIEF = "trained for seconds or minutes at equal steps, where the document trains for hours"


def side(
    measured: PairedEvaluation, variant: str, path: tuple[str, ...] = LL, beside: str = ""
) -> Side:
    """A variant ('grid_tnp-mhca') in the size that was trained here, of several in one that
    `beside` has, too; its name whole where none was."""
    own, theirs = trained(measured, variant), trained(measured, beside or variant)
    found = [own[size] for size in own if size in theirs] or [*own.values()]
    return Side(found[0] if found else variant, path)


def trained(measured: PairedEvaluation, variant: str) -> dict[str, str]:
    """The arms of a variant by their sizes, in order."""
    model, arm = variant.split("-")
    parts = {name: name.split("-") for name in measured.model(model)}
    return {words[-1]: name for name, words in parts.items() if words[1:2] == [arm]}


def learned(part: Part, measured: PairedEvaluation, arms: Iterable[str]) -> Part:
    """The part, undecided where one of its models is not better than its set's prior, or than
    linear interpolation."""
    lags, linear = [], side(measured, LINEAR).arm
    for arm in dict.fromkeys(arms):
        prior = PRIOR + "".join(re.findall("@[a-z0-9_]+", arm))
        bar = level(measured, Side(prior, LL), False)
        found = level(measured, Side(arm, LL), False) if measured.arm(arm) else None
        if bar and found and kind_of(measured.arm(arm)[0]) and found.value <= bar.value:
            lags.append(f"{arm} is no better than the {PRIOR}")
        line, error = (level(measured, Side(one, RMSE), False) for one in (linear, arm))
        if line and error and arm != linear and error.value >= line.value:
            lags.append(f"{arm} errs more than {linear}")
    return withheld(part, lags)


def joined(part: Part, measured: PairedEvaluation, arm: str) -> Part:
    """The part, undecided where the arm, which reads both sources, reaches less than the exact law
    of one source alone: it has not learned to join them."""
    found = level(measured, Side(arm, LL), False)
    laws = {law: level(measured, Side(law, LL), False) for law in (EXACT_OFF, EXACT_ON)}
    known = {law: bar.value for law, bar in laws.items() if bar}
    best = max(known, key=lambda law: known[law], default="")
    if not found or not best or found.value >= known[best]:
        return part
    told = (
        f"{arm} reaches {found.value:.3g} nats, {best}, which reads one source, {known[best]:.3g}"
    )
    return withheld(part, [told])


def better(
    measured: PairedEvaluation, one: str, other: str, by: float = 0.0, path: tuple[str, ...] = LL
) -> Part:
    """`one` reaches more likelihood than `other` plus `by`, or a smaller error; both learned."""
    left, right = side(measured, one, path, other), side(measured, other, path, one)
    more = f" by {by:g}" if by > 0 else f", not more than {-by:g} below" if by < 0 else ""
    word = "better than" if by >= 0 else "against"
    name = f"{measured.dataset}: {left.arm} {word} {right.arm}{more}"
    part = difference(measured, name, left, right, by, path == LL)
    return learned(part, measured, (left.arm, right.arm))


class Together(PairedEvaluation):
    """Cells of several data sets in one; `origins`: each one's own name and set, for its spread."""

    origins: dict[str, tuple[str, str]]

    def spread_kind(self, cell: str) -> str:
        """That of the cell on its own data set."""
        return self.spreads.kind(*self.origins[cell])


def together(found: dict[str, PairedEvaluation], spreads: Spreads) -> PairedEvaluation:
    """The one-dimensional sets' cells in one, each arm with its set's name:
    'grid_tnp-plain@dual_50-line'."""
    cells: dict[str, dict[Any, Any]] = {}
    origins: dict[str, tuple[str, str]] = {}
    kept, group = {}, None
    for dataset, measured in found.items():
        if not dataset.startswith("dual"):
            continue
        for cell, entry in measured.cells.items():
            words = cell.split("-")
            words[min(1, len(words) - 1)] += f"@{dataset}"
            name = "-".join(words)
            cells[name], origins[name] = entry, (cell, dataset)
            if measured.items is not None:
                group = measured.items.group
                kept[name] = measured.items.cells.get(cell, {})
    # the sets' tasks are drawn alike, but for the correlation: the same number, the same task
    dual = Together("dual", cells, spreads, None if group is None else Items(group, kept))
    dual.origins = origins
    return dual


def as_printed(measured: PairedEvaluation) -> tuple[str, str]:
    """The SetConv that stands for document G's, and a note where it is not the printed one."""
    arm = "grid_tnp-setconv_sum"
    known = measured.arm(side(measured, arm).arm)
    return (arm, "SetConv adds the plain sum") if known else ("grid_tnp-setconv", DIVIDED)


def matters_less(measured: PairedEvaluation, both: str, off: str) -> Part:
    """What the grid takes off the error is less of tasks with many points than of those with
    few."""
    pair = (off, both)
    arms = [side(measured, one, beside=other).arm for one, other in (pair, pair[::-1])]
    signs = (1.0, -1.0, -1.0, 1.0)
    sides = [Side(arm, path) for path in (FEW, MANY) for arm in arms]
    name = f"{measured.dataset}: the grid takes more off {arms[0]} where points are few"
    words = "difference of differences of rmse"
    part = combined(measured, name, words, dict(zip(sides, signs, strict=True)), 0.0, True)
    return learned(part, measured, arms)


def real(found: dict[str, PairedEvaluation], otherwise: str) -> PairedEvaluation:
    """The real month's evaluation, where it was run; else that of a set that is drawn."""
    return of(found, REAL if REAL in found else otherwise)


def of(found: dict[str, PairedEvaluation], dataset: str) -> PairedEvaluation:
    """A set's evaluation; one without cells where it was not evaluated."""
    return found.get(dataset, PairedEvaluation(dataset, {}))


def e1(found: dict[str, PairedEvaluation], spreads: Spreads) -> dict[Any, Any]:
    """MHCA at three correlations, and of the points alone."""
    dual = together(found, spreads)
    high, low, none, off = (
        f"grid_tnp-{name}" for name in ("mhca@dual_80", "mhca@dual_50", "mhca@dual_0",
                                        "mhca_off@dual_80")
    )  # fmt: skip
    parts = [better(dual, high, low), better(dual, low, none)]
    parts += [better(dual, off, none, -SAME), better(dual, none, off, -SAME)]
    note = f"'the same' is read as within {SAME:g} nats; {BRIEF}"
    text = (
        "The more the grid's quantity correlates with that of the points, the more it helps; the "
        "points alone do about as well as with a grid that does not correlate."
    )
    return conclude(dual, "E-1", text, "ongrid, figure 4.2", parts, note)


def e2(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """Both grid encoders against the plain TNP."""
    dual, plain = of(found, "dual_80"), "grid_tnp-plain"
    conv, told = as_printed(dual)
    pairs = (better(dual, one, plain, -NOTHING_LOST) for one in (conv, "grid_tnp-mhca"))
    parts = [joined(part, dual, side(dual, plain).arm) for part in pairs]
    text = "Grid encoders lose almost nothing against the plain TNP."
    note = f"read as not more than {NOTHING_LOST:g} nats at correlation 0.8; {told}; {BRIEF}"
    return conclude(dual, "E-2", text, "ongrid, table 4.1", parts, note)


def e3(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """SetConv of embedded points against SetConv of values."""
    dual = of(found, "dual_80")
    parts = [better(dual, "grid_tnp-setconv", "grid_tnp-setconv_late", FAR)]
    text = "To embed points before they are gridded is far better than after."
    note = f"'far better' is read as by {FAR:g} nats; {DIVIDED}; {BRIEF}"
    return conclude(dual, "E-3", text, "ongrid, figure 4.4", parts, note)


def e4(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """MHCA and SetConv on a grid that is not square, with the right index; both coarsened in three
    ways."""
    globe = real(found, "globe")
    conv, told = as_printed(globe)
    parts = [better(globe, "grid_tnp-mhca", conv, path=RMSE)]
    for other in ("before", "after"):
        best, worst = "grid_tnp-mhca_coarse", "grid_tnp-setconv_coarse"
        parts += [
            better(globe, best, f"grid_tnp-mhca_{other}", path=RMSE),
            better(globe, f"grid_tnp-setconv_{other}", worst, path=RMSE),
        ]
    text = "MHCA beats SetConv, and is best coarsened by the grid encoder, SetConv worst."
    kind = "real" if globe.dataset == REAL else "simulated"
    if conv != "grid_tnp-setconv":
        told += " but where it is coarsened"
    note = f"on {kind} temperatures; {told}; {BRIEF}"
    return conclude(globe, "E-4", text, "ongrid, figure 4.9", parts, note)


def e5(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """Nine nearest cells against all."""
    dual = of(found, "dual_80")
    parts = [better(dual, "grid_tnp-mhca", "grid_tnp-mhca_all")]
    text = "Targets that read nine nearest cells learn faster and better than those that read all."
    note = f"at equal steps; {BRIEF}"
    return conclude(dual, "E-5", text, "ongrid, figure 4.8", parts, note)


def e6(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """Both sources against each, of every model that was trained with one alone."""
    dual = real(found, "dual_80")
    pairs = [(one, f"{one}_{reads}") for one in ("plain", "mhca") for reads in ("off", "on")]
    told = [pair for pair in pairs if dual.arm(side(dual, f"grid_tnp-{pair[1]}").arm)]
    parts = [better(dual, f"grid_tnp-{a}", f"grid_tnp-{b}") for a, b in told or pairs]
    parts.append(matters_less(dual, "grid_tnp-mhca", "grid_tnp-mhca_off"))
    text = "Both sources beat either alone; the grid matters less the more points there are."
    return conclude(dual, "E-6", text, "ongrid, figure 4.10", parts, BRIEF)


def e7(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """Windows on the full grid against a grid that the encoder coarsens, by points."""
    there = real(found, "globe")
    full = "grid_tnp-mhca_swin" if there.dataset == REAL else "grid_tnp-mhca"
    coarse = "grid_tnp-mhca_coarse"
    parts = [better(there, full, coarse, path=MANY), gains(there, full, coarse)]
    text = "Swin at full resolution wins once there are enough points."
    note = (
        "read as: it errs less than a grid coarsened by the encoder where points are many, and "
        f"gains more on it there than where they are few; {BRIEF}"
    )
    return conclude(there, "E-7", text, "ongrid, figure 4.11", parts, note)


def gains(measured: PairedEvaluation, full: str, coarse: str) -> Part:
    """What the full grid takes off the error is more of tasks with many points than of those with
    few."""
    pair = (coarse, full)
    arms = [side(measured, one, beside=other).arm for one, other in (pair, pair[::-1])]
    sides = [Side(arm, path) for path in (MANY, FEW) for arm in arms]
    name = f"{measured.dataset}: the full grid takes more off {arms[0]} where points are many"
    words = "difference of differences of rmse"
    signs = dict(zip(sides, (1.0, -1.0, -1.0, 1.0), strict=True))
    return learned(combined(measured, name, words, signs, 0.0, True), measured, arms)


def e8(times: dict[str, Any]) -> dict[Any, Any]:
    """Seconds of one training step on the full grid over those of Swin's, as a benchmark measured
    them once; smaller grids and the multiplications, which no machine changes, beside it."""
    name = "steps a second of Swin on the coarse grid over the TNP's on the full one"
    known = {int(rows): told for rows, told in times.get("rows", {}).items()}
    ratios = {
        rows: tuple(told["full_cpu_s"] / pick(told["ours_cpu_s"]) for pick in (max, median, min))
        for rows, told in sorted(known.items())
    }
    said = [
        f"on {rows} x {2 * rows} cells {value:.3g} ({low:.3g} to {high:.3g} by the slowest and the "
        f"fastest of Swin's), {costs.full_over_coarse(rows):.3g} times the multiplications"
        for rows, (low, value, high) in ratios.items()
    ]
    if ROWS in ratios:
        low, value, high = ratios[ROWS]
        verdict = verdict_of(low, high, FASTER)
        numbers = {"value": value, "bar": FASTER, "interval": [low, high], "verdict": verdict}
        part = Part(
            name, verdict, numbers, f"{name}, should be above {FASTER:g}: " + "; ".join(said)
        )
    else:
        counted = f"{costs.full_over_coarse():.3g} times the multiplications, not timed"
        said.append(f"on {ROWS} x {2 * ROWS} {counted}, should be above {FASTER:g}")
        part = unmeasured(name, f"{name}: " + "; ".join(said))
    text = "Swin on a coarse grid runs over 80 times as many steps a second as the plain TNP at "
    text += "full resolution."
    cpu = times.get("machine", {}).get("cpu", "none")
    note = (
        f"1,500 points, 3,000 targets, document G's sizes; a training step on one thread of one "
        f"processor ({cpu}), measured once; G's 80 is of a card, and another machine may decide "
        "otherwise: `make bench-grids ARGS=full` times it"
    )
    return conclude(PairedEvaluation("era5", {}), "E-8", text, "ongrid, table 4.2", [part], note)


def e9(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """The grid model against trainable linear interpolation, and its spread."""
    globe = real(found, "globe")
    spread = side(globe, "grid_tnp-mhca", LAND)
    name = f"{globe.dataset}: {spread.arm} spreads more over land than at sea"
    over_land = learned(against(globe, name, spread, 1.0, True, "ratio"), globe, (spread.arm,))
    if globe.dataset == REAL:  # has no map of land
        over_land = unmeasured(name, f"{name}: not known where land is")
    parts = [
        better(globe, "grid_tnp-mhca", LINEAR, path=RMSE),
        over_land,
        better(globe, "grid_tnp-mhca", "grid_tnp-lbanp", path=RMSE),
    ]
    text = (
        "The final model beats linear interpolation and LBANP, with larger predicted spread over "
        "steep orography."
    )
    note = (
        BRIEF if globe.dataset == REAL else f"the simulated air varies by itself over land; {BRIEF}"
    )
    return conclude(globe, "E-9", text, "ongrid, table 4.3 and figure 4.12", parts, note)


def with_index(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """Our own: what the public code's index of cells costs, and whether what document G concludes
    with it holds with it here, too; E-4 and E-6 say what holds with the right one."""
    there, after = real(found, "globe"), "_published"
    costly = [(f"grid_tnp-{one}", f"grid_tnp-{one}{after}") for one in ("mhca", "setconv")]
    others = ("setconv", "mhca_off", "mhca_on")
    concluded = [(f"grid_tnp-mhca{after}", f"grid_tnp-{one}{after}") for one in others]
    parts = []
    for left, right in (*costly, *concluded):  # what errs so is wrong, not untrained
        one, other = side(there, left, RMSE, right), side(there, right, RMSE, left)
        name = f"{there.dataset}: {one.arm} better than {other.arm}"
        parts.append(difference(there, name, one, other, 0.0, False))
    text = (
        "The published index of cells costs both encoders, and with it MHCA beats SetConv and "
        "both sources beat either alone, as document G has it."
    )
    return conclude(there, "E-10", text, "our own; errata A.003", parts, BRIEF)


def check(home: Path) -> list[dict[Any, Any]]:
    """Every claim, from all sets under `home`."""
    found, spreads = evaluations(home, items.read), Spreads.read(home)
    file = home.parent / "mini" / costs.BENCHMARKS  # the document's sizes are no profile's
    times = read_json(file) if file.is_file() else {}
    return [
        e1(found, spreads), e2(found), e3(found), e4(found), e5(found), e6(found),
        e7(found), e8(times), e9(found), with_index(found),
    ]  # fmt: skip
