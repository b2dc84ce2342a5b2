"""Spreads whose 90 % interval holds 90 %: a conformal recalibration on the validation minutes.

Split conformal prediction with normalised residuals (Lei et al. 2018, J. Am. Stat. Assoc. 113,
1094-1111, section 5.2). The score of one component of one wind is |measured - predicted| / scale;
the scale is the model's own standard deviation or, of a model that gives none, 1 m/s. The spread is
multiplied with a quantile of the scores, so that a normal interval around the prediction holds the
share LEVEL of winds that are exchangeable with those of the validation minutes. Winds of one
minute are not independent, and other days are other days: what the intervals hold on the test
minutes is measured and told beside them. Errors grow with the distance to what was measured, so
each bin of distance has a factor of its own. Shapes: N winds. Units: m/s.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

LEVEL = 0.9
LEAST = 50  # scores of a bin; one with fewer takes the factor of all bins
MINUTES = 20  # validation slices; fewer say little of other minutes, and nothing is recalibrated
ALL = "all"


@dataclass(frozen=True)
class Recalibration:
    """What a spread is multiplied with (of a model without one: what it is, m/s), by bin of
    distance and over ALL, and how many scores each factor rests on."""

    factors: dict[str, float]
    counts: dict[str, int]

    @classmethod
    def fit(
        cls,
        predicted: np.ndarray,
        measured: np.ndarray,
        scale: np.ndarray | None,
        distance: np.ndarray,
    ) -> "Recalibration":
        """From winds (N, 2) of the validation minutes, their predictions, spreads (N, 2; None of a
        model that gives none) and bins of distance (N,)."""
        error = np.abs(measured.astype(np.float64) - predicted)
        scores = error if scale is None else error / scale
        groups = {ALL: scores} | {str(name): scores[distance == name] for name in set(distance)}
        chosen = {
            name: group
            for name, group in sorted(groups.items())
            if name == ALL or group.size >= LEAST
        }
        return cls(
            {
                name: quantile(group.ravel()) / ndtri(0.5 + LEVEL / 2)
                for name, group in chosen.items()
            },
            {name: group.size for name, group in chosen.items()},
        )

    @classmethod
    def read(cls, entry: dict[str, Any]) -> "Recalibration":
        """From what `entry` wrote."""
        return cls(
            {name: one["value"] for name, one in entry.items()},
            {name: one["n"] for name, one in entry.items()},
        )

    def entry(self, own: bool) -> dict[str, Any]:
        """As it stands in metrics.json; `own`: the model gives a spread itself."""
        unit = "1" if own else "m/s"
        return {
            name: {"value": factor, "unit": unit, "n": self.counts[name]}
            for name, factor in self.factors.items()
        }

    def spread(self, scale: np.ndarray | None, distance: np.ndarray) -> np.ndarray:
        """The spread (N, 2), m/s, of winds with these spreads and bins of distance (N,)."""
        factor = np.array([self.factors.get(str(name), self.factors[ALL]) for name in distance])
        return np.repeat(factor[:, None], 2, 1) if scale is None else factor[:, None] * scale


def quantile(scores: np.ndarray) -> float:
    """The ceil((n + 1) LEVEL)-th smallest of n scores; the largest where there are too few."""
    rank = min(math.ceil((len(scores) + 1) * LEVEL), len(scores))
    return float(np.partition(scores, rank - 1)[rank - 1])
