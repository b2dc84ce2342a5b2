"""The documents' claims as checks on what was measured: holds, fails or undecided.

A claim is a set of parts that must all be true. A part compares errors on the same minutes
(paired.py) and holds or fails only when the 90 % interval of the difference leaves out zero. Of an
arm of one seed the spread of training that was measured of its kind of model is in the interval;
where none was measured the part is undecided, for another seed might flip it, and so is one whose
test is too short for an interval. One failed part fails the claim; otherwise one that is undecided,
or whose model does not exist yet, leaves it undecided. Nothing is trained here. Errors: RMSE per
component, kn.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from stages.claims import levels
from stages.claims.parts import UNDECIDED, Part, conclude, unmeasured
from stages.claims.trained import Marks, decided
from stages.spreads import kind_of
from stages.winds.paired import Side, WindEvaluation, part
from stages.winds.tables import DIVERGED

COMPETITIVE = 1.1  # "competitive": at most this many times the other's error
CONSTANT = "hour_average"  # one wind for all places of a minute
MARKS = Marks(
    ("metrics", "rmse_component_kn"), ("metrics", "rmse_permuted_component_kn"), ("metrics", "nse")
)
LEAST_SHARE = 0.05  # a distance bin with fewer of the points than this is not compared


def below(measured: WindEvaluation, left: str, right: str) -> Part:
    """The arm `left` has the smaller error of the two; undecided, by name, when one of them was
    not run or has not learned to read its context."""
    absent = [arm for arm in (left, right) if not measured.arm(arm)]
    name = f"{left} < {right}"
    if absent:
        return unmeasured(name, f"{name}: no trained {' and no '.join(absent)} here")
    sides = [Side(left), Side(right)]
    found = part(measured, name, sides, lambda e: e[1] - e[0], lambda e: {left: e[0], right: e[1]})
    return decided(found, measured, [left, right], MARKS)


def plainest(measured: WindEvaluation, model: str) -> str:
    """The arm that stands for a model, or the model's name when it was not run."""
    return next(iter(measured.model(model)), model)


def w1(measured: WindEvaluation) -> dict[Any, Any]:
    """Kernel averaging against k-NN and averages; as in the thesis, neighbours are the nearest
    under the scale that is learned."""
    learned, one = (
        next((arm for arm in measured.model(model) if "-requery" in arm), plainest(measured, model))
        for model in ("gka_mlp_tnn", "gka_tnn")
    )
    nearest = plainest(measured, "knn_tnn")
    order = [
        (learned, one),
        (one, nearest),
        (one, "persistence"),
        *((a, b) for a in (one, nearest) for b in ("hour_average", "day_average")),
    ]
    text = (
        "Averaging with scales learned for each place errs less than with one scale, that less "
        "than the nearest neighbours, and all of them less than the means of the hour and the day."
    )
    return conclude(
        measured, "W-1", text, "thesis, table 1.2", [below(measured, a, b) for a, b in order]
    )


def i1(measured: WindEvaluation) -> dict[Any, Any]:
    """The order of the set models at one size."""
    arms = [plainest(measured, model) for model in ("msa", "tfs", "gen", "cnp")]
    text = (
        "At equal size the wind error rises from self-attention over all points (MSA) to the "
        "encoder-decoder (TFS), the graph network (GEN) and the conditional neural process (CNP)."
    )
    parts = [below(measured, a, b) for a, b in pairwise(arms)]
    return conclude(measured, "I-1", text, "thesis, table 3.2", parts)


def over_leads(measured: WindEvaluation, arm: str) -> list[Part]:
    """What I-5 says of kernel averaging and an arm; [] where two leads were not measured of
    both."""
    both = measured.arm("kernel") and measured.arm(arm)
    leads = list(measured.bins("kernel", "lead")) if both else []
    if len(leads) < 2:
        return []
    ends = leads[0], leads[-1]
    sides = [Side(name, "lead", (lead,)) for lead in ends for name in ("kernel", arm)]
    short, long = (f"{float(lead):g} min" for lead in ends)
    near, far = f"kernel < {COMPETITIVE} x {arm} at {short}", f"{arm} < kernel at {long}"
    lost = f"kernel loses ground from {short} to {long}"
    parts = [
        part(
            measured,
            near,
            sides,
            lambda e: COMPETITIVE * e[1] - e[0],
            lambda e: {"kernel": e[0], arm: e[1]},
        ),
        part(measured, far, sides, lambda e: e[2] - e[3], lambda e: {"kernel": e[2], arm: e[3]}),
        part(measured, lost, sides, lambda e: e[2] - e[3] - e[0] + e[1]),
    ]
    return [decided(one, measured, [arm], MARKS) for one in parts]


def i5(measured: WindEvaluation) -> dict[Any, Any]:
    """Kernel averaging against MSA over leads."""
    text = "Kernel averaging keeps up at short leads and falls behind as the lead grows."
    parts = over_leads(measured, plainest(measured, "msa")) or [
        unmeasured("kernel against msa over leads", "no two leads at which both were measured")
    ]
    note = (
        "each model was trained at the profile's one lead and asked at the others; the document "
        "trained one for each lead, and for longer"
    )
    return conclude(measured, "I-5", text, "thesis, figure 3.3", parts, note)


def in_hull(measured: WindEvaluation, arm: str, leaves: bool) -> Part:
    """Whether an arm's predictions leave the convex hull of the context's values, as they should
    (`leaves`) or should not."""
    cells = measured.arm(arm)
    shares = [measured.cells[cell]["metrics"]["hull_share"] for cell in cells]
    name = f"{arm} {'leaves' if leaves else 'stays'}"
    if not shares:
        return unmeasured(name, f"{name}: not measured here")
    value = float(np.mean([share["value"] for share in shares]))
    if any("low" not in share for share in shares):
        short = measured.cells[cells[0]].get("undefined", {}).get("intervals", "no interval")
        return unmeasured(name, f"{name}: {100 * value:.1f} % outside; {short}")
    low, high = min(share["low"] for share in shares), max(share["high"] for share in shares)
    if len(shares) == 1 and leaves:
        known = measured.spreads.of(kind_of(cells[0]), "hull_share", "absolute")
        if known is None:
            why = "of one seed, and no spread of training was measured"
            return unmeasured(name, f"{name}: {100 * value:.1f} % outside, {why}")
        by_training = float(stdtrit(known.freedom, 0.95)) * known.absolute
        low = value - math.hypot(value - low, by_training)
        high = value + math.hypot(high - value, by_training)
    # "never" is refuted by one prediction; that none left in these minutes does not show that
    # none ever would
    verdict = ("holds" if low > 0 else UNDECIDED) if leaves else ("fails" if value > 0 else "holds")
    # the least low and the greatest high of the seeds' own intervals: a range, no interval of
    # their mean
    several = len(shares) > 1
    key = "range_over_seeds" if several else "interval"
    told = "range over seeds of the 90 % intervals" if several else "90 % interval"
    numbers = {
        "hull_share": value,
        key: [low, high],
        "seeds": len(shares),
        "verdict": verdict,
        "slices": max(measured.cells[cell]["slices"] for cell in cells),
    }
    why = f"{name}: {100 * value:.1f} % outside, {told} [{100 * low:.1f}, {100 * high:.1f}]"
    return decided(Part(name, verdict, numbers, why), measured, [arm], MARKS)


def i10(measured: WindEvaluation) -> dict[Any, Any]:
    """Shares of predictions outside the convex hull of the context's values.

    Over several seeds the ends are told as `range_over_seeds`, and the entry has no `interval`.
    """
    text = (
        "Kernel averaging never leaves the convex hull of the values it is given; a model that is "
        "no average does."
    )
    parts = [in_hull(measured, "kernel", False)]
    parts += [in_hull(measured, arm, True) for arm in measured.model("msa")]
    if len(parts) < 2:
        parts.append(unmeasured("msa leaves", "no trained msa here"))
    entry = conclude(measured, "I-10", text, "thesis, figure C.6", parts)
    own = (p.interval for p in parts[1:] if "hull_share" in p.numbers)
    return entry | {"interval": next(own, entry["interval"])}


def i12(measured: WindEvaluation) -> dict[Any, Any]:
    """Error near the context against error far from it, both as shares of what a constant errs at
    the same places: winds differ from bin to bin, whatever distance costs."""
    arm, note = plainest(measured, "msa"), ""
    parts = [unmeasured("msa near and far", "no two distances at which msa was measured")]
    if measured.arm(arm) and measured.arm(CONSTANT):
        points = measured.bins(arm, "distance")
        bins = [name for name, n in points.items() if n >= LEAST_SHARE * sum(points.values())]
        sides = [Side(one, "distance", (name,)) for name in bins for one in (arm, CONSTANT)]
        if len(bins) > 1:
            name = f"{arm} at {bins[0]} < at {bins[-1]}, as shares of {CONSTANT}'s error"
            found = part(
                measured,
                name,
                sides,
                lambda e: e[-2] / e[-1] - e[0] / e[1],
                lambda e: dict(
                    zip(bins, (a / b for a, b in zip(e[::2], e[1::2], strict=True)), strict=True)
                ),
                "of its error",
            )
            parts = [decided(found, measured, [arm], MARKS)]
        note = (
            f"{CONSTANT} is one wind for all places, so that its share is 1 at any distance; bins "
            f"with fewer than {100 * LEAST_SHARE:g} % of the points are left out"
        )
    text = "The error grows with the distance from the target to the nearest point of the context."
    return conclude(measured, "I-12", text, "thesis, table C.7", parts, note)


def diverged(measured: WindEvaluation, arm: str) -> bool:
    """Whether an arm's answers have left the range of winds: its error compares with nothing."""
    skill = levels.level(measured, levels.Side(arm, MARKS.skill), logarithm=False)
    return skill is not None and skill.value < DIVERGED


def i14(measured: WindEvaluation) -> dict[Any, Any]:
    """GEN with other operators of message passing against MSA."""
    arm = plainest(measured, "msa")
    operators = [name for name in measured.model("gen") if name.startswith("gen-message_")]
    parts = [
        unmeasured(f"{arm} < {name}", f"{name} diverged")
        if diverged(measured, name)
        else below(measured, arm, name)
        for name in operators
    ] or [unmeasured("msa < gen", "no GEN with another operator was trained here")]
    text = (
        "No operator of message passing brings the graph network (GEN) to the level of "
        "self-attention over all points (MSA)."
    )
    return conclude(measured, "I-14", text, "thesis, table C.10", parts)


CLAIMS: dict[str, tuple[Callable[[WindEvaluation], dict[Any, Any]], ...]] = {
    "wind_baselines": (w1,),
    "wind_nowcast": (i1, i5, i10, i12, i14),
}


def check(home: Path, experiment: str) -> list[dict[Any, Any]]:
    """Every claim of an experiment on every data set evaluated under `home` (its folder of one
    profile), in order of claim and data set; none of an experiment about which no document
    claims anything."""
    folders = sorted(file.parent for file in (home / "evaluated").glob("[!.]*/metrics.json"))
    found = [WindEvaluation(folder) for folder in folders]
    return [claim(measured) for claim in CLAIMS.get(experiment, ()) for measured in found]
