"""What is drawn of one test task: the law that a model tells along a line through the middle, or on
a grid of a plane, beside the exact one; along the line also of the task shifted, and functions that
the model draws there.
Shapes: G places, X axes, D draws.
"""

from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

from stages import seeds
from stages.batches import Batch
from stages.contracts import FieldModel
from stages.fields.models.neural_process import Coherent
from stages.fields.processes import chain, kept
from stages.fields.processes.settings import FAMILY, Asked, Functions

PLACES, SIDE = 161, 41  # of the line; of the grid along an axis
LEAST_POINTS = 12, 30  # of the context, by axes: of one, of a plane
EVERY, DRAWN = 4, 3  # of the line's places, where functions are drawn; and how many


class Data(Protocol):
    """What is read of an evaluated set (measure.Data)."""

    @property
    def test(self) -> kept.KeptTasks: ...

    @property
    def functions(self) -> Functions: ...

    @property
    def asked(self) -> Asked: ...

    @property
    def seed(self) -> int: ...


def shifted(batch: Batch, by: float) -> Batch:
    """The same task elsewhere."""
    return replace(batch, context_x=batch.context_x + by, target_x=batch.target_x + by)


def drawn_task(data: Data) -> int:
    """The first task whose context has LEAST_POINTS and not many more; else the first of all."""
    counts, least = data.test.batch.context_mask.sum(1), LEAST_POINTS[data.functions.axes - 1]
    fits = torch.nonzero((counts >= least) & (counts <= 2 * least))
    return int(fits[0]) if len(fits) else 0


def places(data: Data) -> Tensor:
    """The line's places (G, 1), or the grid's (G, 2), its rows from low to high."""
    ends = data.functions.range
    if data.functions.axes == 1:
        return torch.linspace(-ends, ends, PLACES)[:, None]
    side = torch.linspace(-ends, ends, SIDE)
    return torch.cartesian_prod(side, side).flip(1)


@torch.no_grad()
def bands(model: FieldModel, data: Data) -> dict[str, Any]:
    """Mean and standard deviation at the places of the task that is drawn; along a line also of the
    task shifted, and functions of its law (D, G). Nothing in three dimensions."""
    if data.functions.axes > 2:
        return {}
    row = drawn_task(data)
    batch, asked = data.test.some(slice(row, row + 1)), places(data)[None]
    mask = torch.ones_like(asked[:, :, 0], dtype=torch.bool)
    plain = replace(batch, target_x=asked, target_mask=mask, target_y=None)
    if data.functions.axes == 2:
        return {"plain": _law(model, plain)}
    few = replace(plain, target_x=asked[:, ::EVERY], target_mask=mask[:, ::EVERY])
    generator = seeds.torch_stream(data.seed, FAMILY, "functions")
    return {
        "plain": _law(model, plain),
        "shifted": _law(model, shifted(plain, data.asked.shift)),
        "functions": [_short(one) for one in functions(model, few, generator)],
    }


def functions(model: FieldModel, batch: Batch, generator: torch.Generator) -> Tensor:
    """Draws of one task's law at its targets (D, T): one function of the law each where it has
    such, else by a chain over the targets in a random order."""
    law = model(batch)
    if isinstance(law, Coherent):
        return law.sample(DRAWN, generator)[:, 0, :, 0]
    order = torch.randperm(batch.target_x.shape[1], generator=generator)
    mixed = replace(batch, target_x=batch.target_x[:, order])
    return chain.drawn(model, mixed, DRAWN, generator)[:, order.argsort()]


def truth(data: Data) -> dict[str, Any]:
    """Of the task that is drawn the points, and the exact law at the places."""
    if data.functions.axes > 2:
        return {}
    row = drawn_task(data)
    batch, asked = data.test.some(slice(row, row + 1)), places(data)
    x, y = (part.double().numpy() for part in (batch.context_x, batch.context_y[..., 0]))
    function = {key: value[row : row + 1].numpy() for key, value in data.test.function.items()}
    mean, sd = data.functions.made().exact(
        function, x, y, batch.context_mask.numpy(), asked[None].double().numpy()
    )
    real = batch.context_mask[0]
    told = {"x": asked, "mean": torch.from_numpy(mean), "sd": torch.from_numpy(sd),
            "context_x": batch.context_x[0, real], "context_y": batch.context_y[0, real],
            "target_x": batch.target_x, "target_y": batch.target_y}  # fmt: skip
    found = {key: _short(value) for key, value in told.items()}
    return {"shift": data.asked.shift, "axes": data.functions.axes} | found


def _law(model: FieldModel, batch: Batch) -> dict[str, list[float]]:
    law = model(batch)
    return {"mean": _short(law.mean), "sd": _short(law.scale)}


def _short(values: Tensor) -> list[float]:
    return [float(f"{value:.4g}") for value in values.flatten().tolist()]
