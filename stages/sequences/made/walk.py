"""Lazy random walks from one of several starts (thesis D.1, equation D.1): easy forwards, hard
backwards.

The start is uniform over `starts`; each step is 0 with probability `stay`, else +1 or -1, each as
likely. Token = altitude - `lowest`, the lowest altitude within reach; so no walk meets an edge.
Altitudes without dimension.
Shapes: N sequences of T tokens.
"""

from pathlib import Path

import numpy as np

from stages.params.sequences import Walk
from stages.sequences.made import make_each


def make(config: Walk, folder: Path) -> None:
    """Write train.npy, val.npy, test.npy (N, T), int16, and meta.json into `folder`."""

    def draw(rng: np.random.Generator, number: int) -> np.ndarray:
        start = rng.choice(np.array(config.starts), size=(number, 1))
        chance = rng.random((number, config.length - 1))
        moves = np.where(chance < config.stay, 0, np.where(chance < (1 + config.stay) / 2, 1, -1))
        return np.concatenate([start, start + np.cumsum(moves, axis=1)], axis=1) - config.lowest

    make_each(
        config,
        folder,
        config.length,
        draw,
        {
            "starts": [start - config.lowest for start in config.starts],
            "stay": config.stay,
            "lowest": config.lowest,
            "vocabulary": config.vocabulary,
        },
    )
