"""How the cells of the small airspace are evaluated, and where they lie."""

import sys
from dataclasses import replace
from pathlib import Path

from stages.params import Contexts as ContextSettings
from stages.winds.evaluation_data import Settings

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
NEARBY = ContextSettings(
    method="linear", places=8, horizontal_km=100.0, vertical_km=2.0, time_min=60.0
)
SETTINGS = Settings(
    leads_min=(2.0, 5.0, 10.0, 12.0, 45.0, 600.0), resamples=100, seed=0, contexts=NEARBY
)
PREPARED, RUNS = "data/mini/prepared/toy", "reports/wind_nowcast/mini/runs/toy"


def curve(leads_min):
    """SETTINGS with other leads."""
    return replace(SETTINGS, leads_min=leads_min)
