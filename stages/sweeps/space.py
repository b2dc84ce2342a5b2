"""Which arguments a draw tries: a function of the seed, the draw's number and, for the tree of
Parzen estimators, of the draws before it.

Every draw has its own seed, so nothing depends on what a process drew earlier: a sweep that was
killed and goes on draws what it would have drawn, and draws of `random` and `grid` are the same in
any order and in any process.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

from stages import params, seeds

Arguments = dict[str, int | float | str]
optuna.logging.set_verbosity(
    optuna.logging.ERROR
)  # it tells every study and every failed trial; what matters is told here


def distribution(axis: params.Range) -> BaseDistribution:
    """An axis as Optuna knows it."""
    if axis.of:
        return CategoricalDistribution(axis.of)
    if axis.whole:
        return IntDistribution(int(axis.low), int(axis.high), log=axis.log)
    return FloatDistribution(axis.low, axis.high, log=axis.log)


def distributions(wanted: params.Sweep) -> dict[str, BaseDistribution]:
    """All axes of a sweep, in the order of params.yaml."""
    return {name: distribution(axis) for name, axis in wanted.space.items()}


def grid(wanted: params.Sweep) -> list[Arguments]:
    """Every combination; the last axis changes first."""
    values = (axis.grid() for axis in wanted.space.values())
    return [dict(zip(wanted.space, point, strict=True)) for point in itertools.product(*values)]


def proposed(
    wanted: params.Sweep, seed: int, model: str, draw: int, past: Sequence[FrozenTrial] = ()
) -> Arguments:
    """The arguments of one draw. `past`, in the order of their draws: what is known of others; only
    `tpe` reads it.

    A trial of `past` that is still running counts as a bad one, so that workers side by side do not
    try the same place.
    """
    if wanted.sampler == "grid":
        return grid(wanted)[draw]
    own = int(seeds.stream(seed, "sweep", model, draw).integers(2**31))
    if wanted.sampler == "tpe":
        known: Any
        sampler: Any
        sampler, known = optuna.samplers.TPESampler(seed=own), past
    else:
        sampler, known = optuna.samplers.RandomSampler(seed=own), ()
    study = optuna.create_study(direction="minimize", sampler=sampler)
    study.add_trials(known)
    asked = study.ask(distributions(wanted)).params
    return {
        name: asked[name] if axis.of else axis.written(asked[name])
        for name, axis in wanted.space.items()
    }


class Proposals(optuna.samplers.BaseSampler):
    """Hands a study's trials the arguments of the draw that they carry (user attribute `draw`)."""

    def __init__(self, wanted: params.Sweep, seed: int, model: str):
        self.wanted, self.seed, self.model = wanted, seed, model
        self.chosen: Arguments = {}

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Choose all arguments of the trial; one without a draw gets none."""
        draw = trial.user_attrs.get("draw")
        if draw is None:
            return
        told = study.get_trials(deepcopy=False) if self.wanted.sampler == "tpe" else []
        others = {"COMPLETE": 0, "PRUNED": 0, "RUNNING": 1}
        known = [
            one
            for one in told
            if one.state.name in others and one.number != trial.number and "draw" in one.user_attrs
        ]
        known.sort(key=lambda one: (others[one.state.name], one.user_attrs["draw"], one.number))
        self.chosen = proposed(self.wanted, self.seed, self.model, draw, known)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Nothing is drawn jointly here: `proposed` did."""
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """See `infer_relative_search_space`."""
        return {}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """The value that `before_trial` chose."""
        return self.chosen[param_name]
