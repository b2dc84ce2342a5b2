"""Spreads of training that are known, as a project keeps them: for tests of what they decide."""

import math
from pathlib import Path

from scipy import stats

from stages import files, spreads

WINDS = ("gka_tnn", "knn_tnn", "gka_mlp_tnn", "msa", "tfs", "gen", "cnp")
# metrics that claims, and tests of them, compare by differences
DIFFERENCES = (
    *("hull_share", "skill", "r2", "accuracy", "correct", "copied", "valid", "x", "rounds"),
    *("nats", "nats_bound", "log_likelihood", "mse", "rmse", "rmse_many", "rmse_few"),
)


def content(kinds: tuple[str, ...], size: float, freedom: int = 20) -> dict:
    """A spread of one size, relative of every metric of some kinds of models, absolute of those
    that are compared by differences."""
    row = {"relative": size, "absolute": size, "scaled": size, "freedom": freedom}
    rows = dict.fromkeys((spreads.ALL, *DIFFERENCES), row)
    return {"rounding": {}, "seeds": {kind: dict(rows) for kind in kinds}}


def alike(size: float, freedom: int) -> float:
    """The spread of a kind among others that showed the same size: each variance of so few degrees
    of freedom counts in their median by the median of its own distribution."""
    typical = freedom / stats.chi2.ppf(0.5, freedom)
    share = (freedom + spreads.PRIOR * typical) / (freedom + spreads.PRIOR)
    return size * math.sqrt(share)


def keep(home: Path, kinds: tuple[str, ...], size: float, freedom: int = 20) -> None:
    """Keep such spreads for `home`, reports/EXPERIMENT/PROFILE of a project."""
    file = home.parents[2] / spreads.place(home.parent.name, home.name)
    files.write_json(file, content(kinds, size, freedom))
