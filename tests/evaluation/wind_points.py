"""Points with winds, and forecasts of them."""

import numpy as np

from stages.winds import metrics
from stages.winds.metrics import Points


def values(given: Points, resamples=100) -> dict:
    found, undefined = metrics.summarise(
        metrics.by_slice(metrics.columns(given), given.slice)[1],
        resamples,
        np.random.default_rng(0),
    )
    assert not undefined
    return {name: entry["value"] for name, entry in found.items()}
