"""A network whose memory lies along the order: any steps of any rows are read in one pass (thesis
section D.3).

The key and value of a step lie at its place in the order, and a step sees the places up to its own.
So what a pass got wrong is written over by a later one before anything reads it, rows go at their
own pace, and a row without a step costs nothing: nothing is padded, moved or masked. On the
processor in float32 the attention is compiled (strip_kernels.py); elsewhere torch's, in rectangles
of rows and steps.
Shapes: R rows, T length, N steps of a pass, V vocabulary, H heads, L lanes, D and M: L and T filled
up.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from stages.sequences.models.sigma_gpt import SigmaGPT
from stages.sequences.sampling.lean import Lean

LANES = 16  # places are kept in whole ones: float32 numbers of a 512-bit register
Steps = Int64[np.ndarray, "3 N"]  # rows, places, and row * T + place
Mix = Callable[[int, Tensor], Tensor]  # lean.py


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
        self.over = (
            compiled
            if self.places.device.type == "cpu" and self.places.dtype == torch.float32
            else padded
        )(self.memory, self.lean.scale)

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


def compiled(memory: list[Float[Tensor, "R H 2 D M"]], scale: float) -> Callable[[Steps], Mix]:
    """The attention of any steps, float32 on the processor."""
    from stages.layers.kernels.strip_code import read  # numba takes a third of a second

    arrays, size = [part.numpy() for part in memory], np.float32(scale)

    def over(steps: Steps) -> Mix:
        def mix(index: int, parts: Tensor) -> Tensor:
            mixed = torch.empty_like(parts[:, 0])
            read(parts.numpy(), steps, arrays[index], size, mixed.numpy())
            return mixed

        return mix

    return over


def padded(memory: list[Float[Tensor, "R H 2 D M"]], scale: float) -> Callable[[Steps], Mix]:
    """The same by torch: a row's steps side by side, as many of each row as there are of the one
    that has most."""

    def over(steps: Steps) -> Mix:
        rows, places = torch.from_numpy(steps[:2]).to(memory[0].device)
        begin = places.new_full((len(memory[0]),), memory[0].shape[4]).scatter_reduce(
            0, rows, places, "amin"
        )
        slots = places - begin[rows]
        deepest = places.new_zeros(len(begin), int(slots.max()) + 1)
        deepest[rows, slots] = places
        visible = (torch.arange(memory[0].shape[4], device=places.device) <= deepest[..., None])[
            :, None
        ]

        def mix(index: int, parts: Tensor) -> Tensor:
            kept, lanes = memory[index], parts.shape[3]
            kept[rows, :, :, :lanes, places] = parts[:, 1:].transpose(1, 2)
            query = kept.new_zeros(*deepest.shape, *kept.shape[1:4:2])
            query[rows, slots, :, :lanes] = parts[:, 0]
            found = functional.scaled_dot_product_attention(
                query.transpose(1, 2), *kept.mT.unbind(2), attn_mask=visible, scale=scale
            )
            return found.transpose(1, 2)[rows, slots, :, :lanes]

        return mix

    return over
