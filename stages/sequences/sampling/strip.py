"""A network whose memory lies along the order: any steps of any rows are read in one pass (thesis
section D.3).

The key and value of a step lie at its place in the order, and a step sees the places up to its own.
So what a pass got wrong is written over by a later one before anything reads it, rows go at their
own pace, and a row without a step costs nothing: nothing is padded, moved or masked. On the
processor in float32 the attention is compiled; elsewhere torch's, in rectangles of rows and steps
(stages/layers/kernels/strip.py).
Shapes: R rows, T length, N steps of a pass, V vocabulary, H heads, L lanes, D and M: L and T filled
up.
"""

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from stages.layers.kernels import LANES
from stages.layers.kernels.strip import Steps, compiled, padded, takes
from stages.sequences.models.sigma_gpt import SigmaGPT
from stages.sequences.sampling.lean import Lean


class Strip:
    """To be used in torch.inference_mode(). `along` (R, T+1): a zero, then the tokens along
    `order`; the caller writes there what a later pass is to read."""

    def __init__(
        self, model: SigmaGPT, order: Int64[Tensor, "R T"], along: Int64[np.ndarray, "R T1"]
    ):
        self.lean, self.along, (rows, length) = Lean(model), along, order.shape
        self.places = self.lean.places(
            functional.pad(order[:, :-1], (1, 0), value=-1), order
        ).flatten(0, 1)
        deep, long = (
            -(-self.lean.lanes // 4) * 4,
            -(-length // LANES) * LANES,
        )  # as the compiled attention wants them
        self.memory = [
            self.places.new_zeros(rows, self.lean.heads, 2, deep, long) for _ in self.lean.layers
        ]  # keys and values
        self.over = (compiled if takes(self.places) else padded)(self.memory, self.lean.scale)

    def ask(self, steps: Steps, skip: int = 0) -> Float[Tensor, "M V"]:
        """One pass: logits of all but the first `skip` steps, given the tokens before each.
        Places of a row before those must have been read."""
        seen, at = (
            torch.from_numpy(part).to(self.places.device)
            for part in (self.along[steps[0], steps[1]], steps[2])
        )
        return self.lean.answer(
            self.lean.run(seen, self.places.index_select(0, at), self.over(steps))[skip:]
        )
