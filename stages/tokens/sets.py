"""A prepared set as the loop's data. The loss: cross-entropy of the label or of the picture's
tokens, nats; or the mean squared error, in units of the answers' variance.

A number is a row. Batches end with their longest row. Shapes: S rows, N tokens, B of a batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from stages import files
from stages.tokens.contract import Batch, Said
from stages.tokens.layout import ABOUT, INPUTS, SPLIT, TARGETS
from stages.tokens.models import DIMENSIONS
from stages.training.group import ALONE, Group

SPLITS = ("train", "val", "test")
ROWS = 256  # at once, where nothing is learnt


@dataclass(frozen=True)
class Sets:
    """inputs (S, N), targets (S,) or (S, N), split (S,), and about.json."""

    inputs: Tensor
    targets: Tensor
    split: np.ndarray
    about: dict[Any, Any]

    word = "row"

    @classmethod
    def open(cls, folder: Path, device: torch.device | str = "cpu") -> "Sets":
        """Those of a prepared folder."""
        inputs, targets = (
            torch.from_numpy(np.load(folder / name, allow_pickle=False)).to(device)
            for name in (INPUTS, TARGETS)
        )
        inputs = inputs if inputs.is_floating_point() else inputs.long()
        split = np.load(folder / SPLIT, allow_pickle=False)
        return cls(inputs, targets, split, files.read_json(folder / ABOUT))

    @property
    def device(self) -> torch.device:
        """Where they lie."""
        return self.inputs.device

    @property
    def dimensions(self) -> dict[str, Any]:
        """What the data say of a model."""
        return {name: self.about[name] for name in DIMENSIONS}

    def slices(self, split: str) -> list[int]:
        """The numbers of a split's rows."""
        found: list[int] = np.nonzero(self.split == SPLITS.index(split))[0].tolist()
        return found

    def batch(self, numbers: list[int]) -> Batch:
        """These rows. The next token is asked for after every place but the last; those of the
        picture count, for the statements are given."""
        inputs, targets, task = self.inputs[numbers], self.targets[numbers], self.about["task"]
        if task == "label":
            inputs = inputs[:, : int((inputs > 0).sum(1).max())]
            return Batch(inputs, inputs > 0, targets, inputs > 0)
        if task == "next":
            inputs, targets = inputs[:, :-1], targets[:, 1:]
        real = torch.ones(inputs.shape, dtype=torch.bool, device=self.device)
        counted = real.clone()
        if task == "next":
            counted[:, : self.about["said"] - 1] = False
        return Batch(inputs, real, targets, counted)

    def parts(self, numbers: list[int], step: int) -> list[Callable[[], Batch]]:
        """A step's only batch."""
        return [partial(self.batch, numbers)]

    def each(self, said: Said, batch: Batch) -> Tensor:
        """The loss of every row (B,)."""
        if self.about["task"] == "label":
            return functional.cross_entropy(said.values, batch.targets, reduction="none")
        if self.about["task"] == "value":
            scale = self.about["answer_sd"]
            return (said.values - batch.targets / scale).square().mean(1)
        lost = functional.cross_entropy(said.values.mT, batch.targets, reduction="none")
        return (lost * batch.counted).sum(1) / batch.counted.sum(1)

    def loss(self, prediction: Said, batch: Batch) -> Tensor:
        """The mean over rows."""
        return self.each(prediction, batch).mean()

    @torch.no_grad()
    def validate(self, model: Any, group: Group = ALONE) -> dict[str, float]:
        """The mean loss over the rows that select."""
        numbers, total = self.slices("val"), 0.0
        model.eval()
        for first in range(0, len(numbers), ROWS):
            batch = self.batch(numbers[first : first + ROWS])
            total += float(self.each(model(batch), batch).sum())
        model.train()
        return {"loss": total / len(numbers)}
