"""Figure C.7 of the thesis in numbers (C.13): what a model's size is worth, one argument varied, all else as at 20k.

An arm of it is known by its size: 'msa-shared-layers_4', 'geofno-plain-width_8'. Its cells are short trainings on data sets named '..._brief';
how many steps they took is read from their histories. `arms` are those of tabulate.over_seeds, `cells` what evaluation wrote. Errors: MSE of
test sets with 90 % bootstrap intervals over the independent sets.
"""

import re
from dataclasses import dataclass
from typing import Any

from stages.reporting.set_tables import MSE, digits, number, of_mean, parameters
from stages.reporting.tables import Table

VARIED = re.compile(r"([^-]+)-[^-]+-(layers|width)_(\d+)")
PANELS = {("msa", "layers"): ("C.7a", "MSA", "layers"), ("msa", "width"): ("C.7c", "MSA", "hidden dimension"),
          ("geofno", "width"): ("C.7e", "GeoFNO", "width")}  # figure, model, what is varied


@dataclass(frozen=True)
class Point:
    """One size: the argument's value, the arm ('DATASET/MODEL-ARM-SIZE'), its seeds, its count of parameters as text, and its MSE over seeds."""

    value: int
    arm: str
    seeds: int
    parameters: str
    mse: dict[str, Any]

    def end(self, name: str) -> float:
        """`low` or `high` of the interval; the mean where there is none."""
        return self.mse.get(name, self.mse["mean"])


@dataclass(frozen=True)
class Scan:
    """One panel of the figure: its number in the thesis, model, argument, and the points by the argument's value."""

    figure: str
    model: str
    argument: str
    points: tuple[Point, ...]


def scans(arms: dict[str, Any], cells: dict[str, Any], dataset: str) -> list[Scan]:
    """The panels of a data set of which two sizes or more were trained, in the document's order."""
    found: dict[tuple[str, str], list[Point]] = {}
    for name, content in arms.items():
        told = VARIED.fullmatch(name.removeprefix(dataset + "/"))
        if told and (told[1], told[2]) in PANELS and MSE in content["metrics"]:
            found.setdefault((told[1], told[2]), []).append(Point(int(told[3]), name, content["seeds"], parameters(cells, name), content["metrics"][MSE]))
    return [Scan(*words, tuple(sorted(found[key], key=lambda point: point.value))) for key, words in PANELS.items() if len(found.get(key, ())) > 1]


def steps(cells: dict[str, Any], found: list[Scan]) -> str:
    """'600', or 'from 400 to 600': the last steps of the scans' trainings, as their histories tell."""
    names = tuple(f"{point.arm}-s" for scan in found for point in scan.points)
    last = sorted({told[-1][0] for name, content in cells.items() if name.startswith(names) and (told := content.get("history", {}).get("val"))})
    return "an unknown number of" if not last else f"{last[0]:,}" if len(last) == 1 else f"from {last[0]:,} to {last[-1]:,}"


def course(values: list[float]) -> str:
    """How numbers run: 'falls throughout', 'rises throughout', 'falls and then rises', 'rises and falls'."""
    signs = [right < left for left, right in zip(values, values[1:], strict=False)]
    turns = sum(left != right for left, right in zip(signs, signs[1:], strict=False))
    if not turns:
        return "falls throughout" if signs[0] else "rises throughout"
    return "falls and then rises" if turns == 1 and signs[0] else "rises and falls"


def seen(scan: Scan) -> str:
    """What a panel shows, in a sentence: how the error runs, its extremes, how far apart they are, and whether their intervals meet."""
    best, worst = (pick(scan.points, key=lambda point: point.mse["mean"]) for pick in (min, max))
    apart = "do not meet" if best.end("high") < worst.end("low") else "meet"
    return (f"{scan.figure}: from {scan.argument} {scan.points[0].value} to {scan.points[-1].value} the error of {scan.model} "
            f"{course([point.mse['mean'] for point in scan.points])}; it is least at {best.value} ({digits(best.mse['mean'])}) and "
            f"{worst.mse['mean'] / best.mse['mean']:.2f} times as large at {worst.value}; the two intervals {apart}")


def words(cells: dict[str, Any], found: list[Scan]) -> str:
    """What stands below the table: how the sizes were trained, and what each panel shows."""
    seeds = sorted({point.seeds for scan in found for point in scan.points})
    return (f"Short trainings: {steps(cells, found)} steps each, {' or '.join(map(str, seeds))} seed{'' if seeds == [1] else 's'}, one learning rate "
            "for all (the document drew rates at random, and trained to the end), so a size that only learns more slowly looks worse here. "
            + ". ".join(seen(scan) for scan in found) + ". The document prints no numbers of this figure")


def table(arms: dict[str, Any], cells: dict[str, Any], dataset: str) -> tuple[Table, str] | None:
    """A row a size, panel by panel, and what they show; None where no argument was varied."""
    found = scans(arms, cells, dataset)
    if not found:
        return None
    rows = tuple((scan.figure, f"{scan.model}, {scan.argument}", str(point.value), point.parameters, number(point.mse, interval=True),
                  of_mean(arms, point.arm)) for scan in found for point in scan.points)
    titles = ("figure", "varied", "value", "parameters", "MSE", "of the mean's MSE [%]")
    return Table(f"sensitivity on {dataset}", titles, rows, frozenset({0, 1})), words(cells, found)
