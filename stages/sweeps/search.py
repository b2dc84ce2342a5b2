"""One sweep: the arguments of a model that learns nothing by gradient, chosen on validation slices (thesis sections 1.3.3, 1.4.1).

The thesis searched k, the scales and the like with a random forest; we use Optuna's tree of Parzen estimators with a seed, one trial after
another: the same draws on every run. The objective is the RMSE per component over all points of every `val_every`-th validation slice.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
import torch
from torch import nn

from stages import params, seeds
from stages.contexts.given import Contexts
from stages.errors import DataError
from stages.models.fields import build
from stages.training.data import Data
from stages.training.fit import scale_to
from stages.training.loop import validate


@dataclass(frozen=True)
class Thinned(Data):
    """The data of a sweep: every n-th validation slice."""

    every: int = 1

    def slices(self, split: str) -> list[int]:
        """Target slices of a split, thinned."""
        return super().slices(split)[::self.every]


def sweep(model: str, arm: dict[str, Any], wanted: params.Sweep, contexts: Contexts, seed: int) -> list[dict[str, Any]]:
    """All trials in order: {"number", "arguments", "rmse_component_kn"}. DataError without validation slices."""
    if not contexts.pairs.targets("val"):
        raise DataError("nothing to choose on", found="no validation slices", remedy="widen the split's intervals in params.yaml")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    draw = int(seeds.stream(seed, "sweep", model).integers(2**31))
    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.TPESampler(seed=draw))
    found = []

    def trial(asked: optuna.Trial) -> float:
        arguments = {name: suggested(asked, name, axis) for name, axis in wanted.space.items()}
        value = score(build(model, {**arm, **arguments}), contexts, wanted.val_every)
        found.append({"number": asked.number, "arguments": arguments, "rmse_component_kn": value})
        return value

    study.optimize(trial, n_trials=wanted.trials, n_jobs=1, show_progress_bar=False)
    return found


def suggested(asked: optuna.Trial, name: str, axis: params.Range) -> int | float:
    """A value of one argument; lengths to three digits, so that what is written is what was tried."""
    if axis.whole:
        return asked.suggest_int(name, int(axis.low), int(axis.high), log=axis.log)
    return float(f"{asked.suggest_float(name, axis.low, axis.high, log=axis.log):.3g}")


def score(model: nn.Module, contexts: Contexts, every: int) -> float:
    """RMSE per component in knots over the thinned validation slices."""
    scale_to(model, contexts)
    data = Thinned(contexts, model, torch.device("cpu"), every)
    value = validate(model, data, data.unit_kn())["rmse_component_kn"]
    return value if np.isfinite(value) else float("inf")


def best(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The trial with the least error; the first of equals."""
    return min(found, key=lambda trial: (trial["rmse_component_kn"], trial["number"]))
