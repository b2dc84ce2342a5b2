"""Errors of winds compared on the same minutes, each told with its 90 % interval.

What is compared is a number made of several errors: a difference, or one of ratios. How far other
minutes would move it is the scatter over six runs of the minutes that its errors share
(stages/scores/runs.py), so what makes a minute hard for all models cancels. How far another
training would is added as stages/claims/levels.py has it: of an arm of one seed the spread that was
measured of its kind of model (spreads.py), of several the spread over them, and no less than what
was measured, for a few seeds may agree by chance. A test too short for an interval decides nothing.
Shapes: S slices, K seeds, G runs. Errors: RMSE per component, kn.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages.claims.levels import BLIND, Level, half_width
from stages.claims.parts import UNDECIDED, Evaluation, Part, unmeasured, verdict_of
from stages.errors import DataError
from stages.files import read_json
from stages.scores import runs
from stages.spreads import Spreads, kind_of
from stages.units import KNOT_M_S

RMSE = "rmse_component_kn"
SIDES = {"holds": "above zero", "fails": "below zero", "undecided": "around zero"}
Form = Callable[[Sequence[float]], float]


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

    def squares(self, arm: str, by: str, bins: tuple[str, ...]) -> pl.DataFrame:
        """Slice, n and one column of squared error a seed (e0, e1, ...), for the points in
        `bins`."""
        frame: Any = None
        for k, cell in enumerate(self.arm(arm)):
            here = self.errors.filter(
                (pl.col("cell") == cell) & (pl.col("by") == by) & pl.col("bin").is_in(bins)
            )
            here = (
                here.group_by("slice")
                .agg(pl.col("n").sum(), pl.col("squared_error_m2_s2").sum().alias(f"e{k}"))
                .sort("slice")
            )
            frame = here if frame is None else frame.join(here.drop("n"), on="slice", how="inner")
        squares: pl.DataFrame = frame.sort("slice")
        return squares

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


@dataclass(frozen=True)
class Errors:
    """The RMSE of each seed of an arm (K,), and without each run of minutes (G, K)."""

    arm: str
    by_seed: np.ndarray
    without: np.ndarray


def errors(measured: WindEvaluation, sides: list[Side]) -> tuple[list[Errors], np.ndarray]:
    """The errors of each side, and the slices (S,) that they share; no errors of fewer than two.

    Sides over the same breakdown `by` and bins, or over leads, are cut to the slices they share;
    distance bins are not, since one minute need not hold near and far points alike (there, a
    missing bin counts nothing in that minute).
    """
    tables = [measured.squares(side.arm, side.by, side.bins) for side in sides]
    key = [set(table["slice"]) for table in tables]
    common = sorted(set.union(*key) if sides[0].by == "distance" else set.intersection(*key))
    slices = np.array(common, np.int64)
    if len(common) < 2:
        return [], slices
    frame = pl.DataFrame({"slice": common}, schema={"slice": pl.Int32})
    found = []
    for side, table in zip(sides, tables, strict=True):
        joined = frame.join(table, on="slice", how="left").sort("slice").drop("slice").fill_null(0)
        sums = joined.to_numpy().astype(np.float64)
        found.append(Errors(side.arm, rmse(sums.sum(0)), rmse(runs.without_each(sums))))
    return found, slices


def rmse(sums: np.ndarray) -> np.ndarray:
    """Sums (..., 1 + K) of points and of squares in m²/s² -> RMSE (..., K) in kn; nan without a
    point."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: np.ndarray = np.sqrt(sums[..., 1:] / (2 * sums[..., :1])) / KNOT_M_S
    return found


def trainings(measured: WindEvaluation, found: list[Errors], form: Form, n: int) -> list[Level]:
    """How far other trainings of the arms would move what `form` makes of the errors: a level an
    arm that was trained; its spread is nan where nothing tells."""
    means = [float(one.by_seed.mean()) for one in found]
    value, levels = form(means), []
    for arm in dict.fromkeys(one.arm for one in found):
        kind = kind_of(measured.arm(arm)[0])
        if not kind:
            continue
        mine = [one.arm == arm for one in found]
        known = measured.spreads.of(kind, RMSE)
        moved = [
            m * (1 + known.relative * own) if known else m
            for m, own in zip(means, mine, strict=True)
        ]
        once = (form(moved) - value) ** 2 if known else math.nan
        count = len(measured.arm(arm))
        if count == 1:
            freedom = known.freedom if known else 0
            levels.append(Level(value, once, 0.0, 1, n, freedom=freedom, kind=kind))
            continue
        by_seed = [
            form(
                [
                    one.by_seed[k] if own else m
                    for one, m, own in zip(found, means, mine, strict=True)
                ]
            )
            for k in range(count)
        ]
        spread = max(float(np.var(by_seed, ddof=1)), once if known else 0.0)
        levels.append(Level(value, spread, 0.0, count, n))
    return levels


def part(
    measured: WindEvaluation,
    name: str,
    sides: list[Side],
    form: Form,
    numbers: Callable[[list[float]], dict[str, float]] = lambda means: {},
    unit: str = "kn",
) -> Part:
    """A part about what `form` makes of the sides' errors, which should be above zero; `numbers`:
    what else it tells, from the errors."""
    found, slices = errors(measured, sides)
    if not found:
        return unmeasured(name, f"{name}: {len(slices)} test minute(s) give no interval")
    means = [float(one.by_seed.mean()) for one in found]
    value = form(means)
    told = f"{name}: difference {value:.2f} {unit}"
    kept: dict[str, Any] = {
        **numbers(means),
        "difference_kn" if unit == "kn" else "difference": value,
        "seeds": max(len(one.by_seed) for one in found),
        "slices": len(slices),
        "verdict": UNDECIDED,
    }
    if short := runs.too_short(slices):
        return Part(name, UNDECIDED, kept, f"{told}; {short}")
    levels = trainings(measured, found, form, len(slices))
    if any(math.isnan(one.spread) for one in levels):
        why = BLIND
        return unmeasured(name, f"{told} {why}")
    without = np.array(
        [form([float(one.without[g].mean()) for one in found]) for g in range(runs.RUNS)]
    )
    if not np.isfinite([value, *without]).all():
        return unmeasured(name, f"{told}; one run of minutes holds all points of a side")
    minutes = Level(value, 0.0, runs.variance(without), 1, len(slices), groups=runs.RUNS)
    half = half_width([*levels, minutes]) or 0.0
    low, high = value - half, value + half
    verdict = verdict_of(low, high, 0.0)
    return Part(
        name,
        verdict,
        kept | {"interval": [low, high], "verdict": verdict},
        f"{told}, 90 % interval [{low:.2f}, {high:.2f}] {SIDES[verdict]}",
    )
