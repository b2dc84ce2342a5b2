"""Small prepared sequences, a small model of them and its training."""

import numpy as np
import torch

from stages.params.orders import OrderBudget
from stages.sequences.batches import OrderData, Prepared
from stages.training.group import Group

BUDGET = OrderBudget(steps=10, validate_every=4, patience=9, batch=8, learning_rate=1e-2)


def prepared(law="product", prompt=0, length=6, train=64, held=20) -> Prepared:
    """product: bits that are 1 by 0.3; copies: fair bits, of which the second half repeats the
    first."""
    rng = np.random.default_rng(5)
    count = train + 2 * held
    tokens = (
        (rng.random((count, length)) < 0.3).astype(int)
        if law == "product"
        else rng.integers(2, size=(count, length // 2)).repeat(2, 0).reshape(count, -1)
    )
    split = np.repeat([0, 1, 2], [train, held, held])
    return Prepared(
        torch.as_tensor(tokens),
        torch.as_tensor(split),
        {"vocabulary": 2, "length": length, "prompt": prompt},
    )


def data(order="random", budget=BUDGET, seed=3, group=None, **how) -> OrderData:
    return OrderData(prepared(**how), budget, order, seed, group or Group())
