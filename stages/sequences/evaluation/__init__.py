"""Order models judged (thesis 4.3, D.1-D.2).

Samples by the rules of their kind, learned densities by the exact ones, passes by their lower
bounds.
Shapes: N sequences, T tokens, V of the vocabulary.
"""

from typing import Any

import numpy as np


def spread(rows: np.ndarray, count: int) -> np.ndarray:
    """At most `count` of the rows (N, ...), evenly spread."""
    count = min(count, len(rows))
    return rows[np.arange(count) * len(rows) // max(count, 1)]


def stands(arm: str, samplers: Any) -> str | None:
    """The sampler that an arm's quality is told by: GPT's from left to right, others' in their
    own order, diffusion's of most steps."""
    if arm.startswith("diffusion"):
        return max(samplers, key=lambda name: int(name.rpartition("_")[2]), default=None)
    return next(
        (name for name in ("own", "left_to_right") if name in samplers), next(iter(samplers), None)
    )
