"""The probes of one cell of `failure_modes` (thesis 3.5, C.8-C.11): which sets, how many, and each
as a metric with its interval.

latents: of a planted error's gradient, how many there are, how many are touched, the share of the
largest (claim I-7, figure 3.5).
correction: updates that learn a planted error without hurting the other answers (I-8, figure 3.6);
`capped`: more than that. As in the document, only of a model whose answers are right before.
overlap: MSE by the share, in %, of the context that comes from the targets' region (I-13, table
C.8). The thesis trains a model at each share; here one model, trained with contexts from
everywhere, is asked. tightness: MSE by distance from a narrow context (table C.7). inputs: how many
context values move one answer, and the share of the nearest (figure C.5).
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from stages import seeds
from stages.batches import Batch
from stages.fields import probes, scores
from stages.fields.sets import PreparedSets
from stages.layers import distances
from stages.scores import groups

GRADIENTS = 64  # sets
CORRECTED, MOST = 3, 1000  # sets; updates
SHARES = (0, 25, 50, 75, 100)  # percent
EDGES = (
    0.0,
    0.5,
    1.0,
    1.5,
    2.0,
    2.5,
)  # table C.7's, in standard deviations of the positions; the last bin is open
FEWEST = 2  # points of a narrow or regional context


@dataclass(frozen=True)
class Probed:
    """One model and the sets on which it is probed."""

    model: nn.Module
    name: str  # of the model
    sets: PreparedSets
    numbers: Tensor  # the test sets
    asked: int  # targets of a forward call
    unit: str
    scale: Tensor  # (O,) of `unit` for a standardised one
    resamples: int
    seed: int
    most: int = MOST

    def mean(
        self, values: np.ndarray, numbers: Tensor, unit: str = "1", weight: np.ndarray | None = None
    ) -> dict[Any, Any]:
        """A metric: the mean over sets with its interval over groups."""
        group = self.sets.group[numbers].cpu().numpy()
        return groups.mean_of(
            values, group, unit, self.resamples, seeds.stream(self.seed, "bootstrap"), weight
        )

    def first(self, count: int) -> tuple[Tensor, Batch]:
        """The numbers of a few test sets, evenly spread, and them as a batch of as many targets
        as the model was trained with."""
        numbers = spread(self.numbers, count)
        return numbers, self.sets.batch(numbers, torch.arange(self.asked, device=numbers.device))

    def squares(self, mean: Tensor, target_y: Tensor) -> np.ndarray:
        """Squared error (B, T), mean over components, in the square of `unit`."""
        return ((mean - target_y) * self.scale).double().square().mean(2).cpu().numpy()


def spread(numbers: Tensor, count: int) -> Tensor:
    """At most `count` of the numbers, evenly spread, in order."""
    count = min(count, len(numbers))
    return numbers[torch.arange(count, device=numbers.device) * len(numbers) // count]


def probe(given: Probed) -> dict[Any, Any]:
    """All probes of a cell that apply to it: group -> name -> metric."""
    found = {"latents": latents(given), "correction": correction(given), "inputs": inputs(given)}
    if given.sets.meta["facts"].get(
        "lawful", True
    ):  # random values say nothing of places that were not asked
        found |= {"overlap": overlap(given), "tightness": tightness(given)}
    return {name: content for name, content in found.items() if content}


def latents(given: Probed) -> dict[Any, Any]:
    """Where the gradient of a planted error goes; nothing for a model without latents of its
    own, or with one only."""
    if given.name not in probes.LATENTS:
        return {}
    numbers, batch = given.first(GRADIENTS)
    norms = probes.latent_gradients(given.model, batch, probes.LATENTS[given.name], target(given))
    reached = (
        norms.sum(1) != 0
    ).cpu()  # a model that learned a constant has no gradient: it touches nothing
    if not reached.any():
        return {}
    numbers, norms = numbers[reached], norms[reached]
    found = probes.spread(norms)
    return {
        "count": {"value": float(norms.shape[1]), "unit": "1", "n": len(numbers)},
        "effective": given.mean(found["effective"], numbers),
        "largest_share": given.mean(found["largest"], numbers),
        "touched": given.mean(found["touched"], numbers),
    }


def target(given: Probed) -> int:
    """The target at which an error is planted: the second, where there are two."""
    return min(probes.TARGET, given.asked - 1)


def correction(given: Probed) -> dict[Any, Any]:
    """Updates until a planted error is learned; a set that needs more than `most` counts as
    `most`, and then the number is `capped`. Nothing for a model that errs by more than the goal
    before an error is planted: figure 3.6 is of models of perfect accuracy."""
    numbers, batch = given.first(CORRECTED)
    with torch.no_grad():
        wrong = (given.model(batch).mean - batch.target_y).square().mean()
    if wrong >= probes.STEP_GOAL:
        return {}
    counts = probes.updates_to_correct(given.model, batch, given.most, target(given))
    entry = given.mean(
        np.array([given.most if count is None else count for count in counts], float), numbers
    )
    return {"steps": entry | {"capped": None in counts}}


@torch.no_grad()
def overlap(given: Probed) -> dict[Any, Any]:
    """MSE of targets in one region by the share of the context that comes from it; nothing where
    no set holds enough points."""
    sets, train = given.sets, given.sets.split("train")
    middle = sets.context_x[train].flatten(0, 1).median(0).values
    count = sets.context_x.shape[1] // 2 ** (sets.context_x.shape[2] + 1)
    if count < FEWEST or sets.target_x.shape[1] < FEWEST:
        return {}
    found = {}
    batch = sets.batch(given.numbers, torch.arange(given.asked, device=given.numbers.device))
    for share in SHARES:
        generator = seeds.torch_stream(given.seed, "overlap")
        draw = partial(torch.randperm, generator=generator)
        asked: Any
        chosen, asked, usable = probes.regions(batch, middle, share / 100, count, draw)
        if not len(usable):
            return {}
        error = given.squares(given.model(chosen).mean, chosen.target_y)
        asked = asked.cpu().numpy()
        found[str(share)] = given.mean(
            (error * asked).sum(1), given.numbers[usable], scores.squared(given.unit), asked.sum(1)
        )
    return found


@torch.no_grad()
def tightness(given: Probed) -> dict[Any, Any]:
    """MSE by distance of the target from the centre of a narrow context: an eighth of a set's
    points, around one of them."""
    sets = given.sets
    count = sets.context_x.shape[1] // 8
    if count < FEWEST:
        return {}
    places = sets.context_x[sets.split("train")].flatten(0, 1)
    scale = places.std(0).clamp_min(torch.finfo(torch.float32).tiny)
    batch = sets.batch(given.numbers, torch.arange(given.asked, device=given.numbers.device))
    drawn = seeds.stream(given.seed, "tightness").integers(
        sets.context_x.shape[1], size=len(given.numbers)
    )
    narrow, distance = probes.tight(
        batch, torch.as_tensor(drawn, device=given.numbers.device), count, scale
    )
    error = given.squares(given.model(narrow).mean, narrow.target_y)
    bins = np.digitize(distance.cpu().numpy(), EDGES[1:])
    names = [f"{low:g}-{high:g}" for low, high in zip(EDGES, (*EDGES[1:], math.inf), strict=True)]
    return {
        name: given.mean(
            (error * (bins == k)).sum(1),
            given.numbers,
            scores.squared(given.unit),
            (bins == k).sum(1),
        )
        for k, name in enumerate(names)
        if (bins == k).any()
    }


def inputs(given: Probed) -> dict[Any, Any]:
    """How many context values move one answer; nothing for a model that no value moves."""
    numbers, batch = given.first(GRADIENTS)
    place = target(given)
    norms = probes.input_gradients(given.model, batch, place)
    if not (norms.sum(1) > 0).all():
        return {}
    found = probes.spread(norms)
    asked = batch.target_x[:, place, None]
    nearest = distances.nearest(asked, batch.context_x, 1, batch.context_mask).index[:, 0]
    share = norms.gather(1, nearest)[:, 0].double() / norms.double().sum(1)
    return {
        "effective": given.mean(found["effective"], numbers),
        "nearest_share": given.mean(share.cpu().numpy(), numbers),
    }
