"""Reports of wind, batches of them, and a law of particles."""

import numpy as np
import torch

from stages import seeds
from stages.batches import single
from stages.layers import particles as layer

LAW = layer.Law(40, 180.0, 5.0, 0.1, 30.0, 3.0, 2e-4, 10.0)
PLACE, WIND = np.array([20.0, -40.0, 9.0]), np.array([30.0, -10.0])


def reports(rows):
    """Rows (x, y, z km, u, v m/s, seconds before the issue time), oldest first."""
    rows = torch.tensor(np.array(rows, dtype=np.float64).reshape(-1, 6), dtype=torch.float32)
    return layer.Reports(rows[:, :3], rows[:, 3:5], -rows[:, 5], (rows[:, 5] / 10).floor().long())


def batch(rows, targets):
    """The same as a batch in local units; heights are measured from 6 km, winds are m/s. Targets
    (T, 3) km."""
    rows = np.array(rows, dtype=np.float64).reshape(-1, 6)
    targets = np.array(targets, dtype=np.float64).reshape(-1, 3)

    def place(p):
        return np.stack((p[:, 0] / 100, p[:, 1] / 100, p[:, 2] - 6), 1)

    x = np.concatenate((place(rows), -rows[:, 5:] / 3600), 1)
    asked = np.concatenate((place(targets), np.full((len(targets), 1), 0.5)), 1)
    return single(*(torch.tensor(a, dtype=torch.float32) for a in (x, rows[:, 3:5], asked)))


def sky(steps=12, seed=0):
    """Four aircraft with one report a step: two on one level, one that climbs to the ceiling,
    one that leaves in the east."""
    rng, rows = seeds.stream(seed, "sky"), []
    for step in range(steps - 1, -1, -1):
        for x, y, z in (
            (-60 + 2 * step, 0, 8),
            (40, 30 - 2 * step, 8.3),
            (-20, 2 * step, 11.9),
            (312 - 0.5 * step, -50, 10),
        ):
            wind = (20 + 0.1 * x + 0.05 * y, 3 * z - 0.1 * y) + rng.normal(size=2)
            rows.append((x, y, z, *wind, 10 * step + 5))
    return rows
