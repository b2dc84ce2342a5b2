"""The fields contract: what every field model reads and returns (thesis section 3.3.1).

Shapes: B batch, C context points, T target points, X input dimensions, I context values, O target
values.
Inputs and values are standardised with the training rows' mean and standard deviation; masks are
True where a point is real.
"""

import os
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from stages.errors import InputError


@dataclass(frozen=True)
class Batch:
    """Context points with values, target points, and, when known, target values."""

    context_x: Tensor  # B C X
    context_y: Tensor  # B C I
    context_mask: Tensor  # B C, bool
    target_x: Tensor  # B T X
    target_mask: Tensor  # B T, bool
    target_y: Tensor | None = None  # B T O

    def to(self, device: str | torch.device) -> "Batch":
        """The same batch on another device."""
        return replace(
            self,
            **{name: value.to(device) for name, value in vars(self).items() if value is not None},
        )


@dataclass(frozen=True)
class Prediction:
    """A value per target component, in standardised units, without a spread. What gives one is a
    distribution (layers/heads.py), whose `scale` is its standard deviation (B T O)."""

    mean: Tensor  # B T O
    scale: ClassVar[None] = None


def single(
    context_x: Tensor, context_y: Tensor, target_x: Tensor, target_y: Tensor | None = None
) -> Batch:
    """One unpadded set as a batch of one: context_x (C, X), context_y (C, I), target_x (T, X),
    target_y (T, O)."""

    def ones(x: Tensor) -> Tensor:
        return torch.ones(1, len(x), dtype=torch.bool, device=x.device)

    return Batch(
        context_x[None],
        context_y[None],
        ones(context_x),
        target_x[None],
        ones(target_x),
        None if target_y is None else target_y[None],
    )


def collate(batches: list[Batch]) -> Batch:
    """Stack batches of any numbers of points into one, padding with zeros and masking what was
    padded."""

    def stacked(name: str) -> Any:
        parts = [getattr(batch, name) for batch in batches]
        if any(part is None for part in parts):
            return None
        longest = max(part.shape[1] for part in parts)
        padded = [
            torch.nn.functional.pad(part, (0, 0) * (part.dim() - 2) + (0, longest - part.shape[1]))
            for part in parts
        ]
        return torch.cat(padded)

    return Batch(**{name: stacked(name) for name in Batch.__dataclass_fields__})


def device() -> torch.device:
    """TRADEWIND_DEVICE if set, else CUDA where there is one, else the CPU. InputError for one
    that is not there."""
    wanted = os.environ.get("TRADEWIND_DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(wanted)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            "no such device here",
            where="TRADEWIND_DEVICE",
            found=repr(wanted),
            expected="cpu, cuda or cuda:N",
            remedy=str(error).splitlines()[0],
        ) from None
    return found
