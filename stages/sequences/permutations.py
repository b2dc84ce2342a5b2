"""Orders in which the positions of a sequence are produced (thesis sections 4.2.1, 4.2.5 and
4.3.3).

`order[b, i]` is the POSITION produced at step i of row b, int64 (B, T); the identity is left to
right. The first `first` positions (a prompt) stay in front and in their order. A curriculum decides
sequence by sequence; the public code decides once for a whole batch. The fractal order is the
thesis' (middle, first quarter, third quarter, ...): the public code's visits siblings alternately
from left and right.
Shapes: B batch, T length.
"""

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from stages.errors import InputError

KINDS = ("left_to_right", "random", "fractal", "curriculum")


def left_to_right(batch: int, length: int) -> Int64[Tensor, "B T"]:
    """The identity for every row."""
    return torch.arange(length).repeat(batch, 1)


def random(
    batch: int, length: int, generator: torch.Generator, first: int = 0
) -> Int64[Tensor, "B T"]:
    """An independent uniform permutation for every row, drawn on the generator's device;
    positions below `first` stay in front."""
    shuffled = (
        torch.rand(batch, length - first, generator=generator, device=generator.device).argsort(1)
        + first
    )
    return (
        torch.cat((torch.arange(first, device=shuffled.device).repeat(batch, 1), shuffled), 1)
        if first
        else shuffled
    )


def fractal(length: int) -> Int64[Tensor, " T"]:
    """The middle, then the middles of both halves, and so on: breadth first, left before right."""
    found, halves = [], [(0, length)]
    for low, high in halves:  # grows while it is read
        if low < high:
            middle = (low + high) // 2
            found.append(middle)
            halves += [(low, middle), (middle + 1, high)]
    return torch.tensor(found, dtype=torch.int64)


def inverse(order: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
    """The step at which each position is produced."""
    return torch.empty_like(order).scatter_(
        -1, order, torch.arange(order.shape[-1], device=order.device).expand_as(order)
    )


def ahead(order: Int64[Tensor, "B T"], given: Bool[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
    """The order with the given positions first; among the given and among the others it stays as
    it was. `given` is by position."""
    return order.gather(1, (~given.gather(1, order)).to(torch.int8).argsort(dim=1, stable=True))


def draw(
    kind: str,
    batch: int,
    length: int,
    generator: torch.Generator,
    share: float = 0.0,
    first: int = 0,
) -> Int64[Tensor, "B T"]:
    """Orders of a `kind` of KINDS on the generator's device; `share`: probability that a
    curriculum's row is left to right.

    InputError for another kind, a share outside 0..1 or a prompt longer than the sequence.
    """
    if kind not in KINDS:
        raise InputError("no such order", found=repr(kind), expected=", ".join(KINDS))
    if not 0 <= share <= 1:
        raise InputError(
            "the share of left-to-right rows is not a probability",
            found=repr(share),
            expected="0 to 1",
        )
    if not 0 <= first <= length:
        raise InputError(
            "the prompt does not fit the sequence",
            found=str(first),
            expected=f"0 to {length} positions",
        )
    plain = left_to_right(batch, length).to(generator.device)
    if kind == "left_to_right":
        return plain
    if kind == "fractal":
        order = fractal(length).to(generator.device).repeat(batch, 1)
        return torch.cat((plain[:, :first], order[order >= first].view(batch, -1)), 1)
    shuffled = random(batch, length, generator, first)
    if kind == "random":
        return shuffled
    keep = torch.rand(batch, 1, generator=generator, device=generator.device) < share
    return torch.where(keep, plain, shuffled)
