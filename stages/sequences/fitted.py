"""A model of sequences trained to sequences of one's own, in memory: the training of the cells
(train.py) on an array instead of a prepared data set.

Shapes: N sequences, T tokens of each, V tokens of the vocabulary. Losses are in nats a token.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from stages import seeds
from stages.contracts import SequenceModel
from stages.errors import InputError
from stages.params.orders import OrderBudget
from stages.sequences import permutations, tokens
from stages.sequences.batches import OrderData, Prepared
from stages.sequences.losses import nats
from stages.sequences.models import build, model_class, names
from stages.sequences.sampling.sequential import density, sequential
from stages.sequences.train import train
from stages.training import asked
from stages.training.checkpoint import Checkpoints

PARTS = 10  # of the sequences, one validates and one tests
OPEN = -1  # stands where a token is asked for
# the size of the cells of mini (stages/params/models/sigma_gpt.yaml, 60k)
SMALL = {"width": 48, "keys": 16, "hidden": 192, "heads": 3, "blocks": 2}


class Wanted(asked.Settings):
    """The settings of a training of sequences in memory."""

    order: Literal["random", "left_to_right", "fractal"]


class Fitted:
    """A trained model of sequences in orders of kind `order`; `history` holds its losses, `nats`
    what a token of the sequences that it was not trained on costs in those orders."""

    def __init__(
        self, name: str, model: SequenceModel, data: OrderData, history: dict[str, Any], seed: int
    ) -> None:
        self.name, self.model = name, model.eval()
        self.history, self.order = history, data.order
        self.vocabulary, self.length = (data.prepared.meta[k] for k in ("vocabulary", "length"))
        held = data.tokens(data.slices("test"))
        stream = seeds.torch_stream(seed, "fitted", "test")
        order = permutations.draw(data.order, *held.shape, stream)
        with torch.no_grad():
            self.nats = float(nats(model(held, order), held, order).mean())

    def __repr__(self) -> str:
        return asked.described(self.name, self.nats, "nats a token", self.model)

    def sample(self, known: Any, *, seed: int = 0) -> np.ndarray:
        """Whole sequences (N, T), drawn by the model: `known` (N, T) holds the tokens that are
        given, -1 where one is to be made. A model of left to right goes on after a beginning; one
        of random orders fills any places. InputError for what is no such table."""
        given, start = self._given(known)
        stream = seeds.torch_stream(seed, "fitted", "sample")
        order = permutations.ahead(permutations.draw(self.order, *start.shape, stream), given)
        made = sequential(self.model, order, start, stream, given.sum(1))
        return np.asarray(made.tokens.numpy())

    def law(self, known: Any) -> np.ndarray:
        """Probability (N, T, V) of every token at every place, given the known ones (as of
        `sample`) and nothing else. InputError for a model that was not trained in random orders:
        it answers for the next place alone."""
        if self.order != "random":
            raise InputError(
                "the law of any place asks for a model of random orders",
                found=self.order,
                remedy="fit it with order='random'",
            )
        given, start = self._given(known)
        return np.asarray(density(self.model, start, given).numpy())

    def _given(self, known: Any) -> tuple[Tensor, Tensor]:
        """What is given (N, T), and the tokens with 0 where one is open."""
        table = _array(known)
        fits = table.ndim == 2 and table.shape[1] == self.length and table.dtype.kind in "iu"
        if not fits or not table.size or table.min() < OPEN or table.max() >= self.vocabulary:
            raise InputError(
                "the known tokens are no table of this model's",
                expected=f"whole numbers (N, {self.length}) from 0 to {self.vocabulary - 1}, or "
                f"{OPEN} where a token is asked for",
                found=f"{table.shape} of {table.dtype}"
                + (f", {table.min()} to {table.max()}" if fits and table.size else ""),
            )
        whole = torch.from_numpy(table.astype(np.int64))
        given = whole != OPEN
        if self.order == "left_to_right" and bool((given[:, 1:] & ~given[:, :-1]).any()):
            raise InputError(
                "a model of left to right knows what came before alone",
                expected="known tokens at the beginning of each sequence",
                remedy="fit it with order='random'",
            )
        return given, whole.clamp(min=0)


def fit(
    model: str,
    sequences: Any,
    *,
    order: str = "random",
    arguments: Mapping[str, Any] | None = None,
    steps: int = 500,
    learning_rate: float = 1e-3,
    batch: int = 32,
    seed: int = 0,
) -> Fitted:
    """Train a model of sequences.

    model: `sigma_gpt`, and its `arguments` (stages/params/models/sigma_gpt.yaml lists sizes).
    sequences: whole numbers (N, T) from 0, thirty rows or more, of which a tenth validates and a
    tenth tests, drawn by the seed. order: what training shows: random, left_to_right or
    fractal. `batch` sequences a step. InputError, DivergedError.
    """
    wanted = asked.settings(
        Wanted,
        order=order,
        arguments=arguments,
        steps=steps,
        learning_rate=learning_rate,
        batch=batch,
        seed=seed,
    )
    if model not in fittable():
        raise InputError(
            "no model that learns orders of sequences has that name",
            where=asked.WHERE,
            found=repr(model),
            expected=f"of {', '.join(fittable())}",
        )
    table = _array(sequences)
    if table.ndim == 2 and len(table) < 3 * PARTS:
        raise InputError(
            "there are too few sequences", found=str(len(table)), expected=f"{3 * PARTS} or more"
        )
    made = _placed(table, wanted.seed)
    with asked.ones_own("the sequences", "give whole numbers from 0, (N, T), a row a sequence"):
        tokens.check(made, "the sequences")
    every = max(1, wanted.steps // PARTS)
    budget = asked.budget(OrderBudget, wanted, every, PARTS)
    settings = asked.loop(wanted, every, PARTS)
    with tempfile.TemporaryDirectory(prefix="fitted-") as name:
        tokens.write(made, Path(name), {})
        data = OrderData(Prepared.open(Path(name)), budget, order, wanted.seed)
        with torch.random.fork_rng(devices=[]):  # the caller's stays as it was
            torch.default_generator.manual_seed(seeds.derive(wanted.seed, "model"))
            with asked.ones_own(f"{model} of these sequences", "mend `arguments`, or the array"):
                net = build(model, wanted.arguments or SMALL, None, made.vocabulary, table.shape[1])
            history = train(net, data, settings, Checkpoints(Path(name)))
    return Fitted(model, net, data, history, wanted.seed)


def fittable() -> list[str]:
    """The models that learn orders, sorted."""
    return [name for name in names() if model_class(name).ordered]


def _array(sequences: Any) -> np.ndarray:
    """Sequences as an array. InputError for those that are not all of one length."""
    if isinstance(sequences, Mapping):
        raise InputError(
            "the data are no table of sequences",
            found=f"a {type(sequences).__name__} of {', '.join(map(str, sequences))[:80]}",
            expected="whole numbers (N, T): N sequences, each of T tokens",
            remedy="give the array itself; mappings are sets, for a model of fields",
        )
    try:
        return np.asarray(sequences)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            "the sequences are no table of numbers",
            found=str(error).splitlines()[0],
            expected="whole numbers (N, T): N sequences, each of T tokens",
            remedy="cut them to one length, or fill the shorter ones up",
        ) from None


def _placed(table: np.ndarray, seed: int) -> tokens.Sequences:
    """The array as sequences, each in a split."""
    count = len(table) if table.ndim else 0
    split = np.zeros(count, np.int8)
    order, part = seeds.stream(seed, "fitted", "splits").permutation(count), count // PARTS
    split[order[:part]], split[order[part : 2 * part]] = 1, 2
    return tokens.Sequences(
        kind="text",
        tokens=table,
        split=split,
        source=np.zeros(count, np.int64),
        record=np.arange(count),
        files=("memory",),
        vocabulary=int(table.max()) + 1 if table.size and table.dtype.kind in "iu" else 1,
        group=np.arange(count),
    )
