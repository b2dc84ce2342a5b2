"""Numbers of trained arms against each other or against a bar, with 90 % intervals.

A level is an arm's number: the mean over its K seeds of the number or of its logarithm, its
variance that over seeds / K plus that of the cells' own 90 % intervals (which all seeds share, so
it is not divided). Two arms are taken as independent though they answer the same questions, which
makes an interval too wide rather than too narrow. 90 % intervals are Student's, with Welch's
degrees of freedom. An arm of one seed has the spread over seeds that was measured of its kind of
model, or what is typical of all kinds (spreads.py), else it borrows the other arm's; where none is
known a part is undecided, for another seed might flip it. Where every item's score was kept, arms
are compared item by item instead (paired.py).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from stages.claims.parts import UNDECIDED, Evaluation, Part, unmeasured, verdict_of
from stages.spreads import Spread, metric_of

NORMAL = 1.6448536269514722  # of a 90 % interval's half, in standard deviations
LEAST = 1e-30  # a smaller number has this one's logarithm
AT = {"low": "at least ", "high": "at most ", "both": "unknown, of counts that were cut off: "}
BLIND = "of one seed, and the spread over seeds was not measured"
SINGLE = " (one seed; the spread over seeds is that of its kind, or of all)"
WORDS = {"mse": "MSE"}


@dataclass(frozen=True)
class Side:
    """A number of an arm's cells: where it stands in each."""

    arm: str
    path: tuple[str, ...]


@dataclass(frozen=True)
class Level:
    """The logarithm of an arm's number: mean over seeds, variance of one training (nan where
    nothing tells it), and within the cells."""

    value: float
    spread: float
    within: float
    seeds: int
    n: int
    capped: bool = False
    freedom: int = 0  # of a variance that was measured elsewhere
    kind: str = ""  # of which kind of model it was measured: levels of one kind have one variance
    groups: int = 0  # whose scatter gave `within`; 0: its own degrees of freedom are not asked

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the variance; 0 of what nothing was trained for."""
        return self.freedom or self.seeds - 1


def varied(
    measured: Evaluation, arm: str, path: tuple[str, ...], values: list[float], by: str
) -> tuple[float, int, str]:
    """The variance of one training of an arm; its degrees of freedom and the kind of model that it
    was measured of, where that is not over the arm's seeds. 0 of what is not trained, nan where
    nothing tells."""
    if len(values) > 1:
        return float(np.var(values, ddof=1)), 0, ""
    kind = measured.spread_kind(measured.arm(arm)[0])
    known = measured.spreads.of(kind, metric_of(path), by) if kind else Spread(0.0, 0.0, 0.0, 0)
    return (math.nan, 0, "") if known is None else (getattr(known, by) ** 2, known.freedom, kind)


def leaf(content: Any, path: tuple[str, ...]) -> dict[Any, Any] | None:
    """The {"value", ...} at a path inside a cell, None where there is none."""
    for name in path:
        content = content.get(name) if isinstance(content, dict) else None
    return content if isinstance(content, dict) and "value" in content else None


def level(measured: Evaluation, side: Side, logarithm: bool = True) -> Level | None:
    """A number's level, of its logarithm or itself; None where one of the arm's cells (or the
    arm) lacks it."""
    found: list[Any] = [leaf(measured.cells[cell], side.path) for cell in measured.arm(side.arm)]
    if not found or None in found:
        return None
    form = (lambda value: math.log(max(value, LEAST))) if logarithm else float
    values = [form(one["value"]) for one in found]
    halves = [
        (form(one["high"]) - form(one["low"])) / (2 * NORMAL)
        for one in found
        if "low" in one and "high" in one
    ]
    told = len(halves) == len(found)
    within = max(float(np.mean(np.square(halves))), measured.narrowest) if told else 0.0
    spread, freedom, kind = varied(
        measured, side.arm, side.path, values, "relative" if logarithm else "absolute"
    )
    return Level(
        float(np.mean(values)),
        spread,
        within,
        len(values),
        max(one.get("n", 0) for one in found),
        any(one.get("capped") for one in found),
        freedom,
        kind,
    )


def half_width(levels: list[Level]) -> float | None:
    """Half of the 90 % interval of a sum or difference of independent levels; None where nothing
    tells how far they move."""
    known = [one for one in levels if one.degrees and not math.isnan(one.spread)]
    blind = [one for one in levels if math.isnan(one.spread)]
    within = sum(one.within for one in levels)
    if not known and (blind or within <= 0):
        return None
    # one measurement serves all arms of its kind
    owners = [one.kind or place for place, one in enumerate(known)]
    # what each variance adds: for its own arms and for those that borrow it
    shares: dict[str | int, float] = dict.fromkeys(owners, 0.0)
    for place, one in enumerate(known):
        shares[owners[place]] += one.spread / one.seeds
    if known:
        widest = max(range(len(known)), key=lambda place: known[place].spread)
        shares[owners[widest]] += sum(known[widest].spread / one.seeds for one in blind)
    total = sum(shares.values()) + within
    least = dict.fromkeys(owners, math.inf)
    for owner, one in zip(owners, known, strict=True):
        least[owner] = min(least[owner], one.degrees)
    freedom = sum(share**2 / least[owner] for owner, share in shares.items())
    freedom += sum(one.within**2 / (one.groups - 1) for one in levels if one.groups > 1)
    return (
        float(stdtrit(total**2 / freedom, 0.95)) * math.sqrt(total)
        if freedom > 0
        else NORMAL * math.sqrt(total)
    )


def judged(
    name: str,
    words: str,
    value: float,
    bar: float,
    above: bool,
    levels: list[Level],
    logarithm: bool = True,
    censored: str = "",
) -> Part:
    """A part about a sum or difference of levels, or exp(value) of `logarithm`s: `above`, it should
    exceed the bar; else stay below it. `censored`: the value is a `low` bound (it may be larger), a
    `high` one, or of two counts that were `both` cut off."""
    half, form = half_width(levels), math.exp if logarithm else float
    seeds = max(one.seeds for one in levels)
    numbers: dict[str, Any] = {
        "value": form(value),
        "bar": bar,
        "seeds": seeds,
        "slices": max(one.n for one in levels),
    }
    if half is None:
        why = f"{name}: {words} {form(value):.3g}; {BLIND}"
        return Part(name, UNDECIDED, numbers | {"verdict": UNDECIDED}, why)
    low, high = form(value - half), form(value + half)
    verdict = verdict_of(low, high, bar, above)
    if verdict != {"low": "holds", "high": "fails", "both": ""}.get(censored, verdict):
        verdict = UNDECIDED
    told = (
        f"{words} {AT.get(censored, '')}{form(value):.3g}, 90 % interval [{low:.3g}, "
        f"{high:.3g}], should be {'above' if above else 'below'} {bar:.3g}"
    )
    told += SINGLE if seeds < 2 else ""
    return Part(
        name, verdict, numbers | {"interval": [low, high], "verdict": verdict}, f"{name}: {told}"
    )


def censoring(least: bool, most: bool) -> str:
    """How a ratio is bounded whose upper number is a lower bound (`least`), or whose lower number
    is one (`most`): low, high, both or ''."""
    return {(False, False): "", (True, False): "low", (False, True): "high", (True, True): "both"}[
        least, most
    ]


def lacking(measured: Evaluation, name: str, sides: list[Side]) -> Part:
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


def ratio(
    measured: Evaluation, name: str, over: Side, under: Side, bar: float, above: bool
) -> Part:
    """A part about `over` / `under`."""
    a, b = level(measured, over), level(measured, under)
    if a is None or b is None:
        return lacking(measured, name, [over, under])
    words = f"ratio of {WORDS.get(over.path[-1], over.path[-1])}"
    censored = censoring(a.capped, b.capped)
    return judged(name, words, a.value - b.value, bar, above, [a, b], censored=censored)


def difference(
    measured: Evaluation, name: str, left: Side, right: Side, bar: float, above: bool
) -> Part:
    """A part about `left` - `right`."""
    a, b = level(measured, left, False), level(measured, right, False)
    if a is None or b is None:
        return lacking(measured, name, [left, right])
    words = f"difference of {left.path[-1]}"
    return judged(name, words, a.value - b.value, bar, above, [a, b], logarithm=False)


def against(
    measured: Evaluation,
    name: str,
    side: Side,
    bar: float,
    above: bool,
    words: str,
    logarithm: bool = False,
) -> Part:
    """A part about one number."""
    found = level(measured, side, logarithm)
    if found is None:
        return lacking(measured, name, [side])
    return judged(name, words, found.value, bar, above, [found], logarithm)
