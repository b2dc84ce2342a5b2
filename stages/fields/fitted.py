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
from stages.fields.models import build, model_class, names
from stages.fields.sets import TABLES, PreparedSets, whole
from stages.fields.train import train
from stages.params import SetBudget, nearest
from stages.training import asked
from stages.training.checkpoint import Checkpoints

PARTS = 10  # of the sets, one validates and one tests


class Fitted:
    """A trained field model; `history` holds its losses, `error` the root mean square error of the
    sets that it was not trained on, in the unit of the values."""

    def __init__(
        self, name: str, model: FieldModel, sets: PreparedSets, history: dict[str, Any]
    ) -> None:
        self.name, self.model, self.history = name, model.eval(), history
        self._widths = [sets.dimensions[key] for key in ("x_dim", "i_dim", "x_dim")]
        self._scaler = {key: np.asarray(v) for key, v in sets.meta["scaler"].items()}
        numbers = sets.split("test")
        with torch.no_grad():
            gap = (sets.predict(model, numbers) - sets.target_y[numbers]) * sets.unit
        self.error = float(gap.square().mean().sqrt())

    def __repr__(self) -> str:
        return asked.described(self.name, self.error, "in the values' unit", self.model)

    @torch.no_grad()
    def predict(self, context_x: Any, context_y: Any, target_x: Any) -> np.ndarray:
        """Mean values (S, T, O) at target_x (S, T, X), from context_x (S, C, X) with context_y
        (S, C, I), in the units of the sets that the model was fitted to. InputError for arrays
        that are not of these shapes, or not finite."""
        given = dict(zip(TABLES, (context_x, context_y, target_x), strict=False))
        arrays = [_numbers(name, values) for name, values in given.items()]
        _refuse_shapes(arrays, self._widths)
        arrays[1] = (arrays[1] - self._scaler["i_mean"]) / self._scaler["i_std"]
        batch = whole(*(torch.tensor(_table(a)) for a in arrays), None)
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
    fitted so, settings out of range and arrays that do not fit each other; DivergedError.
    """
    wanted = asked.settings(
        asked.Settings,
        arguments=arguments,
        steps=steps,
        learning_rate=learning_rate,
        batch=batch,
        seed=seed,
    )
    _refuse_model(model)
    found = _placed(_arrays(sets), wanted.seed)
    with asked.ones_own("the sets", "mend the arrays that `fit` was given"):
        problem.check(found, "the sets")
    every = max(1, wanted.steps // PARTS)
    budget = asked.budget(SetBudget, wanted, every, PARTS)
    settings = asked.loop(wanted, every, PARTS)
    with tempfile.TemporaryDirectory(prefix="fitted-") as name:
        problem.write(found, Path(name), {})
        prepared = PreparedSets.open(Path(name))
        with torch.random.fork_rng(devices=[]):  # the caller's stays as it was
            torch.default_generator.manual_seed(seeds.derive(wanted.seed, "model"))
            with asked.ones_own(f"{model} of these sets", "mend `arguments`, or the arrays"):
                net = build(model, wanted.arguments, None, **prepared.dimensions)
        history = train(
            net, SetData(prepared, budget, wanted.seed), settings, Checkpoints(Path(name))
        )
    return Fitted(model, net, prepared, history)


def fittable() -> list[str]:
    """The models that read whole sets, and are no neighbours of winds, sorted."""
    found = ((name, model_class(name)) for name in names())
    return [name for name, one in found if one.context == "slice" and one.learns != "neighbours"]


def _refuse_model(model: str) -> None:
    """InputError for no model of fields, and for one that is made for winds alone."""
    fitting, known = fittable(), model in names()
    if model not in fitting:
        raise InputError(
            "this model is made for winds, not for sets"
            if known
            else "there is no such model of fields",
            where=asked.WHERE,
            expected=f"of {', '.join(fitting)}",
            found=f"{model!r}" + ("" if known else nearest(model, fitting).split(" (")[0]),
            remedy="name one of these",
        )


def _arrays(sets: Any) -> dict[str, np.ndarray]:
    """The four arrays of the sets. InputError for what is no mapping, or lacks one."""
    if not isinstance(sets, Mapping):
        raise InputError(
            "the data are no sets",
            where=asked.WHERE,
            expected=f"a mapping with the arrays {', '.join(TABLES)}, each (S, points, axes)",
            found=type(sets).__name__,
            remedy="put the points of each set in arrays with three axes (README, Python)",
        )
    if missing := [name for name in TABLES if name not in sets]:
        raise InputError(
            "the sets lack arrays",
            where=asked.WHERE,
            expected=", ".join(TABLES),
            found=f"no {', '.join(missing)}",
        )
    return {name: _numbers(name, sets[name]) for name in TABLES}


def _refuse_shapes(arrays: list[np.ndarray], widths: list[int]) -> None:
    """InputError for arrays asked of a model that are not as its sets, or not as each other."""
    sets, points = len(arrays[0]), arrays[0].shape[1]
    expected = [(sets, points, widths[0]), (sets, points, widths[1])]
    expected.append((sets, arrays[2].shape[1], widths[2]))
    for name, array, shape in zip(TABLES, arrays, expected, strict=False):
        if array.shape != shape or not array.size:
            raise InputError(
                f"{name} does not fit the model or the other arrays",
                expected=f"{name} {shape}, one or more sets and points",
                found=f"{name} {array.shape}",
                remedy="give arrays with the axes of the sets that the model was fitted to",
            )


def _table(values: Any) -> np.ndarray:
    return np.asarray(values, np.float32)


def _numbers(name: str, values: Any) -> np.ndarray:
    """An array (S, points, axes) of the sets, float64. InputError for what is none."""
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
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
            remedy="of a single set give array[None]" if found.ndim == 2 else "",
        )
    asked.refuse_large(name, found)
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
