"""How often winds lie in the central interval that a law gives them, of the predictions that are
kept: for the evaluation (measure.py) and for the judge that derives it again (agree.py)."""

import numpy as np
import polars as pl

from stages.scores import scores
from stages.winds.laws.layout import LEVEL


def covered(table: pl.DataFrame) -> np.ndarray | None:
    """How much of each wind (N,), of its two components, lies in the central interval of LEVEL;
    None of a model that gives no spread."""

    def vectors(name: str) -> np.ndarray:
        columns = [f"{axis}{name}_m_s" for axis in "uv"]
        return table.select(pl.col(columns).cast(pl.Float64)).to_numpy()

    if table["u_scale_m_s"].null_count():
        return None
    return scores.covered(vectors("_pred"), vectors("_scale"), vectors(""), LEVEL).mean(1)
