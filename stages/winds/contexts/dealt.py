"""The same contexts with their measured winds dealt anew: what a model answers then says whether it
uses where winds were measured.

Among its own nearest neighbours alone a target's winds may change places without a mean of them
changing at all. So the winds of local contexts are dealt among all rows that the slice's targets
read: a row has one other row's wind in every set in which it stands. Shapes: B sets, C context
points of each.
"""

from dataclasses import replace

import numpy as np
import torch

from stages.winds.contexts.given import Given


def dealt(given: Given, rng: np.random.Generator) -> Given:
    """The same targets and places, with the context's values dealt anew among all its rows."""
    if len(given.context_rows) == 1 and (given.context_rows >= 0).all():
        return given.shuffled(rng)
    rows, first, which = np.unique(given.context_rows, return_index=True, return_inverse=True)
    order = np.arange(len(rows))  # the padding, -1, keeps its place
    real = np.flatnonzero(rows >= 0)
    order[real] = rng.permutation(real)
    known = given.batch.context_y.flatten(0, 1)[torch.from_numpy(first[order])]
    values = known[torch.from_numpy(which.reshape(given.context_rows.shape))]
    return replace(given, batch=replace(given.batch, context_y=values))
