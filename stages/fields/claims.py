"""The documents' claims about sets of points (thesis 3.4, 3.5, C.5, C.8, C.11) as checks: holds,
fails or undecided.

A part compares two arms by the ratio of their errors (MSE on test sets; or updates), or one arm
with a bar. Errors are compared in logarithms: an arm's is the mean over its K seeds, its variance
that over seeds / K plus that of the cells' own 90 % bootstrap intervals over sets (which all seeds
share, so it is not divided). Two arms are taken as independent though they answer the same sets,
which makes an interval too wide rather than too narrow. 90 % intervals are Student's, with Welch's
degrees of freedom. An arm of one seed has the spread of training that was measured of its kind of
model (spreads.py), else it borrows the other arm's; where neither is known a part is undecided, for
another seed might flip it. A part holds or fails only when the interval leaves out its bar.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from stages.files import read_json
from stages.spreads import NOWHERE, Spread, Spreads, kind_of, metric_of
from stages.winds.claims import Measured, Part, conclude, unmeasured

NORMAL = 1.6448536269514722  # of a 90 % interval's half, in standard deviations
SOLVED = 0.01  # MSE below which the task of copying counts as learned (thesis, figure 3.4)
# "a wide margin": half, in the logarithm, of the smaller printed factor (table C.2: TFS .010 to MSA
# .007)
WIDE = (0.010 / 0.007) ** 0.5
ONE, MANY = 1.5, 2.0  # latents: an effective number below ONE is one of them, above MANY is many
# learning fails where the MSE without overlap is above this many times that with full overlap
DISJOINT = 2.0
# ends the name of a problem whose targets keep to a quarter; then `_` and the share of the context
# there, in percent
REGIONS = "_overlap"
# ends the name of a data set on which sizes were trained for a few steps (figure C.7): too few for
# any claim
BRIEF = "_brief"
OWN = {
    "msa": "shared",
    "tfs": "shared",
    "gen": "traditional",
    "cnp": "traditional",
}  # the encoding of each in table 3.2
AT = {"low": "at least ", "high": "at most ", "both": "unknown, of counts that were cut off: "}
BLIND = "of one seed, and the spread of training was not measured of its kind"
SINGLE = " (one seed; the spread of training is that of its kind)"
BUDGET = "each model was trained for this profile's steps, the document's for 2,000 epochs"


class Evaluated(Measured):
    """One data set's cells, as metrics.json has them."""

    def __init__(self, dataset: str, cells: dict[str, dict], spreads: Spreads = NOWHERE):
        self.dataset, self.cells, self.spreads = dataset, cells, spreads

    def sizes(self, model: str) -> dict[str, list[str]]:
        """Size -> arms of that size of a model, in the order of `model`."""
        found: dict[str, list[str]] = {}
        for arm in self.model(model):
            found.setdefault(arm.rpartition("-")[2], []).append(arm)
        return found

    def tabled(self, model: str, size: str) -> str:
        """The arm that stands for a model at a size: with the encoding of table 3.2, else the
        first; a name that was not run if none was."""
        arms, own = self.sizes(model).get(size, []), OWN.get(model, "plain")
        return next(
            (arm for arm in arms if arm.split("-")[1].startswith(own)),
            arms[0] if arms else f"{model}-{own}-{size}",
        )

    def encodings(self, model: str) -> list[tuple[str, str]]:
        """(shared, traditional) arms of a model that differ in the encoder of positions alone;
        their plain names where neither was run."""
        words = [
            arm.split("-")
            for arm in self.model(model)
            if re.match(r"[^-]+-(shared|traditional)", arm)
        ]
        kinds = dict.fromkeys(
            (word[1].removeprefix("shared").removeprefix("traditional"), "-".join(word[2:]))
            for word in words
        )
        names = lambda kind, size: tuple(
            "-".join(filter(None, (model, encoder + kind, size)))
            for encoder in ("shared", "traditional")
        )  # noqa: E731
        return [names(*one) for one in kinds] or [names("", "")]


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

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the variance; 0 of what nothing was trained for."""
        return self.freedom or self.seeds - 1


def varied(
    measured: Evaluated, arm: str, path: tuple[str, ...], values: list[float], by: str
) -> tuple[float, int, str]:
    """The variance of one training of an arm; its degrees of freedom and the kind of model that it
    was measured of, where that is not over the arm's seeds. 0 of what is not trained, nan where
    nothing tells."""
    if len(values) > 1:
        return float(np.var(values, ddof=1)), 0, ""
    kind = kind_of(measured.arm(arm)[0])
    known = measured.spreads.of(kind, metric_of(path), by) if kind else Spread(0.0, 0.0, 0.0, 0)
    return (math.nan, 0, "") if known is None else (getattr(known, by) ** 2, known.freedom, kind)


def leaf(content: dict, path: tuple[str, ...]) -> dict | None:
    """The {"value", ...} at a path inside a cell, None where there is none."""
    for name in path:
        content = content.get(name) if isinstance(content, dict) else None
    return content if isinstance(content, dict) and "value" in content else None


def level(measured: Evaluated, arm: str, path: tuple[str, ...]) -> Level | None:
    """An arm's number in logarithms; None where one of its cells (or the arm) lacks it."""
    found = [leaf(measured.cells[cell], path) for cell in measured.arm(arm)]
    if not found or None in found:
        return None
    log = lambda value: math.log(max(value, 1e-30))  # noqa: E731
    values = [log(one["value"]) for one in found]
    halves = [
        (log(one["high"]) - log(one["low"])) / (2 * NORMAL)
        for one in found
        if "low" in one and "high" in one
    ]
    within = float(np.mean(np.square(halves))) if len(halves) == len(found) else 0.0
    capped, n = any(one.get("capped") for one in found), max(one.get("n", 0) for one in found)
    spread, *source = varied(measured, arm, path, values, "relative")
    return Level(float(np.mean(values)), spread, within, len(values), n, capped, *source)


def half_width(levels: list[Level]) -> float | None:
    """Half of the 90 % interval of a sum or difference of independent levels; None where nothing
    tells how far they move."""
    known = [one for one in levels if one.degrees and not math.isnan(one.spread)]
    blind = [one for one in levels if math.isnan(one.spread)]
    within = sum(one.within for one in levels)
    if not known:
        return NORMAL * math.sqrt(within) if within > 0 and not blind else None
    # one measurement serves all arms of its kind
    owners = [one.kind or place for place, one in enumerate(known)]
    # what each variance adds: for its own arms and for those that borrow it
    shares: dict[str | int, float] = dict.fromkeys(owners, 0.0)
    for place, one in enumerate(known):
        shares[owners[place]] += one.spread / one.seeds
    widest = max(range(len(known)), key=lambda place: known[place].spread)
    shares[owners[widest]] += sum(known[widest].spread / one.seeds for one in blind)
    total = sum(shares.values()) + within
    least = dict.fromkeys(owners, math.inf)
    for owner, one in zip(owners, known, strict=True):
        least[owner] = min(least[owner], one.degrees)
    freedom = sum(share**2 / least[owner] for owner, share in shares.items())
    return (
        float(stdtrit(total**2 / freedom, 0.95)) * math.sqrt(total)
        if freedom > 0
        else NORMAL * math.sqrt(total)
    )


def judged(
    name: str,
    words: str,
    value: float,
    half: float | None,
    bar: float,
    above: bool,
    levels: list[Level],
    censored: str = "",
) -> Part:
    """A part about exp(value): `above`, it should exceed the bar; else stay below it. `censored`:
    the value is a `low` bound (it may be larger), a `high` one, or of two counts that were
    `both` cut off."""
    single = max(one.seeds for one in levels) < 2
    numbers: dict[str, Any] = {
        "value": math.exp(value),
        "bar": bar,
        "seeds": max(one.seeds for one in levels),
        "slices": max(one.n for one in levels),
    }
    if half is None:
        return Part(
            name,
            "undecided",
            numbers | {"verdict": "undecided"},
            f"{name}: {words} {math.exp(value):.3g}; {BLIND}",
        )
    low, high = math.exp(value - half), math.exp(value + half)
    verdict = "undecided" if low <= bar <= high else "holds" if (low > bar) == above else "fails"
    verdict = (
        "undecided"
        if verdict != {"low": "holds", "high": "fails", "both": ""}.get(censored, verdict)
        else verdict
    )
    numbers |= {"interval": [low, high], "verdict": verdict}
    told = (
        f"{words} {AT.get(censored, '')}{math.exp(value):.3g}, 90 % interval [{low:.3g}, "
        f"{high:.3g}], should be "
    )
    told += f"{'above' if above else 'below'} {bar:.3g}" + (SINGLE if single else "")
    return Part(name, verdict, numbers, f"{name}: {told}")


def lacking(measured: Evaluated, name: str, arms: list[str], path: tuple[str, ...]) -> Part:
    """The part that says which arms were not run, or what was not measured of them."""
    absent = [arm for arm in arms if not measured.arm(arm)]
    if absent:
        return unmeasured(name, f"{name}: no trained {' and no '.join(absent)} here")
    blind = [arm for arm in arms if level(measured, arm, path) is None]
    return unmeasured(name, f"{name}: {'/'.join(path)} was not measured for {' and '.join(blind)}")


def ratio(
    measured: Evaluated,
    left: str,
    right: str,
    bar: float = 1.0,
    path: tuple[str, ...] = ("metrics", "mse"),
) -> Part:
    """The arm `left` has the smaller number: right over left exceeds the bar."""
    name = f"{left} < {right}" + (f" by {bar:.2f} x" if bar != 1 else "")
    a, b = level(measured, left, path), level(measured, right, path)
    if a is None or b is None:
        return lacking(measured, name, [left, right], path)
    censored = {
        (False, False): "",
        (False, True): "low",
        (True, False): "high",
        (True, True): "both",
    }[a.capped, b.capped]
    what = "ratio of MSE" if path[-1] == "mse" else f"ratio of {path[-1]}"
    return judged(name, what, b.value - a.value, half_width([a, b]), bar, True, [a, b], censored)


def against(
    measured: Evaluated, arm: str, bar: float, above: bool, path: tuple[str, ...], words: str
) -> Part:
    """An arm's own number above or below a bar."""
    name, found = f"{arm} {'>' if above else '<'} {bar:g}", level(measured, arm, path)
    if found is None:
        return lacking(measured, name, [arm], path)
    return judged(name, words, found.value, half_width([found]), bar, above, [found])


def i2(measured: Evaluated) -> dict:
    """Shared against traditional encodings."""
    text = (
        "One encoder of positions for context and targets lowers the error of MSA and TFS on "
        "Poisson, and raises that of CNP on Poisson, Navier-Stokes and Darcy."
    )
    parts = []
    for model in ("msa", "tfs", "cnp") if measured.dataset.startswith("poisson") else ("cnp",):
        for shared, own in measured.encodings(model):
            parts.append(
                ratio(measured, own, shared) if model == "cnp" else ratio(measured, shared, own)
            )
    return conclude(
        measured,
        "I-2",
        text,
        "thesis, table 3.4",
        parts,
        "table 3.4 prints shared over not shared; its caption says the inverse",
    )


def i3(measured: Evaluated) -> dict:
    """The size of a model."""
    parts = []
    for model in ("msa", "tfs", "gen", "cnp"):
        sizes = measured.sizes(model)
        if not {"5k", "20k", "100k"} <= set(sizes):
            absent = [size for size in ("5k", "20k", "100k") if size not in sizes]
            parts.append(
                unmeasured(
                    model,
                    f"{model}: no trained "
                    f"{' and no '.join(f'{model} of {size}' for size in absent)} here",
                )
            )
            continue
        middle = measured.tabled(model, "20k")
        parts += [ratio(measured, middle, measured.tabled(model, size)) for size in ("5k", "100k")]
    return conclude(
        measured,
        "I-3",
        "20,000 parameters are about the best size; 100,000 overfit.",
        "thesis, section 3.4",
        parts,
    )


def i4(measured: Evaluated) -> dict:
    """MSA against GEN and TFS on Poisson."""
    sizes = list(measured.sizes("msa")) or ["20k"]
    parts = [
        ratio(measured, measured.tabled("msa", size), measured.tabled(model, size), WIDE)
        for size in sizes
        for model in ("gen", "tfs")
    ]
    note = (
        f"'wide' is read as {WIDE:.2f} x the MSE: half, in the logarithm, of the smaller printed "
        "factor (.010 to .007)"
    )
    return conclude(
        measured,
        "I-4",
        "MSA beats GEN and TFS on the Poisson problem by a wide margin.",
        "thesis, table C.2",
        parts,
        note,
    )


def i15(measured: Evaluated) -> dict:
    """GeoFNO against MSA."""
    mine = measured.sizes("msa")
    parts = [
        ratio(
            measured,
            measured.tabled("msa", size if size in mine or not mine else list(mine)[-1]),
            arm,
        )
        for size, arms in measured.sizes("geofno").items()
        for arm in arms
    ]
    parts = parts or [unmeasured("msa < geofno", "msa < geofno: no trained geofno here")]
    return conclude(
        measured,
        "I-15",
        "GeoFNO stays behind MSA on sparse, moving measurements.",
        "thesis, table C.2",
        parts,
    )


def each(measured: Evaluated, models: tuple[str, ...], claim: Callable[[str], Part]) -> list[Part]:
    """A claim on every arm of some models; on the model's bare name, which tells that it is
    missing, where none was run."""
    return [claim(arm) for model in models for arm in (measured.model(model) or [model])]


def i6(measured: Evaluated) -> dict:
    """Who copies a context without any law."""
    error = ("metrics", "mse")
    parts = each(
        measured,
        ("msa", "tfs", "gng"),
        lambda arm: against(measured, arm, SOLVED, False, error, "MSE"),
    )
    parts += each(
        measured,
        ("cnp", "gen", "perceiver"),
        lambda arm: against(measured, arm, SOLVED, True, error, "MSE"),
    )
    text = (
        "Models with a bottleneck (CNP, GEN, a perceiver of fewer latents than points) cannot copy "
        "a random context; MSA, TFS and GNG can."
    )
    return conclude(measured, "I-6", text, "thesis, figure 3.4", parts, BUDGET)


def i7(measured: Evaluated) -> dict:
    """How many latents one planted error moves."""
    path = ("probes", "latents", "effective")
    parts = each(
        measured,
        ("msa", "tfs"),
        lambda arm: against(measured, arm, ONE, False, path, "latents touched"),
    )
    parts += each(
        measured, ("gen",), lambda arm: against(measured, arm, MANY, True, path, "latents touched")
    )
    note = (
        "latents touched: the inverse of the sum of the squared shares of the gradient's norm; one "
        f"is below {ONE:g}, many above {MANY:g}"
    )
    return conclude(
        measured,
        "I-7",
        "A planted error touches one latent in MSA and TFS, and many in GEN.",
        "thesis, figure 3.5",
        parts,
        note,
    )


def nodes(arm: str) -> int:
    """The side of a GEN's lattice by its name, 0 where the name tells none:
    'gen-lattice_3-5k' -> 3."""
    found = re.search(r"-lattice_(\d+)-", arm)
    return int(found[1]) if found else 0


def i8(measured: Evaluated) -> dict:
    """Updates that undo a planted error."""
    path = ("probes", "correction", "steps")
    msa = next(iter(measured.model("msa")), "msa")
    parts = each(measured, ("gen",), lambda arm: ratio(measured, msa, arm, path=path))
    grids = sorted((nodes(arm), arm) for arm in measured.model("gen") if nodes(arm))
    if len({side for side, _ in grids}) > 1:
        parts.append(ratio(measured, grids[-1][1], grids[0][1], path=path))
    else:
        parts.append(
            unmeasured(
                "fewer nodes, more updates",
                "fewer nodes, more updates: no GEN of two sizes of grid here",
            )
        )
    text = "GEN needs more updates than MSA to undo a planted error, the more the fewer its nodes."
    return conclude(measured, "I-8", text, "thesis, figure 3.6", parts)


def i11(measured: Evaluated) -> dict:
    """Conditioning and depth of the decoder."""

    def pair(model: str, kind: str) -> tuple[str, str]:
        """The plain arm of a model and the one that differs from it in `kind`, at one size; both
        have an encoder of their own for targets."""
        other = next(
            (arm for arm in measured.model(model) if arm.split("-")[1] == kind), f"{model}-{kind}"
        )
        return "-".join((model, "traditional", *other.split("-")[2:])), other

    (plain, distance), (shallow, deep), (own, worse) = (
        pair("tfs", "distance"),
        pair("tfs", "decoder_4"),
        pair("gen", "decoder_4"),
    )
    parts = [
        ratio(measured, plain, distance),
        ratio(measured, deep, shallow),
        ratio(measured, own, worse),
    ]
    text = "Conditioning by distance hurts TFS; more layers in the decoder help TFS and hurt GEN."
    return conclude(measured, "I-11", text, "thesis, tables C.5 and C.6", parts)


def i13(measured: Evaluated) -> dict:
    """Contexts and targets in regions of their own."""
    arms = [
        arm
        for arm in measured.model("msa")
        if any("overlap" in measured.cells[cell].get("probes", {}) for cell in measured.arm(arm))
    ]
    parts = []
    for arm in arms:
        group = measured.cells[measured.arm(arm)[0]]["probes"]["overlap"]
        shares = sorted(group, key=int)
        none, some, whole = (
            level(measured, arm, ("probes", "overlap", share))
            for share in (shares[0], shares[len(shares) // 2], shares[-1])
        )
        if len(shares) < 2 or None in (none, some, whole) or int(shares[0]):
            parts.append(
                unmeasured(arm, f"{arm}: only overlaps of {', '.join(shares)} % were measured")
            )
            continue
        parts.append(
            judged(
                f"{arm} fails at 0 %",
                "MSE at 0 % over that at " + f"{int(shares[-1])} %",
                none.value - whole.value,
                half_width([none, whole]),
                DISJOINT,
                True,
                [none, whole],
            )
        )
        if len(shares) > 2:
            parts.append(
                judged(
                    f"{arm} recovers",
                    f"MSE at 0 % over that at {int(shares[len(shares) // 2])} %",
                    none.value - some.value,
                    half_width([none, some]),
                    1.0,
                    True,
                    [none, some],
                )
            )
    parts = parts or [unmeasured("msa by overlap", "no msa was measured at several overlaps here")]
    text = (
        "Learning fails when contexts and targets lie in disjoint regions, and recovers with their "
        "overlap."
    )
    how = (
        "as in the thesis a model was trained at each overlap"
        if measured.dataset.endswith(REGIONS)
        else (
            "the thesis trains a model at each overlap, here one that saw contexts from everywhere "
            "is asked"
        )
    )
    return conclude(
        measured,
        "I-13",
        text,
        "thesis, table C.8",
        parts,
        f"'fails' is read as more than {DISJOINT:g} x the MSE of full overlap; {how}",
    )


def overlapping(dataset: str) -> tuple[str, int]:
    """('darcy', 25) of 'darcy_overlap_25'; ('', 0) of a data set whose targets lie anywhere."""
    problem, _, share = dataset.partition(f"{REGIONS}_")
    return (problem, int(share)) if share.isdigit() else ("", 0)


def regional(found: list[Evaluated]) -> list[Evaluated]:
    """The data sets 'PROBLEM_overlap_SHARE' of one problem as one, 'PROBLEM_overlap', whose
    cells hold the MSE by share as if it were a probe."""
    joined: dict[str, dict[str, dict]] = {}
    for measured in found:
        problem, share = overlapping(measured.dataset)
        for cell, content in measured.cells.items() if problem else ():
            cells = joined.setdefault(problem + REGIONS, {})
            cells.setdefault(cell, {"probes": {"overlap": {}}})["probes"]["overlap"][str(share)] = (
                content["metrics"]["mse"]
            )
    return [Evaluated(name, cells, found[0].spreads) for name, cells in joined.items()]


def with_probe(name: str) -> Callable[[Evaluated], bool]:
    """Whether a probe was made on any cell of a data set; of those that part regions none is
    asked here."""
    return lambda measured: (
        not overlapping(measured.dataset)[0]
        and any(name in cell.get("probes", {}) for cell in measured.cells.values())
    )


def on(*problems: str) -> Callable[[Evaluated], bool]:
    """Whether a data set is one of these problems, simulated or real, and was learned in
    earnest."""
    return lambda measured: (
        measured.dataset.startswith(problems) and not measured.dataset.endswith(BRIEF)
    )


CLAIMS: dict[
    str, tuple[tuple[str, Callable[[Evaluated], dict], Callable[[Evaluated], bool]], ...]
] = {
    "sparse_fields": (
        ("I-2", i2, on("poisson", "navier_stokes", "darcy")),
        ("I-3", i3, on("")),
        ("I-4", i4, on("poisson")),
        ("I-11", i11, on("poisson")),
        ("I-15", i15, on("poisson", "navier_stokes")),
    ),
    "failure_modes": (
        ("I-6", i6, on("copies")),
        ("I-7", i7, with_probe("latents")),
        ("I-8", i8, with_probe("correction")),
        (
            "I-13",
            i13,
            lambda measured: (
                measured.dataset.startswith("sines") or measured.dataset.endswith(REGIONS)
            ),
        ),
    ),
}


def nowhere(claim: Callable[[Evaluated], dict]) -> dict:
    """The entry of a claim about which no data set of the profile tells anything."""
    return claim(Evaluated("–", {})) | {
        "verdict": "undecided",
        "why": "this profile has no data set or no probe that tells anything about it",
    }


def check(home: Path, experiment: str) -> list[dict]:
    """Every claim of an experiment on every data set under `home` (its folder of one profile) that
    it speaks of, in that order; once, undecided, where it speaks of none."""
    spreads = Spreads.read(home)
    found = [
        Evaluated(file.parent.name, read_json(file)["cells"], spreads)
        for file in sorted((home / "evaluated").glob("[!.]*/metrics.json"))
    ]
    found += regional(found)

    def entries() -> Iterator[dict]:
        for _, claim, speaks in CLAIMS[experiment]:
            mine = [measured for measured in found if speaks(measured)]
            yield from (claim(measured) for measured in mine) if mine else [nowhere(claim)]

    return list(entries())
