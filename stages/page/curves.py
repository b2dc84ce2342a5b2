"""reports/curves-PROFILE.csv: every curve of a profile as points, for `dvc plots show` and `dvc
plots diff` (template .dvc/plots/curves.json).

    figure   what is drawn together: EXPERIMENT/DATASET and its two axes
    series   the cell, or the model
    x, y     the point; units stand in the figure's name

Three kinds stand in the experiments' numbers: validation loss by steps trained (of cells whose
table tells it), error by lead (winds), cost by tokens (token mixing).
"""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stages.files import atomic_file

COLUMNS = ("figure", "series", "x", "y")
ERROR = "rmse_component_kn"
DIGITS = 6  # of a point: more cannot be seen
Point = tuple[str, str, float, float]


def points(experiment: str, content: Mapping[str, Any]) -> Iterator[Point]:
    """The points of all curves of an experiment's numbers."""
    for name, cell in content["cells"].items():
        dataset, _, series = name.partition("/")
        for step, loss in cell.get("history", {}).get("val", []):
            yield f"{experiment}/{dataset}: validation loss by steps", series, step, loss
        for lead, metrics in cell.get("by_lead", {}).items():
            if ERROR in metrics:
                figure = f"{experiment}/{dataset}: RMSE per component [kn] by lead [min]"
                yield figure, series, int(lead), metrics[ERROR]["value"]
    for model, costs in content.get("costs", {}).items():
        for tokens, cost in costs.items():
            yield f"{experiment}: operations by tokens", model, int(tokens), cost


def write(file: Path, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the curves of the experiments' numbers, by experiment."""
    text = io.StringIO(newline="")
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    for experiment, content in sorted(found.items()):
        for figure, series, x, y in points(experiment, content):
            out.writerow((figure, series, x, f"{y:.{DIGITS}g}"))
    with atomic_file(file, "w") as stream:
        stream.write(text.getvalue())
