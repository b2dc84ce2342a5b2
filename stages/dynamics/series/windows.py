"""Prepared series as the loop's data: the windows of systems (windows.py of the family), of which
none holds a masked cell; where the borders say so, they reach back over their part's, but no target
does."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from stages.dynamics.series.prepare import KNOWN
from stages.dynamics.settings import Budget
from stages.dynamics.windows import Windows


@dataclass(frozen=True)
class SeriesWindows(Windows):
    """lost (T + 1,): how many rows before each hold a masked cell."""

    lost: np.ndarray

    @classmethod
    def open(
        cls, folder: Path, budget: Budget, seed: int, device: torch.device | str = "cpu"
    ) -> "SeriesWindows":
        """Those of a prepared folder."""
        one = Windows.open(folder, budget, seed, device)
        masked = ~np.load(folder / KNOWN, allow_pickle=False).all(1)
        return cls(**vars(one), lost=np.concatenate(([0], np.cumsum(masked))))

    @cached_property
    def every(self) -> dict[str, list[int]]:
        """The numbers of each part's windows that hold no masked cell."""
        found = {}
        for part, (first, end) in self.about["parts"].items():
            months = self.about["convention"] == "months"
            reach = self.length - self.budget.counted + 1 if months else 0
            begin = np.arange(max(0, first - reach), end - self.length)
            clean = self.lost[begin + self.length + 1] == self.lost[begin]
            found[part] = begin[clean].tolist()
        return found

    def slices(self, split: str) -> list[int]:
        """Of those that select, `val_windows` at most, evenly."""
        numbers = self.every[split]
        if split == "train":
            return numbers
        return numbers[:: max(1, len(numbers) // self.budget.val_windows)]
