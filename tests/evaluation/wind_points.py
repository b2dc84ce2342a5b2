"""Points with winds, and forecasts of them."""

from stages.winds import metrics
from stages.winds.metrics import Points


def values(given: Points) -> dict:
    found, undefined = metrics.summarise(*metrics.by_slice(metrics.columns(given), given.slice))
    assert undefined.keys() <= {"intervals"}
    return {name: entry["value"] for name, entry in found.items()}
