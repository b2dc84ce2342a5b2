"""The rivals of a data set, by name, as the parameters set them."""

from stages import seeds
from stages.dynamics.rivals.contract import Rival
from stages.dynamics.rivals.local import Local
from stages.dynamics.rivals.reservoir import Reservoirs
from stages.dynamics.rivals.trivial import Mean, Persistence
from stages.dynamics.settings import FAMILY, LocalRule, ReservoirRule, Rivals

NAMES = ("persistence", "mean", "linear", "quadratic", "reservoir", "reservoirs")


def build(name: str, told: Rivals, seed: int) -> Rival:
    """A rival that has not learned yet, its random numbers from a stream of its own."""
    if name == "persistence":
        return Persistence()
    if name == "mean":
        return Mean()
    rng, rule = seeds.stream(seed, FAMILY, "rival", name), getattr(told, name)
    if isinstance(rule, LocalRule):
        return Local(rng, products=name == "quadratic", **rule.model_dump())
    assert isinstance(rule, ReservoirRule)
    return Reservoirs(rng, **rule.model_dump())
