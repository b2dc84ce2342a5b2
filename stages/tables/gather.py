"""Cells of all data sets of an experiment and profile, and arms: the same model over its seeds.

An arm's interval is the mean over seeds of the cells' 90 % bounds; `std` is the sample standard
deviation over seeds (absent for one seed).
"""

import statistics
from pathlib import Path
from typing import Any

from stages.errors import DataError
from stages.files import read_json
from stages.tables.table import arm_of


def gather(home: Path) -> dict[str, Any]:
    """All cells of all data sets: {'simulated/knn': {'metrics': ..., 'by_lead': ...}}."""
    cells = {}
    for file in sorted((home / "evaluated").glob("[!.]*/metrics.json")):
        for cell, content in read_json(file)["cells"].items():
            cells[f"{file.parent.name}/{cell}"] = content
    if not cells:
        raise DataError(
            "there is nothing to tabulate", where=str(home / "evaluated"), remedy="run `dvc repro`"
        )
    return cells


def over_seeds(cells: dict[str, Any]) -> dict[str, Any]:
    """Each arm's metrics over its seeds."""
    arms: dict[str, dict[str, Any]] = {}
    for name, content in cells.items():
        arms.setdefault(arm_of(name), {})[name] = content["metrics"]
    result: dict[str, dict[str, Any]] = {}
    for arm, members in sorted(arms.items()):
        shared = set.intersection(*(set(metrics) for metrics in members.values()))
        result[arm] = {"seeds": len(members), "metrics": {}}
        for metric in sorted(shared):
            rows = [metrics[metric] for metrics in members.values()]
            summary = {
                "mean": statistics.fmean(r["value"] for r in rows),
                "unit": rows[0]["unit"],
                "n": rows[0]["n"],
            }
            if len(rows) > 1:
                summary["std"] = statistics.stdev(r["value"] for r in rows)
            for bound in ("low", "high"):
                if all(bound in r for r in rows):
                    summary[bound] = statistics.fmean(r[bound] for r in rows)
            result[arm]["metrics"][metric] = summary
    return result
