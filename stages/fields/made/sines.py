"""Sines and random values: can a model hand each context value on to the target at the same place?
(thesis 3.5.1, equation 3.17)

Positions are N(0, I) in the plane; the value is sin(pi f x) cos(pi f y) of its frequency f, or,
where f is None, an independent N(0, 1): then nothing but the point itself tells its value. The
documents take f of 0.1 to 10 and 64 points a set. Points are drawn in float64 and rounded to
float32 first, so a file's values are the function at the file's own positions.
Shapes: S sets, P points. Positions and values without dimension.
"""

from pathlib import Path

import numpy as np

from stages.files import atomic_file, write_json
from stages.params import Sines
from stages.seeds import stream


def sine(points: np.ndarray, frequency: float) -> np.ndarray:
    """Equation 3.17 at points (..., 2): (...)."""
    phase = np.pi * frequency * points.astype(np.float64)
    return np.sin(phase[..., 0]) * np.cos(phase[..., 1])


def make(config: Sines, folder: Path) -> None:
    """Write points.npy (S, P, 2), values.npy (S, P), both float32, and meta.json into `folder`."""
    total = config.train + config.val + config.test
    points = (
        stream(config.seed, "sines", "points")
        .standard_normal((total, config.points, 2))
        .astype("<f4")
    )
    values = (
        stream(config.seed, "sines", "values").standard_normal((total, config.points))
        if config.frequency is None
        else sine(points, config.frequency)
    )
    for name, array in (("points", points), ("values", values.astype("<f4"))):
        with atomic_file(folder / f"{name}.npy") as file:
            np.save(file, array, allow_pickle=False)
    write_json(
        folder / "meta.json",
        {
            "frequency": config.frequency,
            "points": config.points,
            "seed": config.seed,
            "split": {"train": config.train, "val": config.val, "test": config.test},
        },
    )
