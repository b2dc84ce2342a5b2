"""Every coin has a chance of its own, whose logit is learned: at the end the share of heads that
the coin showed in training, which is the likeliest chance."""

import torch
from torch import nn

from stages.toys.contract import Batch, Prediction, ToyModel


class Bent(ToyModel):
    """A logit a coin, 0 at first."""

    def __init__(self, coins: int):
        super().__init__()
        self.logit = nn.Parameter(torch.zeros(coins))  # K

    def forward(self, batch: Batch) -> Prediction:
        """The chance of each toss's coin (B,)."""
        return Prediction(self.logit[batch.coin].sigmoid())
