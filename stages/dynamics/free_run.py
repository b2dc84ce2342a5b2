"""Networks run freely: fed with what they said, all starts at once.

A stateful network is first driven by as many observations as a window that trained it had: by
more, its state leaves what it has learned from. One without a state keeps its last S observations,
first in, first out. Shapes: B starts, C observations given, H steps ahead, O observed.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stages.dynamics.contract import Forecaster
from stages.errors import DataError
from stages.training import store

LIMIT = 1e3  # standard deviations: a forecast beyond them has left the attractor for good


def loaded(weights: Path, device: str) -> tuple[Any, int]:
    """A trained network, on the device, and how many observations its windows had, those that warm
    up a state among them. DataError where its weights do not say so."""
    model, told = store.load(str(weights))
    if "length" not in told:
        raise DataError(
            "a network that does not say how many observations it was trained on",
            where=str(weights),
            expected="the length of its windows in the metadata",
            found="weights of an earlier version",
            remedy="train it again: `dvc repro`",
        )
    return model.to(device), int(told["length"])


@torch.no_grad()
def free_run(model: Forecaster, context: Tensor, steps: int, length: int) -> Tensor:
    """Forecasts (B, H, O) after contexts (B, C, O), of which a stateful network is given the last
    `length`; not a number from where a start's leave LIMIT; it is then fed with zeros."""
    given = context[:, -(length if model.stateful else model.span) :]
    said, state = model.run(given)
    value, alive, found = said[:, -1], torch.ones(len(context), dtype=torch.bool), []
    alive = alive.to(context.device)
    for step in range(steps):
        alive = alive & (value.abs() < LIMIT).all(1)
        value = value.where(alive[:, None], 0.0)
        found.append(value.where(alive[:, None], torch.nan))
        if step + 1 < steps:
            said, state = model.run(value[:, None], state)
            value = said[:, 0]
    return torch.stack(found, 1)


def forecast(model: Forecaster, context: np.ndarray, steps: int, length: int) -> np.ndarray:
    """`free_run` of contexts (B, C, O) in float32; float64 (B, H, O)."""
    given = torch.from_numpy(context).float().to(next(model.parameters()).device)
    return free_run(model, given, steps, length).double().cpu().numpy()
