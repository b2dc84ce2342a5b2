"""Where the toy airspace is evaluated, and with which settings."""

from stages.params import Contexts as ContextSettings

NEARBY = ContextSettings(
    method="linear", places=8, horizontal_km=100.0, vertical_km=2.0, time_min=60.0
)
PREPARED, RUNS = "data/mini/prepared/toy", "reports/wind_nowcast/mini/runs/toy"
