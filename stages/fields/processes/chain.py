"""Whole functions of a model that answers each target for itself: a target is asked, its value
joins the context, the next is asked (Bruinsma et al. 2023, autoregressive conditional neural
processes). By the chain rule that is a law of all targets together, whatever the model; the latent
process (models/neural_process.py) has one of its own, without a chain.

Shapes: S tasks, T targets in the order in which they are asked, D draws.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from stages.batches import Batch
from stages.layers.heads import Predictive

Model = Callable[[Batch], Predictive]


def asked(batch: Batch, place: int, values: Tensor) -> Batch:
    """What is known when the target `place` is asked: the context and the `values` (S, place, 1) of
    the targets before."""
    before = batch.target_x[:, :place]
    known = torch.ones_like(before[:, :, 0], dtype=torch.bool)
    return Batch(
        torch.cat((batch.context_x, before), 1),
        torch.cat((batch.context_y, values), 1),
        torch.cat((batch.context_mask, known), 1),
        batch.target_x[:, place : place + 1],
        batch.target_mask[:, place : place + 1],
    )


@torch.no_grad()
def joint(model: Model, batch: Batch) -> Tensor:
    """The log-density of each task's targets together, in nats: (S,)."""
    y = batch.target_y
    assert y is not None
    found = y.new_zeros(len(y), dtype=torch.float64)
    for place in range(y.shape[1]):
        law = model(asked(batch, place, y[:, :place]))
        found += law.log_prob(y[:, place : place + 1]).double().sum((1, 2))
    return found


@torch.no_grad()
def drawn(model: Model, batch: Batch, count: int, generator: torch.Generator) -> Tensor:
    """`count` functions of one task's law, at its targets: (D, T)."""
    many = replace(
        batch,
        target_y=None,
        **{
            name: getattr(batch, name).expand(count, -1, *getattr(batch, name).shape[2:])
            for name in ("context_x", "context_y", "context_mask", "target_x", "target_mask")
        },
    )
    values = batch.context_y.new_empty(count, 0, batch.context_y.shape[2])
    for place in range(batch.target_x.shape[1]):
        one = model(asked(many, place, values)).sample(1, generator)[0]
        values = torch.cat((values, one.to(values.dtype)), 1)
    return values[:, :, 0]
