"""The documents' claims as checks on what was measured: holds, fails or undecided.

A claim is a set of parts that must all be true. A part compares two errors on the same minutes:
slices and seeds are resampled together, so what both models share cancels, and the part holds or
fails only when the 90 % interval of the difference leaves out zero. Of an arm of one seed the
spread of training that was measured of its kind of model (spreads.py) is drawn with it; where none
was measured the part is undecided, for another seed might flip it. One failed part fails the claim;
otherwise one that is undecided, or whose model does not exist yet, leaves it undecided. Nothing is
trained here. Shapes: S slices, K seeds, R resamples. Errors: RMSE per component, kn.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import stdtrit

from stages import seeds
from stages.claims.parts import (
    RESAMPLES,
    UNDECIDED,
    Evaluation,
    Part,
    conclude,
    unmeasured,
    verdict_of,
)
from stages.claims.trained import Marks, decided
from stages.errors import DataError
from stages.files import read_json
from stages.scores import bootstrap
from stages.spreads import Spreads, kind_of
from stages.units import KNOT_M_S

COMPETITIVE = 1.1  # "competitive": at most this many times the other's error
# of a logarithm: Student's tails at few degrees of freedom leave the floating-point numbers
FARTHEST = 20.0
MARKS = Marks(
    ("metrics", "rmse_component_kn"), ("metrics", "rmse_permuted_component_kn"), ("metrics", "nse")
)
LEAST_SHARE = 0.05  # a distance bin with fewer of the points than this is not compared


class WindEvaluation(Evaluation):
    """One data set's evaluation: metrics.json and the squared errors of each slice."""

    plainest = "shared"

    def __init__(self, folder: Path):
        if not (folder / "slices.parquet").exists():
            raise DataError(
                "an evaluation has no slices.parquet", where=str(folder), remedy="run `dvc repro`"
            )
        cells = read_json(folder / "metrics.json")["cells"]
        super().__init__(folder.name, cells, Spreads.read(folder.parent.parent))
        self.errors = pl.read_parquet(folder / "slices.parquet")

    def squares(self, arm: str, by: str, bins: tuple[str, ...]) -> tuple[pl.DataFrame, int]:
        """Slice, n and one column of squared error a seed (e0, e1, ...), for the points in
        `bins`; and the number of seeds."""
        frame, cells = None, self.arm(arm)
        for k, cell in enumerate(cells):
            here = self.errors.filter(
                (pl.col("cell") == cell) & (pl.col("by") == by) & pl.col("bin").is_in(bins)
            )
            here = (
                here.group_by("slice")
                .agg(pl.col("n").sum(), pl.col("squared_error_m2_s2").sum().alias(f"e{k}"))
                .sort("slice")
            )
            frame = here if frame is None else frame.join(here.drop("n"), on="slice", how="inner")
        return frame.sort("slice"), len(cells)

    def bins(self, arm: str, by: str) -> dict[str, int]:
        """The bins of a breakdown in order, with their points."""
        here = self.errors.filter((pl.col("cell") == self.arm(arm)[0]) & (pl.col("by") == by))
        return dict(here.group_by("bin").agg(pl.col("n").sum()).sort("bin").rows())


@dataclass(frozen=True)
class Side:
    """What is compared: an arm's error on the points of some bins of a breakdown."""

    arm: str
    by: str = "all"
    bins: tuple[str, ...] = ("all",)


def errors(
    measured: WindEvaluation, sides: list[Side]
) -> tuple[list[tuple[float, np.ndarray]], int, int]:
    """For each side RMSE and its resamples (R,) in kn, all drawn alike; the number of seeds and of
    common slices.

    Sides over the same breakdown `by` and bins, or over leads, are cut to the slices they share;
    distance bins are not, since one minute need not hold near and far points alike (there, a
    missing bin counts nothing in that minute).
    """
    tables = [measured.squares(side.arm, side.by, side.bins) for side in sides]
    key = [set(table["slice"]) for table, _ in tables]
    common = sorted(set.union(*key) if sides[0].by == "distance" else set.intersection(*key))
    if len(common) < 2:
        return [], 0, len(common)
    frame = pl.DataFrame({"slice": common}, schema={"slice": pl.Int32})
    matrix, counts = [], []
    table: Any
    for table, k in tables:
        matrix.append(
            frame.join(table, on="slice", how="left")
            .sort("slice")
            .drop("slice")
            .fill_null(0)
            .to_numpy()
            .astype(np.float64)
        )
        counts.append(k)
    rng = seeds.stream(0, "claims", measured.dataset)
    drawn = bootstrap.resample(np.concatenate(matrix, 1), RESAMPLES, rng)
    picks = {k: rng.integers(k, size=(RESAMPLES, k)) for k in sorted(set(counts))}
    found, first = [], 0
    for side, table, k in zip(sides, matrix, counts, strict=True):
        total, part = table.sum(0), drawn[:, first : first + 1 + k]
        with np.errstate(divide="ignore", invalid="ignore"):
            by_seed = np.sqrt(part[:, 1:] / (2 * part[:, :1])) / KNOT_M_S
        own = trained_again(measured, side.arm) if k == 1 else 1.0
        found.append(
            (
                float((np.sqrt(total[1:] / (2 * total[0])) / KNOT_M_S).mean()),
                np.take_along_axis(by_seed, picks[k], 1).mean(1) * own,
            )
        )
        first += 1 + k
    return found, max(counts), len(common)


def trained_again(measured: WindEvaluation, arm: str) -> np.ndarray | float:
    """Factors (R,) by which a single training of an arm might have come out otherwise, Student's;
    nan where nothing tells, 1 of what is not trained. The sides of one part that are of one arm
    share them; arms of one kind share what is not known of its spread."""
    kind = kind_of(measured.arm(arm)[0])
    if not kind:
        return 1.0
    known = measured.spreads.of(kind, "rmse_component_kn")
    if known is None:
        return math.nan
    drawn = seeds.stream(0, "claims", "training", arm).standard_normal(RESAMPLES)
    chi = seeds.stream(0, "claims", "spread", kind).chisquare(known.freedom, RESAMPLES)
    drawn /= np.sqrt(chi / known.freedom)
    return np.exp((known.relative * drawn).clip(-FARTHEST, FARTHEST))


def part(
    name: str,
    value: float,
    draws: np.ndarray,
    numbers: dict[Any, Any],
    seeds_used: int,
    slices: int,
) -> Part:
    """A part from the difference that should be above zero and its resamples."""
    draws = draws[np.isfinite(draws)]
    if not len(draws):
        return unmeasured(
            name,
            f"{name}: difference {value:.2f} kn of one seed, and the spread of training was not "
            "measured of its kind",
        )
    low, high = bootstrap.interval(draws)
    verdict = verdict_of(low, high, 0.0)
    numbers = {
        **numbers,
        "difference_kn": value,
        "interval": [low, high],
        "seeds": seeds_used,
        "slices": slices,
        "verdict": verdict,
    }
    sides = {"holds": "above zero", "fails": "below zero", "undecided": "around zero"}
    return Part(
        name,
        verdict,
        numbers,
        f"{name}: difference {value:.2f} kn, 90 % interval [{low:.2f}, {high:.2f}] "
        f"{sides[verdict]}",
    )


def below(measured: WindEvaluation, left: str, right: str) -> Part:
    """The arm `left` has the smaller error of the two; undecided, by name, when one of them was
    not run or has not learned to read its context."""
    absent = [arm for arm in (left, right) if not measured.arm(arm)]
    name = f"{left} < {right}"
    if absent:
        return unmeasured(name, f"{name}: no trained {' and no '.join(absent)} here")
    found, k, slices = errors(measured, [Side(left), Side(right)])
    if not found:
        return unmeasured(name, f"{name}: {slices} test minute(s) give no interval")
    (a, a_draws), (b, b_draws) = found
    found_part = part(name, b - a, b_draws - a_draws, {left: a, right: b}, k, slices)
    return decided(found_part, measured, [left, right], MARKS)


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
    found, k, slices = errors(measured, sides)
    if not found:
        return []
    (ks, ks_d), (ms, ms_d), (kl, kl_d), (ml, ml_d) = found
    short, long = (f"{float(lead):g} min" for lead in ends)
    near = f"kernel < {COMPETITIVE} x {arm} at {short}"
    gap, gap_d = COMPETITIVE * ms - ks, COMPETITIVE * ms_d - ks_d
    lost, lost_d = kl - ml - ks + ms, kl_d - ml_d - ks_d + ms_d
    parts = [
        part(near, gap, gap_d, {"kernel": ks, arm: ms}, k, slices),
        part(f"{arm} < kernel at {long}", kl - ml, kl_d - ml_d, {"kernel": kl, arm: ml}, k, slices),
        part(f"kernel loses ground from {short} to {long}", lost, lost_d, {}, k, slices),
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
        "trained one for each lead"
    )
    return conclude(measured, "I-5", text, "thesis, figure 3.3", parts, note)


def in_hull(measured: WindEvaluation, arm: str, leaves: bool) -> Part:
    """Whether an arm's predictions leave the convex hull of the context's values, as they should
    (`leaves`) or should not."""
    cells = measured.arm(arm)
    shares = [measured.cells[cell]["metrics"]["hull_share"] for cell in cells]
    name = f"{arm} {'leaves' if leaves else 'stays'}"
    if not shares or any("low" not in share for share in shares):
        return unmeasured(name, f"{name}: not measured here")
    value = float(np.mean([share["value"] for share in shares]))
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
    return Part(name, verdict, numbers, why)


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
    """Error near the context against error far from it."""
    arm, parts, note = plainest(measured, "msa"), [], ""
    if measured.arm(arm):
        points = measured.bins(arm, "distance")
        bins = [name for name, n in points.items() if n >= LEAST_SHARE * sum(points.values())]
        sides = [Side(arm, "distance", (name,)) for name in bins]
        found, k, slices = errors(measured, sides) if len(bins) > 1 else ([], 0, 0)
        if found:
            (near, near_draws), (far, far_draws) = found[0], found[-1]
            numbers = {name: value for name, (value, _) in zip(bins, found, strict=True)}
            parts = [
                part(
                    f"{arm} at {bins[0]} < at {bins[-1]}",
                    far - near,
                    far_draws - near_draws,
                    numbers,
                    k,
                    slices,
                )
            ]
        note = f"bins with fewer than {100 * LEAST_SHARE:g} % of the points are left out"
    parts = parts or [unmeasured("msa near and far", "no two distances at which msa was measured")]
    text = "The error grows with the distance from the target to the nearest point of the context."
    return conclude(measured, "I-12", text, "thesis, table C.7", parts, note)


def i14(measured: WindEvaluation) -> dict[Any, Any]:
    """GEN with other operators of message passing against MSA."""
    arm = plainest(measured, "msa")
    operators = [name for name in measured.model("gen") if name.startswith("gen-message_")]
    parts = [below(measured, arm, name) for name in operators] or [
        unmeasured("msa < gen", "no GEN with another operator was trained here")
    ]
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
