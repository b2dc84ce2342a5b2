"""Why a model fails: probes of trained models on sets (thesis 3.5, C.8-C.11; figures 3.5, 3.6, C.5,
C.6, tables C.7, C.8).

Each is a function of a model and a batch. A model's latents are what one of its submodules gave
when last called in a forward pass: (B, L, H); of a list of modules it is the last. A planted error
is added to the model's own answer at one target, which is then the goal, so that all other answers
are already right.
The public scripts behind figure 3.6 freeze the outputs, add 5.0 to target 1 and count Adam's
updates until the MSE is below 0.01; over how many sets is not said. Here each set is corrected by
itself, from the trained weights each time.
Shapes: B sets, C context points, T targets, L latents, H width, O components.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from stages.batches import Batch
from stages.errors import DataError, DivergedError
from stages.layers.distances import square_distance
from stages.scores.hull import Hull

TARGET, GRADIENT_ERROR = 1, 10.0  # figure 3.5: an error of 10 at the second output
STEP_ERROR, STEP_RATE, STEP_GOAL = 5.0, 3e-4, 0.01  # figure 3.6, as the public scripts have it
LATENTS = {
    "msa": "layers",
    "tfs": "layers",
    "hypermixer": "layers",
    "gen": "passing",
    "gng": "passing",
    "perceiver": "block",
}  # CNP has one
TOUCHED = 0.01  # a latent counts as touched from this share of the largest gradient on


def submodule(model: nn.Module, name: str) -> nn.Module:
    """The submodule of this name; of a list its last. DataError for a name that the model does
    not have."""
    try:
        found = model.get_submodule(name)
    except AttributeError:
        raise DataError(
            "a model has no such latents",
            where=type(model).__name__,
            found=repr(name),
            expected="the name of a submodule",
        ) from None
    return found[-1] if isinstance(found, nn.ModuleList | nn.Sequential) else found


def latent_gradients(
    model: nn.Module,
    batch: Batch,
    latents: str,
    target: int = TARGET,
    error: float = GRADIENT_ERROR,
) -> Tensor:
    """Norm (B, L) of the gradient, on what the submodule `latents` gave, of the squared error
    planted at one target of every set."""
    kept: list[Tensor] = []
    handle = submodule(model, latents).register_forward_hook(
        lambda _, __, output: kept.append(output)
    )
    try:
        mean = model(batch).mean
    finally:
        handle.remove()
    if not kept or kept[-1].dim() != 3 or len(kept[-1]) != len(mean):
        raise DataError(
            "not a model's latents",
            where=type(model).__name__,
            expected=f"{latents!r} to give ({len(mean)}, latents, width)",
            found=str(tuple(kept[-1].shape)) if kept else "it was not called",
        )
    goal = mean[:, target].detach() + error
    (gradient,) = torch.autograd.grad((mean[:, target] - goal).square().sum(), kept[-1])
    return gradient.norm(dim=2)


def spread(norms: Tensor) -> dict[str, np.ndarray]:
    """Of gradient norms (B, L), for each set: `largest` share of their sum, `effective` number
    (sum²/sum of squares, 1 to L), `touched`.

    DivergedError for a set without a gradient, or with one that is not finite: it has no shares.
    """
    norms = norms.double()
    total = norms.sum(1)
    if not (torch.isfinite(total) & (total > 0)).all():
        raise DivergedError(
            "an error does not reach the latents",
            found=f"in {int((~(torch.isfinite(total) & (total > 0))).sum())} of {len(total)} sets",
        )
    largest = norms.max(1).values
    return {
        "largest": (largest / total).cpu().numpy(),
        "effective": (total.square() / norms.square().sum(1)).cpu().numpy(),
        "touched": (norms > TOUCHED * largest[:, None]).sum(1).double().cpu().numpy(),
    }


def updates_to_correct(
    model: nn.Module,
    batch: Batch,
    most: int,
    target: int = TARGET,
    error: float = STEP_ERROR,
    rate: float = STEP_RATE,
    goal: float = STEP_GOAL,
) -> list[int | None]:
    """For each set, Adam's updates until the MSE over all its targets, of which one is planted
    wrong, is below `goal`; None after `most`.

    Each set starts from the model's own weights, which stay as they are; all of them learn at the
    same rate.
    """
    counts: list[int | None] = []
    for number in range(len(batch.target_x)):
        one = Batch(
            *(
                None if value is None else value[number : number + 1]
                for value in vars(batch).values()
            )
        )
        counts.append(_updates(deepcopy(model), one, most, target, error, rate, goal))
    return counts


def _updates(
    model: nn.Module, one: Batch, most: int, target: int, error: float, rate: float, goal: float
) -> int | None:
    with torch.no_grad():
        wanted = model(one).mean.clone()
        wanted[:, target] += error
    optimizer = torch.optim.Adam(
        (p for p in model.parameters() if p.requires_grad), lr=rate, fused=True
    )
    for step in range(most + 1):
        loss = (model(one).mean - wanted).square().mean()
        level = loss.item()
        if not math.isfinite(level):
            raise DivergedError(
                "correcting a planted error diverged", found=str(level), where=f"update {step}"
            )
        if level < goal:
            return step
        if step < most:
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    return None


def input_gradients(model: nn.Module, batch: Batch, target: int = TARGET) -> Tensor:
    """Norm (B, C) of the gradient of one target's answer, components summed, with respect to
    each context value (figure C.5)."""
    values = batch.context_y.detach().clone().requires_grad_()
    answer = model(replace(batch, context_y=values)).mean[:, target].sum()
    (gradient,) = torch.autograd.grad(answer, values, allow_unused=True)
    return torch.zeros(values.shape[:2]) if gradient is None else gradient.norm(dim=2)


def outside(context: np.ndarray, predicted: np.ndarray, tolerance: float = 1e-5) -> np.ndarray:
    """True (S, T) where a prediction (S, T, 1 or 2) leaves the hull of its set's context values (S,
    C, 1 or 2) by more than `tolerance` of the values' extent, which float32 arithmetic may."""
    extent = np.maximum(np.ptp(context, axis=1).max(1), np.finfo(np.float32).tiny)
    if context.shape[2] == 1:
        low, high = context.min(1), context.max(1)
        beyond = np.maximum(low - predicted[..., 0], predicted[..., 0] - high)
        return beyond > tolerance * extent[:, None]
    return np.stack(
        [
            Hull(known).outside(told, tolerance * wide)
            for known, told, wide in zip(context, predicted, extent, strict=True)
        ]
    )


def tight(batch: Batch, centre: Tensor, count: int, scale: Tensor) -> tuple[Batch, Tensor]:
    """Each set with only the `count` context points nearest its context point number `centre` (B,),
    itself among them (table C.7), and the targets' distances (B, T) from it, in units of `scale`
    (X,). Equal distances: the lower number."""
    points = batch.context_x / scale
    at = points[torch.arange(len(centre)), centre][:, None]
    kept = square_distance(at, points)[:, 0].argsort(dim=1, stable=True)[:, :count]
    narrow = replace(
        batch,
        context_x=_picked(batch.context_x, kept),
        context_y=_picked(batch.context_y, kept),
        context_mask=_picked(batch.context_mask, kept),
    )
    return narrow, square_distance(at, batch.target_x / scale)[:, 0].sqrt()


def _picked(values: Tensor, kept: Tensor) -> Tensor:
    """The points `kept` (B, K) of each set's values (B, C) or (B, C, D)."""
    return torch.take_along_dim(values, kept.reshape(*kept.shape, *[1] * (values.dim() - 2)), 1)


def regions(
    batch: Batch, middle: Tensor, share: float, count: int, draw: Callable[[int], Tensor]
) -> tuple[Batch, Tensor, Tensor]:
    """Contexts of `count` points, `share` of them from the region of the targets and the rest from
    the opposite one (table C.8).

    The regions are the orthants above and below `middle` (X,) in every axis; targets elsewhere are
    masked out of the answer. `draw(n)` gives an order of n numbers. Returns the batch of the sets
    that hold enough points, the mask (B, T) of the targets that lie in their region, and which sets
    (B,) they were.
    """
    near = round(share * count)
    above, below = (batch.context_x > middle).all(2), (batch.context_x < middle).all(2)
    asked = (batch.target_x > middle).all(2)
    usable = torch.nonzero(
        (above.sum(1) >= count) & (below.sum(1) >= count) & asked.any(1)
    ).flatten()
    rows = []
    for number in usable.tolist():
        own, other = torch.nonzero(above[number]).flatten(), torch.nonzero(below[number]).flatten()
        rows.append(
            torch.cat((own[draw(len(own))[:near]], other[draw(len(other))[: count - near]]))
        )
    kept = torch.stack(rows) if rows else torch.zeros(0, count, dtype=torch.long)
    chosen = Batch(
        _picked(batch.context_x[usable], kept),
        _picked(batch.context_y[usable], kept),
        torch.ones(len(usable), count, dtype=torch.bool),
        batch.target_x[usable],
        batch.target_mask[usable],
        None if batch.target_y is None else batch.target_y[usable],
    )
    return chosen, asked[usable], usable
