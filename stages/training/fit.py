"""Fitting one cell, whatever its model needs: nothing, a choice of k on the validation slices, or the gradient loop."""

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from stages.errors import DataError
from stages.training.checkpoint import Checkpoints
from stages.training.data import Data
from stages.training.loop import Loop, Settings, validate

if TYPE_CHECKING:
    from stages.preparation.pairs import Pairs


def fit(model: nn.Module, pairs: "Pairs", settings: Settings, checkpoints: Checkpoints, where: torch.device) -> dict[str, Any]:
    """Fit the model in place; returns its history (strict JSON). DivergedError, DataError."""
    data = Data(pairs, model.context, where)
    model.to(where)
    if model.learns == "gradient":
        return Loop(model, data, settings, checkpoints).run()
    if not data.slices("val"):
        raise DataError("nothing to validate on", found="no validation slices", remedy="widen the split's intervals in params.yaml")
    if model.learns == "neighbours":
        return choose_neighbours(model, data)
    return {"status": "completed", "steps": 0, "best_step": 0, "train": [], "val": [{"step": 0, **validate(model, data, data.unit_kn())}]}


def choose_neighbours(model: nn.Module, data: Data) -> dict[str, Any]:
    """Set `model.neighbours` to the candidate with the least validation loss; the smaller of equals."""
    entries = []
    for count in sorted(model.candidates):
        model.neighbours.fill_(count)
        entries.append({"step": 0, "neighbours": count, **validate(model, data, data.unit_kn())})
    best = min(entries, key=lambda entry: entry["loss"])
    model.neighbours.fill_(best["neighbours"])
    return {"status": "completed", "steps": 0, "best_step": 0, "best_loss": best["loss"], "neighbours": best["neighbours"],
            "train": [], "val": entries}
