"""Prepared tosses as the loop's data. The loss is the mean surprise, nats a toss."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from stages import files
from stages.splits import SPLITS
from stages.toys.contract import Batch, Prediction
from stages.toys.prepare import ABOUT, ROWS
from stages.training.group import ALONE, Group


@dataclass(frozen=True)
class Tosses:
    """All tosses of a set: coin (N,), heads (N,), split (N,), and the chances of the coins (K,)."""

    coin: Tensor
    heads: Tensor
    split: Tensor
    chances: tuple[float, ...]

    word = "toss"

    @classmethod
    def open(cls, folder: Path, device: torch.device | str = "cpu") -> "Tosses":
        """Those of a prepared folder."""
        rows = pl.read_parquet(folder / ROWS)
        coin, split = (rows[name].to_torch().to(device) for name in ("coin", "split"))
        heads = rows["heads"].to_torch().float().to(device)
        return cls(coin, heads, split, tuple(files.read_json(folder / ABOUT)["chances"]))

    @property
    def device(self) -> torch.device:
        """Where they lie."""
        return self.coin.device

    def slices(self, split: str) -> list[int]:
        """The numbers of a split's tosses."""
        found: list[int] = (self.split == SPLITS.index(split)).nonzero()[:, 0].tolist()
        return found

    def batch(self, numbers: list[int]) -> Batch:
        """These tosses."""
        return Batch(self.coin[numbers], self.heads[numbers])

    def parts(self, numbers: list[int], step: int) -> list[Callable[[], Batch]]:
        """A step's only batch."""
        return [partial(self.batch, numbers)]

    def loss(self, prediction: Prediction, batch: Batch) -> Tensor:
        """The mean surprise."""
        return -prediction.log_prob(batch.heads).mean()

    @torch.no_grad()
    def validate(self, model: Any, group: Group = ALONE) -> dict[str, float]:
        """The mean surprise of the tosses that select."""
        batch = self.batch(self.slices("val"))
        return {"loss": float(self.loss(model(batch), batch))}
