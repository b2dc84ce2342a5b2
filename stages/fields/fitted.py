"""A field model trained to sets of one's own, in memory: the training of the cells (train.py) on
arrays instead of a prepared data set.

Shapes: S sets, C context points, T target points, X positions, I context values, O target values.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stages import seeds
from stages.contracts import FieldModel
from stages.errors import InputError
from stages.fields import problem
from stages.fields.batches import SetData
from stages.fields.models import build, model_class
from stages.fields.sets import TABLES, PreparedSets, whole
from stages.fields.train import train
from stages.params import SetBudget, inference
from stages.training.checkpoint import Checkpoints
from stages.training.loop import Settings

PARTS = 10  # of the sets, one validates and one tests


class Fitted:
    """A trained field model; `history` holds its losses, `error` the root mean square error of the
    sets that it was not trained on, in the unit of the values."""

    def __init__(self, model: FieldModel, sets: PreparedSets, history: dict[str, Any]) -> None:
        self.model, self.history = model.eval(), history
        self._scaler = {key: np.asarray(v) for key, v in sets.meta["scaler"].items()}
        numbers = sets.split("test")
        with torch.no_grad():
            gap = (sets.predict(model, numbers) - sets.target_y[numbers]) * sets.unit
        self.error = float(gap.square().mean().sqrt())

    @torch.no_grad()
    def predict(self, context_x: Any, context_y: Any, target_x: Any) -> np.ndarray:
        """Mean values (S, T, O) at target_x (S, T, X), from context_x (S, C, X) with context_y
        (S, C, I), in the units of the sets that the model was fitted to."""
        values = (np.asarray(context_y) - self._scaler["i_mean"]) / self._scaler["i_std"]
        batch = whole(*(torch.tensor(_table(a)) for a in (context_x, values, target_x)), None)
        mean: np.ndarray = self.model(batch).mean.numpy()
        return np.asarray(mean * self._scaler["o_std"] + self._scaler["o_mean"])


def fit(
    model: str,
    sets: Mapping[str, Any],
    *,
    arguments: Mapping[str, Any] | None = None,
    steps: int = 500,
    learning_rate: float = 1e-3,
    batch: int = 8,
    seed: int = 0,
) -> Fitted:
    """Train a field model to sets of points with values.

    model: a name of stages/fields/models, `msa` say, and its `arguments` (stages/params/models
    lists arms and sizes). sets: context_x (S, C, X), context_y (S, C, I), target_x (S, T, X),
    target_y (S, T, O), finite, in any units; at least ten sets, of which a tenth validates and a
    tenth tests, drawn by the seed. `batch` sets a step. InputError for a model that cannot be
    fitted so, DataError for arrays that do not fit each other, DivergedError.
    """
    missing = [name for name in TABLES if name not in sets]
    if missing:
        raise InputError("the sets lack arrays", expected=", ".join(TABLES), found=f"no {missing}")
    if model_class(model).context != "slice":
        raise InputError("this model reads winds near its target, not sets", found=model)
    found = _placed({name: _numbers(name, sets[name]) for name in TABLES}, seed)
    problem.check(found, "the sets")
    budget = SetBudget(
        steps=steps,
        validate_every=max(1, steps // PARTS),
        patience=PARTS,
        batch=batch,
        learning_rate=learning_rate,
    )
    clip = inference().training.clip
    settings = Settings(
        steps, budget.validate_every, PARTS, learning_rate, clip, seed, slices=batch
    )
    with tempfile.TemporaryDirectory(prefix="fitted-") as name:
        problem.write(found, Path(name), {})
        prepared = PreparedSets.open(Path(name))
        with torch.random.fork_rng(devices=[]):  # the caller's stays as it was
            torch.default_generator.manual_seed(seeds.derive(seed, "model"))
            net = build(model, arguments, None, **prepared.dimensions)
        history = train(net, SetData(prepared, budget, seed), settings, Checkpoints(Path(name)))
    return Fitted(net, prepared, history)


def _table(values: Any) -> np.ndarray:
    return np.asarray(values, np.float32)


def _numbers(name: str, values: Any) -> np.ndarray:
    """An array (S, points, axes) of the sets, float64. InputError for what is none."""
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            "an array of the sets holds no numbers, or sets of different lengths",
            found=f"{name}: {str(error).splitlines()[0]}",
            expected="numbers (S, points, axes)",
        ) from None
    if found.ndim != 3:
        raise InputError(
            "an array of the sets has not three axes",
            found=f"{name}: {found.shape}",
            expected="numbers (S, points, axes)",
        )
    return found


def _placed(tables: dict[str, Any], seed: int) -> problem.Sets:
    """The arrays as a problem's sets, each in a split."""
    count = len(tables["context_x"])
    if count < PARTS:
        raise InputError("there are too few sets", found=str(count), expected=f"{PARTS} or more")
    split = np.zeros(count, np.int8)
    order, part = seeds.stream(seed, "fitted", "splits").permutation(count), count // PARTS
    split[order[:part]], split[order[part : 2 * part]] = 1, 2
    words = {
        key: tuple(f"{key}{i}" for i in range(tables[name].shape[-1]))
        for key, name in (("x", "context_x"), ("i", "context_y"), ("o", "target_y"))
    }
    return problem.Sets(
        **tables,
        split=split,
        source=np.arange(count),
        record=np.zeros(count, np.int64),
        files=("memory",),
        units={key: ("",) * len(names) for key, names in words.items()},
        names=words,
        loss="mse",
        standardise=True,
    )
