"""Order models judged (thesis 4.3, D.1-D.2).

Samples by the rules of their kind, learned densities by the exact ones, passes by their lower
bounds.
Shapes: N sequences, T tokens, V of the vocabulary.
"""

import numpy as np


def spread(rows: np.ndarray, count: int) -> np.ndarray:
    """At most `count` of the rows (N, ...), evenly spread."""
    count = min(count, len(rows))
    return rows[np.arange(count) * len(rows) // max(count, 1)]
