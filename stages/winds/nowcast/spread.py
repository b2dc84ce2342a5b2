"""The spread that a nowcast tells beside each wind, where it comes from and how far to trust it.

Recalibrated on the validation minutes (recalibration.py) where the cell was evaluated so; else the
model's own; of a model that gives none, its error on the test minutes, the same everywhere. m/s.

A factor below 1 was found where many winds were known; where few are, or all on one side, the
model's own spread grows and the factor holds no more. So the own one stands where it is more than
LIKE times that of validation, which is the RMSE that was measured over the factor of all winds: an
own spread s with a factor f holds its share where f s is about the error. On half hours of the
simulated sky the example's 90 % intervals then hold 88 to 94 % of the winds, whether all winds are
known, the last minute's, or one; any LIKE from 1.05 to 1.2 does. Where all winds known lie on one
side of the area the model's own spread is too small as well: they hold 69 to 74 %.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages import files
from stages.units import KNOT_M_S
from stages.winds import breakdown
from stages.winds.recalibration import ALL, Recalibration

Pair = tuple[float, float]  # of u and of v
LIKE = 1.1  # times the usual spread, above which a context is unlike those of validation


@dataclass(frozen=True)
class CellSpread:
    """How the spread of a cell is found, and the words for it."""

    words: str
    recalibration: Recalibration | None = None
    same: Pair | None = None  # everywhere, of a model that gives none
    usual_m_s: float = np.inf  # the model's own on the validation minutes

    def of(self, scale: np.ndarray | None, km: np.ndarray) -> tuple[list[Pair | None], list[bool]]:
        """The spreads at N places, from the model's own (N, 2) and the distances (N,) to what was
        measured, None where none is known; and whether (N,) the own one stands for lack of winds
        around."""
        stands = np.zeros(len(km), bool)
        if self.recalibration is not None:
            made = self.recalibration.spread(scale, breakdown.distance_bins(km))
            if scale is not None:
                thin = np.sqrt((scale**2).mean(1)) > LIKE * self.usual_m_s
                stands = thin & (made < scale).any(1)
                made = np.where(stands[:, None], scale, made)
            scale = made
        found = [self.same] * len(km) if scale is None else [(u, v) for u, v in scale.tolist()]
        return found, stands.tolist()


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
        fitted = Recalibration.read(entry["recalibration"])
        rmse_kn = numbers.get("rmse_component_kn", {"value": np.inf})["value"]
        return CellSpread(
            f"{words} on the validation minutes by distance to the nearest wind: its 90 % "
            f"interval held {held['coverage_90_recalibrated']} of the test winds{before}",
            fitted,
            usual_m_s=rmse_kn * KNOT_M_S / fitted.factors[ALL],
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
