"""Fitting one cell, whatever its model needs: nothing, a choice of k on the validation slices,
or the gradient loop."""

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from stages import seeds
from stages.errors import DataError, InputError
from stages.fields.batches import SetData
from stages.training.checkpoint import Checkpoints
from stages.training.group import ALONE, Group
from stages.training.loop import Loop, Settings
from stages.winds.batches import Data
from stages.winds.contexts.nearby import FOOT_KM

if TYPE_CHECKING:
    from stages.winds.contexts.given import Contexts

# training slices or sets whose context positions place a model's nodes (reference protocol of GEN
# on wind)
PLACING = 300


def fit(
    model: nn.Module,
    contexts: "Contexts",
    settings: Settings,
    checkpoints: Checkpoints,
    where: torch.device,
    group: Group = ALONE,
) -> dict[str, Any]:
    """Fit the model in place, together with the other processes of the group; returns its
    history (strict JSON). DivergedError, DataError."""
    scale_to(model, contexts)
    if hasattr(model, "place_nodes"):
        slices = contexts.pairs.targets("train")
        some = slices[:: max(1, len(slices) // PLACING)]
        place(
            model,
            torch.cat([torch.from_numpy(contexts.pairs.pair(slice).context_x) for slice in some]),
            settings.seed,
        )
    data = Data(contexts, model.to(where), where)
    if model.learns == "gradient":
        return Loop(model, data, settings, checkpoints, group).run()
    if not data.slices("val"):
        raise DataError(
            "nothing to validate on",
            found="no validation slices",
            remedy="widen the split's intervals in params.yaml",
        )
    if model.learns == "neighbours":
        return choose_neighbours(model, data)
    return {
        "status": "completed",
        "steps": 0,
        "best_step": 0,
        "train": [],
        "val": [{"step": 0, **data.validate(model)}],
    }


def fit_sets(
    model: nn.Module,
    data: SetData,
    settings: Settings,
    checkpoints: Checkpoints,
    group: Group = ALONE,
) -> dict[str, Any]:
    """Fit the model in place to sets of points; returns its history. What needs no training is
    validated once. DivergedError, DataError."""
    model.to(data.device)
    if model.learns not in ("gradient", "nothing"):
        raise InputError(
            "this model is fitted to winds only", where="models", found=type(model).__name__
        )
    if hasattr(model, "place_nodes"):
        place(
            model,
            data.sets.context_x[data.sets.split("train")[:PLACING]].flatten(0, 1).cpu(),
            settings.seed,
        )
    if model.learns == "gradient":
        return Loop(model, data, settings, checkpoints, group).run()
    return {
        "status": "completed",
        "steps": 0,
        "best_step": 0,
        "train": [],
        "val": [{"step": 0, **data.validate(model)}],
    }


def place(model: nn.Module, positions: torch.Tensor, seed: int) -> None:
    """Let a model put its nodes where training contexts lie: positions (N, X)."""
    model.place_nodes(positions, seeds.torch_stream(seed, "training", "nodes"))


def scale_to(model: nn.Module, contexts: "Contexts") -> None:
    """Tell a model whose constants are metres per second what a standardised wind is."""
    if hasattr(model, "set_scaler"):
        scaler = contexts.pairs.meta["scaler"]
        model.set_scaler(torch.tensor(scaler["y_mean"]), torch.tensor(scaler["y_std"]))
    if hasattr(
        model, "altitude_km"
    ):  # and one whose air begins at the sea where its local height 0 lies
        model.altitude_km.fill_(contexts.pairs.meta["scaler"]["x_mean"][2] * FOOT_KM)


def choose_neighbours(model: nn.Module, data: Data) -> dict[str, Any]:
    """Set `model.neighbours` to the candidate with the least validation loss; the smaller of
    equals."""
    entries = []
    for count in sorted(model.candidates):
        model.neighbours.fill_(count)
        entries.append({"step": 0, "neighbours": count, **data.validate(model)})
    best = min(entries, key=lambda entry: entry["loss"])
    model.neighbours.fill_(best["neighbours"])
    return {
        "status": "completed",
        "steps": 0,
        "best_step": 0,
        "best_loss": best["loss"],
        "neighbours": best["neighbours"],
        "train": [],
        "val": entries,
    }
