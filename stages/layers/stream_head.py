"""A wind head without divergence: the wind is the turned slope of a stream function psi,
u = -dpsi / dnorth and v = dpsi / deast (our own; thesis, "Physics-Informed").

Any field model predicts psi, as the sum of its means; its standard deviations stay those of the
components. Whatever the weights are, du/deast + dv/dnorth = -psi_ne + psi_en = 0 at every level and
time: only slopes along the horizontal are taken. ReLU has no second derivative and its psi would
have creases, so a model's ReLU modules become softplus. A model whose targets hear each other has
no psi of a place alone: its targets are asked one by one. Training takes a second derivative, which
the fused attention of layers/kernels does not have. Places are those of layers/local.py: east
first, then north, in one unit, on a plane; on the sphere a northward wind of 10 m/s still has
1.6e-6 / s at 46 degrees, where shears are some 1e-4 / s. Shapes: B sets, C context points, T
targets, X axes, O = 2.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from stages.batches import Batch, Prediction
from stages.layers.heads import Gaussian, Predictive

EAST, NORTH = 0, 1
Answer = Prediction | Predictive
Ask = Callable[[Batch], Answer]


def smooth(model: nn.Module) -> nn.Module:
    """The model with softplus for every ReLU module, in place."""
    for name, part in model.named_children():
        if isinstance(part, nn.ReLU):
            setattr(model, name, nn.Softplus())
        else:
            smooth(part)
    return model


def one_by_one(ask: Ask) -> Ask:
    """What asks each target in a set of its own, with the whole context of its set."""

    def asked(batch: Batch) -> Answer:
        sets, count = batch.target_x.shape[:2]

        def each(value: Tensor | None) -> Tensor | None:
            return None if value is None else value.flatten(0, 1)[:, None]

        def again(value: Tensor) -> Tensor:
            return value.repeat_interleave(count, 0)

        alone = Batch(
            again(batch.context_x), again(batch.context_y), again(batch.context_mask),
            batch.target_x.flatten(0, 1)[:, None], batch.target_mask.flatten(0, 1)[:, None],
            each(batch.target_y),
        )  # fmt: skip
        found = ask(alone)
        mean = found.mean.reshape(sets, count, -1)
        if found.scale is None:
            return Prediction(mean)
        return Gaussian(mean, found.scale.reshape(sets, count, -1))

    return asked


def wind(ask: Ask, batch: Batch, unit: Float[Tensor, "2"]) -> Prediction | Gaussian:
    """Mean (and standard deviation) of the wind towards east and north at every target, B T 2.

    ask: gives psi as the sum of its means; unit: how many standardised winds of each component one
    of psi's slopes is, the same speed for both, so that standardising makes no divergence.
    """
    keep = torch.is_grad_enabled()
    with torch.enable_grad():
        place = batch.target_x
        if not place.requires_grad:
            place = place.detach().requires_grad_()
        found = ask(replace(batch, target_x=place))
        psi = found.mean.sum()
        (slope,) = (
            torch.autograd.grad(psi, place, create_graph=keep, materialize_grads=True)
            if psi.requires_grad
            else (torch.zeros_like(place),)
        )
    mean = torch.stack((-slope[..., NORTH], slope[..., EAST]), -1) * unit
    if not keep:
        mean = mean.detach()
    if found.scale is None:
        return Prediction(mean)
    scale = found.scale[..., :2]
    return Gaussian(mean, scale if keep else scale.detach())
