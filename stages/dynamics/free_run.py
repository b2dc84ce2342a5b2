"""Networks run freely: fed with what they said, all starts at once.

A stateful network is first driven by the whole context; one without a state keeps its last S
observations, first in, first out. Shapes: B starts, C observations given, H steps ahead, O
observed.
"""

import numpy as np
import torch
from torch import Tensor

from stages.dynamics.contract import Forecaster

LIMIT = 1e3  # standard deviations: a forecast beyond them has left the attractor for good


@torch.no_grad()
def free_run(model: Forecaster, context: Tensor, steps: int) -> Tensor:
    """Forecasts (B, H, O) after contexts (B, C, O), not a number from where a start's leave LIMIT;
    it is then fed with zeros."""
    given = context if model.stateful else context[:, -model.span :]
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


def forecast(model: Forecaster, context: np.ndarray, steps: int) -> np.ndarray:
    """`free_run` of contexts (B, C, O) in float32; float64 (B, H, O)."""
    given = torch.from_numpy(context).float().to(next(model.parameters()).device)
    return free_run(model, given, steps).double().cpu().numpy()
