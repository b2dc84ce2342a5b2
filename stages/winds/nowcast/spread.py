"""The spread that a nowcast tells beside each wind, where it comes from and how far to trust it.

Recalibrated on the validation minutes (recalibration.py) where the cell was evaluated so; else the
model's own; of a model that gives none, its error on the test minutes, the same everywhere. m/s.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages import files
from stages.winds import breakdown
from stages.winds.recalibration import Recalibration

Pair = tuple[float, float]  # of u and of v


@dataclass(frozen=True)
class CellSpread:
    """How the spread of a cell is found, and the words for it."""

    words: str
    recalibration: Recalibration | None = None
    same: Pair | None = None  # everywhere, of a model that gives none

    def of(self, scale: np.ndarray | None, km: np.ndarray) -> list[Pair | None]:
        """The spreads at N places, from the model's own (N, 2) and the distances (N,) to what was
        measured; None where none is known."""
        if self.recalibration is not None:
            scale = self.recalibration.spread(scale, breakdown.distance_bins(km))
        return [self.same] * len(km) if scale is None else [(u, v) for u, v in scale.tolist()]


def of_cell(folder: Path, own: bool) -> CellSpread:
    """How the spread of a cell is found; `own`: the model gives one itself."""
    entry = evaluated(folder)
    numbers = entry.get("metrics", {})
    held = {
        name: f"{100 * numbers[name]['value']:.0f} %"
        for name in ("coverage_90", "coverage_90_recalibrated")
        if name in numbers
    }
    if "recalibration" in entry:
        before = f" ({held['coverage_90']} before)" if own else ""
        words = "the model's own, recalibrated" if own else "its error, as it was"
        return CellSpread(
            f"{words} on the validation minutes by distance to the nearest wind: its 90 % "
            f"interval held {held['coverage_90_recalibrated']} of the test winds{before}",
            Recalibration.read(entry["recalibration"]),
        )
    if own:
        known = held.get("coverage_90")
        told = f": its 90 % interval held {known} of the test winds" if known else ""
        return CellSpread(f"the model's own{told}")
    if not numbers:
        return CellSpread(f"not known: {folder.name} gives none and was not evaluated")
    east, north = (numbers[f"rmse_{axis}_m_s"]["value"] for axis in ("east", "north"))
    return CellSpread(
        "the model gives none: its RMSE on the test minutes, the same everywhere",
        same=(east, north),
    )


def evaluated(folder: Path) -> dict[str, Any]:
    """The entry of a cell in its evaluation (of a champion, the errors by which it won); empty if
    it was not evaluated."""
    if (folder / "reference.json").exists():
        return {"metrics": files.read_json(folder / "reference.json")["measured"]}
    metrics = folder.parent.parent.parent / "evaluated" / folder.parent.name / "metrics.json"
    found: dict[str, Any] = files.read_json(metrics)["cells"] if metrics.exists() else {}
    return found.get(folder.name, {})
