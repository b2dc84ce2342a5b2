"""Attention to a memory that lies along an order, for reading alone: any steps of any rows in one
pass (thesis section D.3).

On the processor in float32 it is compiled (strip_code.py), and a row without a step costs nothing;
elsewhere torch's kernel answers, in rectangles of rows and steps.
Shapes: R rows, N steps of a pass, H heads, L lanes of a head, D and M: lanes and places filled up.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from stages import arithmetic

Steps = Int64[np.ndarray, "3 N"]  # rows, places, and row * T + place
# (block, queries | keys | values (N, 3, H, L), unscaled) -> mixed values, N H L numbers in order
Mix = Callable[[int, Tensor], Tensor]


def takes(tokens: Tensor) -> bool:
    """Whether the compiled attention is for these tokens: float32 on the processor."""
    return tokens.device.type == "cpu" and tokens.dtype == torch.float32 and arithmetic.compiled()


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
            kept: Any
            kept, lanes = memory[index], parts.shape[3]
            kept[rows, :, :, :lanes, places] = parts[:, 1:].transpose(1, 2)
            query = kept.new_zeros(*deepest.shape, *kept.shape[1:4:2])
            query[rows, slots, :, :lanes] = parts[:, 0]
            # mypy takes a star for all that is left
            found = functional.scaled_dot_product_attention(  # type: ignore[misc]
                query.transpose(1, 2), *kept.mT.unbind(2), attn_mask=visible, scale=scale
            )
            return found.transpose(1, 2)[rows, slots, :, :lanes]

        return mix

    return over
