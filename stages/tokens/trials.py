"""What a random search leaves, read back, and the best accuracy that is expected after k of its
trials (Dodge et al. 2019; thesis section 2.5.6, figure 2.3).

Of n trials with accuracies v_1 <= ... <= v_n the best of k, drawn with replacement, is v_i with
probability (i / n)^k - ((i - 1) / n)^k. A trial that diverged has an accuracy of 0.
Shapes: n trials, K = n numbers of trials.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

TRIALS = "trials.csv"  # draw, learning_rate, error_val, state
NEAR = 0.95  # of the best accuracy: from here on trials are no longer needed
Array = np.ndarray


def searched(home: Path) -> dict[str, dict[str, pl.DataFrame]]:
    """Set -> model -> its trials in the order of their draws, of a reports/EXPERIMENT/PROFILE; {}
    where nothing was searched."""
    found: dict[str, dict[str, pl.DataFrame]] = {}
    for file in sorted((home / "sweeps").glob(f"[!.]*/[!.]*/{TRIALS}")):
        rows = pl.read_csv(file, schema_overrides={"error_val": pl.Float64})
        found.setdefault(file.parent.parent.name, {})[file.parent.name] = rows
    return found


def accuracies(rows: pl.DataFrame) -> Array:
    """The accuracy of each trial (n,) on the rows that select."""
    return 1 - rows["error_val"].fill_null(1.0).to_numpy()


def expected(values: Array) -> Array:
    """(..., n) -> (..., K): the best accuracy expected after 1 .. n trials."""
    count = values.shape[-1]
    places = np.arange(count + 1) / count
    weights = np.diff(places ** np.arange(1, count + 1)[:, None], axis=1)  # K n
    return np.sort(values, -1) @ weights.T


def needed(values: Array) -> Array:
    """(..., n) -> (...): after how many trials the expected best is near the best of all; n + 1,
    for more than n, where it never is."""
    near = expected(values) >= NEAR * values.max(-1, keepdims=True)
    return np.where(near.any(-1), near.argmax(-1) + 1, values.shape[-1] + 1)


def search_entry(rows: pl.DataFrame) -> dict[str, Any]:
    """A model's search as metrics.json tells it: every trial, what is expected of them, and how
    many are needed, None for more than were made."""
    values = accuracies(rows)
    count = int(needed(values))
    return {
        "learning_rates": rows["learning_rate"].to_list(),
        "accuracies": values.tolist(),
        "expected": expected(values).tolist(),
        "needed": count if count <= len(values) else None,
    }
