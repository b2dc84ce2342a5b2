"""Every coin is fair: it learns nothing, and is ln 2 nats surprised by every toss."""

import torch

from stages.toys.contract import Batch, Prediction, ToyModel


class Fair(ToyModel):
    """Heads and tails are alike."""

    learns = "nothing"

    def __init__(self, coins: int):
        super().__init__()

    def forward(self, batch: Batch) -> Prediction:
        """One half at every toss (B,)."""
        return Prediction(torch.full_like(batch.heads, 0.5))
