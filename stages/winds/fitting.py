"""Training one cell to winds, whatever its model needs: nothing, a choice of k on the validation
slices, or the gradient loop."""

from typing import TYPE_CHECKING, Any

import torch

from stages import seeds
from stages.contracts import FieldModel
from stages.errors import DataError
from stages.training import loop
from stages.training.checkpoint import Checkpoints
from stages.training.group import ALONE, Group
from stages.training.loop import Settings
from stages.units import FOOT_KM
from stages.winds.batches import Data

if TYPE_CHECKING:
    from stages.winds.contexts.given import Contexts

# training slices whose context positions place a model's nodes (reference protocol of GEN on wind)
PLACING = 300


def fit(
    model: FieldModel,
    contexts: "Contexts",
    settings: Settings,
    checkpoints: Checkpoints,
    where: torch.device,
    group: Group = ALONE,
) -> dict[str, Any]:
    """Train the model in place, together with the other processes of the group; returns its
    history (strict JSON). DivergedError, DataError."""
    scale_to(model, contexts)
    if model.has_nodes:
        slices = contexts.pairs.targets("train")
        some = slices[:: max(1, len(slices) // PLACING)]
        positions = [torch.from_numpy(contexts.pairs.pair(slice).context_x) for slice in some]
        generator = seeds.torch_stream(settings.seed, "training", "nodes")
        model.place_nodes(torch.cat(positions), generator)
    data = Data(contexts, model.to(where), where)
    if model.learns != "gradient" and not data.slices("val"):
        raise DataError(
            "nothing to validate on",
            found="no validation slices",
            remedy="widen the split's intervals in stages/params/budgets/PROFILE/winds.yaml",
        )
    if model.learns == "neighbours":
        return choose_neighbours(model, data)
    return loop.train(model, data, settings, checkpoints, group)


def scale_to(model: FieldModel, contexts: "Contexts") -> None:
    """Tell a model what a standardised wind is, in metres per second, and where, above the sea, its
    local height 0 lies."""
    scaler = contexts.pairs.meta["scaler"]
    altitude_km = scaler["x_mean"][2] * FOOT_KM
    model.set_scaler(torch.tensor(scaler["y_mean"]), torch.tensor(scaler["y_std"]), altitude_km)


def choose_neighbours(model: Any, data: Data) -> dict[str, Any]:
    """Set `model.neighbours` to the candidate with the least validation loss; the smaller of
    equals."""
    entries = []
    for count in sorted(model.candidates):
        model.neighbours.fill_(count)
        entries.append({"step": 0, "neighbours": count, **data.validate(model)})
    best = min(entries, key=lambda entry: entry["loss"])
    model.neighbours.fill_(best["neighbours"])
    return loop.validated(entries, best_loss=best["loss"], neighbours=best["neighbours"])
