"""Prepared observations as the loop's data: windows of warm-up and S observations, of which the
last S' count. The loss is the mean squared error of the next observation, in units of how far one
moves in a step.

A number is a window: its member and first time. Inputs have noise while training, drawn anew for
every step (document R's peer, Vlachas et al. 2020). Shapes: E members, T times, O observed, B
windows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stages import files, seeds
from stages.dynamics.contract import Batch, Forecast
from stages.dynamics.layout import ABOUT, SERIES
from stages.dynamics.settings import FAMILY, Budget
from stages.training.group import ALONE, Group


@dataclass(frozen=True)
class Windows:
    """series (E, T, O), float32, standardised; about: about.json; the budget; the cell's seed."""

    series: Tensor
    about: dict[Any, Any]
    budget: Budget
    seed: int

    word = "window"

    @classmethod
    def open(
        cls, folder: Path, budget: Budget, seed: int, device: torch.device | str = "cpu"
    ) -> "Windows":
        """Those of a prepared folder."""
        series = torch.from_numpy(np.load(folder / SERIES, allow_pickle=False))
        return cls(series.float().to(device), files.read_json(folder / ABOUT), budget, seed)

    @property
    def device(self) -> torch.device:
        """Where they lie."""
        return self.series.device

    @property
    def length(self) -> int:
        """Observations of a window, its warm-up among them."""
        return self.budget.warm + self.budget.window

    def slices(self, split: str) -> list[int]:
        """The numbers of a split's windows; of those that select, `val_windows` at most, evenly."""
        first, end = self.about["parts"][split]
        members, times = self.series.shape[:2]
        begin = np.arange(first, end - self.length)
        numbers = (np.arange(members)[:, None] * times + begin).ravel()
        if split != "train":
            numbers = numbers[:: max(1, len(numbers) // self.budget.val_windows)]
        found: list[int] = numbers.tolist()
        return found

    def batch(self, numbers: list[int], step: int | None) -> Batch:
        """These windows; with the noise of a step, or without."""
        member, begin = np.divmod(np.asarray(numbers), self.series.shape[1])
        times = torch.from_numpy(begin[:, None] + np.arange(self.length + 1))
        whole = self.series[torch.from_numpy(member)[:, None], times]
        inputs, budget = whole[:, :-1], self.budget
        if step is not None and budget.noise:
            stream = seeds.torch_stream(self.seed, FAMILY, "noise", step)
            drawn = torch.randn(inputs.shape, generator=stream)
            inputs = inputs + budget.noise * drawn.to(inputs.device)
        return Batch(inputs, whole[:, -budget.counted :], budget.warm)

    def parts(self, numbers: list[int], step: int) -> list[Callable[[], Batch]]:
        """A step's only batch."""
        return [partial(self.batch, numbers, step)]

    def loss(self, prediction: Forecast, batch: Batch) -> Tensor:
        """The mean squared error, in units of a step's change."""
        error = (prediction.mean - batch.targets) / self.about["change"]
        return error.square().mean()

    @torch.no_grad()
    def validate(self, model: Any, group: Group = ALONE) -> dict[str, float]:
        """The loss over the windows that select, all in one batch."""
        model.eval()
        batch = self.batch(self.slices("val"), None)
        found = float(self.loss(model(batch), batch))
        model.train()
        return {"loss": found}
