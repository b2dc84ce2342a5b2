"""Where a forecast errs: by lead time, altitude, distance to data and the age of the grid.

Distance is that to the nearest report, as winds have it (stages/winds/breakdown.py): in three
dimensions, the height as it is, on the plane of the area. Shapes: S tasks, T targets, C reports.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from stages.winds.joint.settings import Told
from stages.winds.joint.tasks import Tasks

LEADS_MIN = (15.0, 30.0, 60.0, 90.0)  # between bins
DISTANCES_KM = (20.0, 40.0, 80.0, 160.0)
LAYERS = 3  # of the area, as high as each other
AGES_H = (2.0, 4.0)


def nearest_km(tasks: Tasks) -> np.ndarray:
    """Distance (S, T) from targets to the nearest report; that of no report is never asked."""
    gap = tasks.target_x[:, :, None, :3] - tasks.context_x[:, None, :, :3]
    far = np.sqrt(np.square(gap).sum(3))
    found: np.ndarray = np.where(tasks.real[:, None], far, np.inf).min(2)
    return found


def labels(values: np.ndarray, edges: Sequence[float], unit: str) -> np.ndarray:
    """Bins between the edges, str that sort by value: '015-030 min' is 15 min and more, below
    30."""
    wide = len(f"{edges[-1]:.0f}")
    names = [f"{a:0{wide}.0f}-{b:0{wide}.0f} {unit}" for a, b in itertools.pairwise(edges)]
    return np.array(names)[np.clip(np.digitize(values, edges) - 1, 0, len(names) - 1)]


def of(tasks: Tasks, made: Told) -> dict[str, np.ndarray]:
    """By breakdown the label of each target (S, T). Beyond the last edge of distance is one bin."""
    lead, height = tasks.target_x[..., 3], 1e3 * tasks.target_x[..., 2]
    low, high = (1e3 * one for one in made.altitude_km)
    layers = [low + (high - low) * k / LAYERS for k in range(LAYERS + 1)]
    far = nearest_km(tasks)
    age = np.broadcast_to(tasks.age[:, None], lead.shape)
    leads = [one for one in LEADS_MIN if made.lead_min[0] < one < made.lead_min[1]]
    ages = [one for one in AGES_H if made.weather.age_h[0] < one < made.weather.age_h[1]]
    return {
        "lead": labels(lead, [made.lead_min[0], *leads, made.lead_min[1]], "min"),
        "altitude": labels(height, layers, "m"),
        "distance": labels(far, [0.0, *DISTANCES_KM, np.ceil(max(far.max(), 161.0))], "km"),
        "age": labels(age, [made.weather.age_h[0], *ages, made.weather.age_h[1]], "h"),
    }
