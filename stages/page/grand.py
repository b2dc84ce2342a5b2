"""The grand table, a page of its own: every model on every problem in one form, with what is known
of it beside its main number.

Main number, published value, bound and baseline are those that an experiment's page tells
(page.json); the rest stands in its metrics.json. What was not measured of a model is told so.
Steps are the last of those at which training was judged; memory is that of an answer to 1,000
targets from 100 context points. Seconds and FLOPs are of no record: seconds differ by machine, and
are told where benchmarks measured them; FLOPs of whole models are not counted.
"""

import re
from typing import Any

from stages.tables import parts
from stages.tables.tabulation import home_of

TITLES = (
    "experiment",
    "problem",
    "model",
    "measure",
    "value",
    "published",
    "bound",
    "baseline",
    "log-likelihood [nats]",
    "CRPS",
    "90 % interval holds [%]",
    "parameters",
    "steps trained",
    "memory of an answer [MB]",
)
LIKELIHOOD, CRPS, COVERAGE = ("log_likelihood",), ("crps", "crps_kn"), ("coverage_90",)
COUNTS = ("parameters", "weights")  # of a cell
MEMORY = ("memory_100_1000",)
QUALITY = slice(8, 12)  # log-likelihood to parameters: an experiment with none of them is left out
ABSENT = "–"


def rows(views: list[dict[str, Any]]) -> list[list[str]]:
    """The rows of every experiment and profile that tells one of these measures of a model."""
    found = []
    for view in views:
        home = home_of(view["experiment"], view["profile"])
        known = (home / parts.METRICS).exists()
        content = parts.in_git(home) if known else {"arms": {}, "cells": {}}
        mine = [[*result_row(view, one), *beside(content, one)] for one in view["results"]]
        if any(cell != ABSENT for row in mine for cell in row[QUALITY]):
            found += mine
    return found


def result_row(view: dict[str, Any], one: dict[str, Any]) -> list[str]:
    """What the experiment's page tells of a result."""
    where = f"{view['experiment']}/{view['profile']}"
    names = ("dataset", "name", "measure", "value", "published", "bound", "trivial")
    return [where, *(str(one[name]) for name in names)]


def beside(content: dict[str, Any], one: dict[str, Any]) -> list[str]:
    """Log-likelihood, CRPS with its unit, coverage, parameters, steps and memory of a result's
    arm."""
    arm = f"{one['dataset']}/{one['arm']}"
    metrics = content["arms"].get(arm, {}).get("metrics", {})

    def first(names: tuple[str, ...]) -> dict[str, Any]:
        return next((metrics[name] for name in names if name in metrics), {})

    likelihood, crps, coverage = map(first, (LIKELIHOOD, CRPS, COVERAGE))
    unit = f" {crps['unit']}" if crps.get("unit", "1") != "1" else ""
    cells = [
        cell
        for key, cell in content["cells"].items()
        if re.fullmatch(rf"{re.escape(arm)}(-s\d+)?", key)
    ]
    counts = [cell[name] for cell in cells for name in COUNTS if isinstance(cell.get(name), int)]
    steps = [int(step) for cell in cells for step, _ in cell.get("history", {}).get("val", [])]
    return [
        number(likelihood, 3),
        number(crps, 3, unit),
        f"{100 * coverage['mean']:.1f}" if "mean" in coverage else ABSENT,
        f"{max(counts):,}" if counts else ABSENT,
        f"{max(steps):,}" if steps else ABSENT,
        number(first(MEMORY), 3),
    ]


def number(metric: dict[str, Any], digits: int, unit: str = "") -> str:
    """A mean to that many digits, or that there is none."""
    return f"{metric['mean']:.{digits}g}{unit}" if "mean" in metric else ABSENT
