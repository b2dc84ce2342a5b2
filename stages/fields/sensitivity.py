"""Figure C.7 of the thesis in numbers (C.13): what a model's size is worth, one argument varied at
several learning rates, all else as at 20k.

An arm of it is known by its size: 'msa-shared-layers_4', 'geofno-plain-width_8'; arms that differ
by rate alone ('msa-shared_slow-layers_4') are told together. A cell's rate is read from the record
of its training, its steps from its history, and its validation loss is the least of that history,
as its weights are those of that step. `arms` are those of tabulate.over_seeds, `cells` what
evaluation wrote, `rates` what `rates` reads.
Errors: MSE of test sets with 90 % bootstrap intervals over the independent sets.
"""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from stages.fields.tables import MSE, of_mean, parameters
from stages.files import read_json
from stages.tables.table import NONE, Table, arm_of, digits, number

VARIED = re.compile(r"([^-]+)-[^-]+-(layers|width)_(\d+)")
PANELS = {
    ("poisson", "msa", "layers"): ("C.7a", "C.7b", "MSA", "layers"),
    ("poisson", "msa", "width"): ("C.7c", "C.7d", "MSA", "hidden dimension"),
    ("poisson", "geofno", "width"): ("C.7e", "C.7f", "GeoFNO", "width"),
    ("hour", "geofno", "width"): ("C.7g", "C.7h", "GeoFNO", "width"),
}  # problem, model, argument: figure by size, figure by rate, model, what is varied


@dataclass(frozen=True)
class Point:
    """One size at one rate: the argument's value, the learning rate (None where no record tells
    it), the arm ('DATASET/MODEL-ARM-SIZE'), its seeds, its count of parameters as text, its
    least validation loss (mean over seeds; None without a history), and its MSE over seeds."""

    value: int
    rate: float | None
    arm: str
    seeds: int
    parameters: str
    loss: float | None
    mse: dict[str, Any]

    def end(self, name: str) -> float:
        """`low` or `high` of the interval; the mean where there is none."""
        return self.mse.get(name, self.mse["mean"])


@dataclass(frozen=True)
class Scan:
    """A pair of the figure's panels, error by size and validation loss by rate: their numbers in
    the thesis, model, argument, and all points by the argument's value and the rate."""

    figure: str
    rated: str
    model: str
    argument: str
    trained: tuple[Point, ...]

    @property
    def points(self) -> tuple[Point, ...]:
        """One a size: at the rate of the least validation loss (the least rate of several, where
        no loss is told)."""
        values = dict.fromkeys(point.value for point in self.trained)

        def loss(point):
            return (point.loss is None, point.loss or 0.0)

        return tuple(
            min((point for point in self.trained if point.value == value), key=loss)
            for value in values
        )

    def lines(self) -> dict[int, list[Point]]:
        """The argument's value -> its points by rate, of sizes that were trained at two rates or
        more."""
        known = [
            point for point in self.trained if point.rate is not None and point.loss is not None
        ]
        found = {
            value: [point for point in known if point.value == value]
            for value in dict.fromkeys(point.value for point in known)
        }
        return {
            value: points
            for value, points in found.items()
            if len({point.rate for point in points}) > 1
        }


def varied(arm: str) -> re.Match[str] | None:
    """The model, argument and value of an arm 'DATASET/MODEL-ARM-SIZE' whose size is named by what
    is varied."""
    return VARIED.fullmatch(arm.partition("/")[2])


def rates(home: Path, cells: Iterable[str]) -> dict[str, float]:
    """Arm -> the learning rate at which its size was trained (the cell's own, where it has one),
    of those whose record is in `home` (reports/EXPERIMENT/PROFILE).

    A record changes with the weights that it tells of, so who reads the evaluations knows when it
    is another.
    """
    found = {}
    for name in cells:
        record = home / "records" / f"{name.replace('/', '.')}.train.json"
        if (told := varied(arm_of(name))) and record.is_file():
            params = read_json(record)["params"]
            budget, own = params["budget"], params.get("training", {})
            rate = budget["rates"].get(told[1], budget["learning_rate"])
            found[arm_of(name)] = own.get("learning_rate", rate)
    return found


def least(cells: dict[str, Any]) -> dict[str, float]:
    """Arm -> the least validation loss of its histories, the mean over seeds."""
    found: dict[str, list[float]] = {}
    for name, content in cells.items():
        if told := content.get("history", {}).get("val"):
            found.setdefault(arm_of(name), []).append(min(loss for _, loss in told))
    return {arm: fmean(losses) for arm, losses in found.items()}


def scans(
    arms: dict[str, Any], cells: dict[str, Any], dataset: str, rates: dict[str, float]
) -> list[Scan]:
    """The panels of a data set of which two sizes or more were trained, in the document's
    order."""
    problem, losses, found = dataset.partition("_")[0], least(cells), {}
    for name, content in arms.items():
        told = varied(name)
        if told and name.startswith(f"{dataset}/") and MSE in content["metrics"]:
            point = Point(
                int(told[3]),
                rates.get(name),
                name,
                content["seeds"],
                parameters(cells, name),
                losses.get(name),
                content["metrics"][MSE],
            )
            found.setdefault((problem, told[1], told[2]), []).append(point)
    ordered = {
        key: tuple(sorted(points, key=lambda point: (point.value, point.rate or 0.0, point.arm)))
        for key, points in found.items()
    }
    return [
        Scan(*words, ordered[key])
        for key, words in PANELS.items()
        if len({point.value for point in ordered.get(key, ())}) > 1
    ]


def steps(cells: dict[str, Any], found: list[Scan]) -> str:
    """'600', or 'from 400 to 600': the last steps of the scans' trainings, as their histories
    tell."""
    names = tuple(f"{point.arm}-s" for scan in found for point in scan.trained)
    last = sorted(
        {
            told[-1][0]
            for name, content in cells.items()
            if name.startswith(names) and (told := content.get("history", {}).get("val"))
        }
    )
    return (
        "an unknown number of"
        if not last
        else f"{last[0]:,}"
        if len(last) == 1
        else f"from {last[0]:,} to {last[-1]:,}"
    )


def course(values: list[float]) -> str:
    """How numbers run: 'falls throughout', 'rises throughout', 'falls and then rises', 'rises
    and falls'."""
    signs = [right < left for left, right in itertools.pairwise(values)]
    turns = sum(left != right for left, right in itertools.pairwise(signs))
    if not turns:
        return "falls throughout" if signs[0] else "rises throughout"
    return "falls and then rises" if turns == 1 and signs[0] else "rises and falls"


def seen(scan: Scan) -> str:
    """What a panel by size shows, in a sentence: how the error runs, its extremes, how far apart
    they are, and whether their intervals meet."""
    best, worst = (pick(scan.points, key=lambda point: point.mse["mean"]) for pick in (min, max))
    apart = "do not meet" if best.end("high") < worst.end("low") else "meet"
    return (
        f"{scan.figure}: from {scan.argument} {scan.points[0].value} to {scan.points[-1].value} "
        f"the error of {scan.model} {course([point.mse['mean'] for point in scan.points])}; it is "
        f"least at {best.value} ({digits(best.mse['mean'])}) and "
        f"{worst.mse['mean'] / best.mse['mean']:.2f} times as large at {worst.value}; the two "
        f"intervals {apart}"
    )


def listed(words: Iterable[Any]) -> str:
    """'1', '1 and 2', '1, 2 and 4'."""
    *most, last = map(str, words)
    return f"{', '.join(most)} and {last}" if most else last


def rated(scan: Scan) -> str:
    """What a panel by rate shows, in a sentence: each size's best rate, and whether the sizes
    come in one order at all rates. '' without rates."""
    lines = scan.lines()
    if not lines:
        return ""
    best = {
        value: min(points, key=lambda point: point.loss).rate for value, points in lines.items()
    }
    chosen = "; ".join(
        f"{rate:g} for {listed(value for value, one in best.items() if one == rate)}"
        for rate in sorted(set(best.values()))
    )
    shared = sorted(
        set.intersection(*({point.rate for point in points} for points in lines.values()))
    )
    loss = {(value, point.rate): point.loss for value, points in lines.items() for point in points}
    orders = {rate: sorted(lines, key=lambda value: loss[value, rate]) for rate in shared}
    told = [f"{listed(order)} at {rate:g}" for rate, order in orders.items()]
    same = len({tuple(order) for order in orders.values()}) == 1
    runs = (
        ""
        if len(lines) < 2 or len(orders) < 2
        else (
            (
                f"; from the least loss to the largest the order is {listed(orders[shared[0]])} at "
                "every rate"
            )
            if same
            else (
                "; from the least loss to the largest the order changes with the rate: "
                f"{'; '.join(told)}"
            )
        )
    )
    return (
        f"{scan.rated}: by {scan.argument}, the validation loss of {scan.model} is least at a "
        f"learning rate of {chosen}{runs}"
    )


def words(cells: dict[str, Any], found: list[Scan]) -> str:
    """What stands below the table: how the sizes were trained, and what each panel shows."""
    seeds = sorted({point.seeds for scan in found for point in scan.trained})
    tried = sorted(
        {point.rate for scan in found for point in scan.trained if point.rate is not None}
    )
    at = (
        (
            "one learning rate for all (the document drew rates at random, and trained to the "
            "end), so a size that only learns more slowly looks worse here"
        )
        if len(tried) < 2
        else (
            f"at learning rates of {listed(f'{rate:g}' for rate in tried)} (the document drew "
            "rates at random, and trained to the end); ✓ marks the rate of a size's least "
            "validation loss, at which it stands in the sentences and panels by size"
        )
    )
    told = [sentence for scan in found for sentence in (seen(scan), rated(scan)) if sentence]
    return (
        (
            f"Short trainings: {steps(cells, found)} steps each, {' or '.join(map(str, seeds))} "
            f"seed{'' if seeds == [1] else 's'}, {at}. "
        )
        + ". ".join(told)
        + ". The document prints no numbers of this figure"
    )


def table(
    arms: dict[str, Any], cells: dict[str, Any], dataset: str, rates: dict[str, float]
) -> tuple[Table, str] | None:
    """A row a size and rate, panel by panel, and what they show; None where no argument was
    varied."""
    found = scans(arms, cells, dataset, rates)
    if not found:
        return None
    rows = tuple(
        (
            f"{scan.figure}, {scan.rated[-1]}",
            f"{scan.model}, {scan.argument}",
            str(point.value),
            point.parameters,
            NONE if point.rate is None else f"{point.rate:g}",
            NONE if point.loss is None else digits(point.loss),
            "✓" if point in scan.points else "",
            number(point.mse, interval=True),
            of_mean(arms, point.arm),
        )
        for scan in found
        for point in scan.trained
    )
    unit = next(point.mse.get("unit", "1") for scan in found for point in scan.points)
    titles = (
        "figure",
        "varied",
        "value",
        "parameters",
        "learning rate",
        "least validation loss",
        "chosen",
        "MSE" + ("" if unit == "1" else f" [{unit}]"),
        "of the mean's MSE [%]",
    )
    return Table(f"sensitivity on {dataset}", titles, rows, frozenset({0, 1, 6})), words(
        cells, found
    )
