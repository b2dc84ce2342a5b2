"""Sequences as the loop's data (thesis 4.2.1, 4.3.3): a step sees a batch of sequences, each in an
order of its own.

Kinds of orders: left_to_right, random, fractal, and curriculum, which shows a share of the
sequences from left to right (the rest at random) that falls linearly to 0 over the steps; the coin
falls for each sequence, as 4.3.3 speaks of a share of the data (the public code throws one a
batch). Unless the prompt counts in the loss it stands first in every order, as a sampler puts it.
All draws depend on seed and step alone, so a resumed run needs no sampler state; and they are of
the whole batch, so several processes see what one sees.
Shapes: N sequences, B batch, T tokens, P of the prompt. Losses are in nats a token.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from stages import seeds
from stages.contracts import Model, SequenceModel
from stages.errors import DataError, InputError
from stages.files import read_json
from stages.params import nearest
from stages.params.orders import OrderBudget
from stages.sequences import permutations
from stages.sequences.losses import cross_entropy
from stages.splits import SPLITS
from stages.training.group import ALONE, Group

MOST = 1024  # sequences of a forward call while validating


@dataclass(frozen=True)
class Prepared:
    """The sequences of one data set, on one device."""

    tokens: Tensor  # N T, int64
    split: Tensor  # N, index into SPLITS
    meta: dict[str, Any]

    @classmethod
    def open(cls, folder: Path, device: str | torch.device = "cpu") -> "Prepared":
        """Read a prepared folder. DataError when it is missing or not what preparation writes."""
        file = folder / "sequences.safetensors"
        if not file.is_file():
            raise DataError(
                "the prepared sequences are missing", where=str(folder), remedy="run `dvc repro`"
            )
        try:
            found = load_file(file, device=str(device))
            tokens, split = found["tokens"].long(), found["split"]
        except (SafetensorError, KeyError) as error:
            raise DataError(
                "not prepared sequences",
                where=str(file),
                found=f"{type(error).__name__}: {error}",
                remedy="run `dvc repro`",
            ) from None
        return cls(tokens, split, read_json(folder / "sequences.json"))

    @property
    def axes(self) -> list[int]:
        """The grid that the tokens lie on, the last axis fastest: a maze's two planes, rows and
        columns; else a line."""
        cells = [
            self.meta["law"][key] for key in ("rows", "columns") if key in self.meta.get("law", {})
        ]
        return [self.meta["length"] // math.prod(cells), *cells]


@dataclass(frozen=True)
class OrderBatch:
    """What a step sees: sequences, the order of each, how many steps are given; the stream that
    noise comes from."""

    tokens: Tensor  # B T
    order: Tensor  # B T
    first: int
    noise: torch.Generator


class Ordered(Model):
    """A model of orders as the loop calls it: one batch in, logits of the steps out (B, T, V)."""

    def __init__(self, model: SequenceModel):
        super().__init__()
        self.model = model

    def forward(self, batch: OrderBatch) -> Tensor:
        """Step i's logits are of the token at order[:, i]."""
        return self.model(batch.tokens, batch.order)


class Denoised(Model):
    """A model that brings its own loss and knows no order: diffusion."""

    own_loss = True

    def __init__(self, model: SequenceModel):
        super().__init__()
        self.model = model

    def loss(self, batch: OrderBatch) -> Tensor:
        """The model's loss of one batch; the prompt is neither noised nor counted."""
        given = (
            torch.arange(batch.tokens.shape[1], device=batch.tokens.device) < batch.first
        ).expand_as(batch.tokens)
        return self.model.loss(batch.tokens, batch.noise, given if batch.first else None)


def wrapped(model: SequenceModel) -> Ordered | Denoised:
    """The model as the loop calls it."""
    return Ordered(model) if model.ordered else Denoised(model)


@dataclass(frozen=True)
class OrderData:
    """The sequences of one data set as batches for one model, which is shown them in orders of
    kind `order`."""

    prepared: Prepared
    budget: OrderBudget
    order: str
    seed: int
    group: Group = ALONE

    word = "sequence"

    def __post_init__(self):
        if self.order not in permutations.KINDS:
            raise InputError(
                "unknown kind of order",
                where="models.*.arms.*.order",
                found=repr(self.order),
                expected=nearest(self.order, permutations.KINDS).lstrip("; "),
            )

    @property
    def device(self) -> torch.device:
        """Where the tokens lie."""
        return self.prepared.tokens.device

    @property
    def first(self) -> int:
        """Steps that do not count in the loss: the prompt's, or none."""
        return 0 if self.budget.prompt_loss else self.prepared.meta["prompt"]

    def slices(self, split: str) -> list[int]:
        """The numbers of a split's sequences."""
        return torch.nonzero(self.prepared.split == SPLITS.index(split)).flatten().tolist()

    def share(self, step: int) -> float:
        """Share of sequences from left to right at a step of a curriculum."""
        return self.budget.curriculum * max(0.0, 1 - step / self.budget.steps)

    def parts(self, numbers: list[int], step: int) -> list[Callable[[], OrderBatch]]:
        """A step's only batch, made when it is called."""
        return [partial(self.drawn, numbers, step)]

    def drawn(self, numbers: list[int], step: int) -> OrderBatch:
        """The sequences as step `step` sees them: of orders drawn for the whole batch this
        process' part."""
        generator = seeds.torch_stream(self.seed, "training", "orders", step)
        orders = self.orders(
            self.order, len(numbers) * self.group.world, generator, self.share(step)
        )[self.group.rank :: self.group.world]
        noise = self.noise(step, *([self.group.rank] if self.group.rank else []))
        return OrderBatch(self.tokens(numbers), orders.to(self.device), self.first, noise)

    def noise(self, *names: str | int) -> torch.Generator:
        """A stream of the device for models that need noise."""
        return seeds.torch_stream(self.seed, "training", "noise", *names, device=str(self.device))

    def orders(
        self, kind: str, batch: int, generator: torch.Generator, share: float = 0.0
    ) -> Tensor:
        """Orders (B, T) of a kind, on the CPU, with the prompt in front where it does not count."""
        return permutations.draw(
            kind, batch, self.prepared.tokens.shape[1], generator, share, self.first
        )

    def tokens(self, numbers: list[int]) -> Tensor:
        """Some sequences (B, T)."""
        return self.prepared.tokens[torch.as_tensor(numbers, device=self.device)]

    def loss(self, logits: Tensor, batch: OrderBatch) -> Tensor:
        """Mean cross-entropy over the steps that count."""
        return cross_entropy(logits, batch.tokens, batch.order, batch.first)

    @torch.no_grad()
    def validate(self, model: Ordered | Denoised, group: Group = ALONE) -> dict[str, float]:
        """Nats a token of the validation sequences; `loss` in the model's own order (a
        curriculum's: where it ends, random), which selects the weights, and `left_to_right`.
        Orders and noise are the same at every validation. Of a model with its own loss that."""
        model.eval()
        numbers, size = self.slices("val"), min(MOST, self.budget.batch)
        own = "random" if self.order == "curriculum" else self.order
        brings = model.own_loss
        kinds = {"loss": own} if brings else {"loss": own, "left_to_right": "left_to_right"}
        tables = {
            name: self.orders(
                kind, len(numbers), seeds.torch_stream(self.seed, "training", "validation")
            )
            for name, kind in kinds.items()
        }
        part = []
        for start in group.share(list(range(0, len(numbers), size))):
            some, entry = slice(start, start + size), {}
            for name in kinds:
                order, noise = tables[name][some].to(self.device), self.noise("validation", start)
                batch = OrderBatch(self.tokens(numbers[some]), order, self.first, noise)
                entry[name] = float(model.loss(batch) if brings else self.loss(model(batch), batch))
            part.append((entry, len(batch.tokens)))
        model.train()
        found = group.gather(part)
        return {
            name: math.fsum(entry[name] * count for entry, count in found) / len(numbers)
            for name in kinds
        }
