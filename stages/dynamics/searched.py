"""What searches left, read back: a table of trials a model, and the claim that rests on them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from stages.dynamics.layout import TRIALS

ORDERS = ("pre", "post")


@dataclass(frozen=True)
class Spread:
    """How far valid times differ over the finished trials of an order, Lyapunov times: their
    standard deviation with its 90 % interval over trials, and how many there are."""

    value: float
    low: float
    high: float
    trials: int


def tables(home: Path, dataset: str) -> dict[str, pl.DataFrame]:
    """Model -> its trials, from reports/EXPERIMENT/PROFILE/sweeps/DATASET; none where nothing was
    searched."""
    folder = home / "sweeps" / dataset
    return {
        file.parent.name: pl.read_csv(file, infer_schema_length=None)
        for file in sorted(folder.glob(f"[!.]*/{TRIALS}"))
    }


def spread(
    trials: pl.DataFrame, order: str, resamples: int, rng: np.random.Generator
) -> Spread | None:
    """Of the valid times on the test part, by resampling trials; None of fewer than three."""
    finished = trials.filter((pl.col("order") == order) & (pl.col("state") == "finished"))
    found = finished["vpt_test"].to_numpy()
    if len(found) < 3:
        return None
    drawn = rng.choice(found, (resamples, len(found))).std(1, ddof=1)
    low, high = np.quantile(drawn, (0.05, 0.95))
    return Spread(float(found.std(ddof=1)), float(low), float(high), len(found))
