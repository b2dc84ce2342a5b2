"""Trained cells that the parameters do not ask for: left from earlier settings, or copied here."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.params import Params
from stages.params.base import Variant
from stages.scores.shell import WEIGHTS
from stages.training import store

NO_SIZE = "none"  # of a model without sizes, in its checkpoint
VARIANTS_SEED = 0  # with which a variant is trained


def name_of(meta: Mapping[str, Any]) -> str:
    """The name of the cell that a checkpoint says it is of."""
    return "{model}-{arm}-{size}-s{seed}".format_map(meta)


@dataclass(frozen=True)
class Wanted:
    """What a family's experiments train: every arm of params.yaml in these sizes with these seeds,
    and further variants in their own sizes."""

    parameters: Params
    sizes: tuple[str, ...]
    seeds: tuple[int, ...]
    variants: tuple[Variant, ...]

    def stray(self, run: Path) -> str:
        """Why a cell's folder does not belong to the parameters; '' if it does. Models without
        sizes are trained once, with any seed."""
        model = run.name.partition("-")[0]
        known = self.parameters.models.get(model)
        if known is None:  # asked first: a model that is gone cannot be built, nor its file trusted
            return f"the model {model} is not in params.yaml"
        meta = store.load(str(run / WEIGHTS))[1]
        asked = [one for one in self.variants if one.model == model]
        sizes = (*self.sizes, *(one.size for one in asked)) if known.sizes else (NO_SIZE,)
        seeds = (*self.seeds, *(VARIANTS_SEED for _ in asked)) if known.sizes else (meta["seed"],)
        for key, allowed in (
            ("model", (model,)),
            ("arm", tuple(known.arms)),
            ("size", sizes),
            ("seed", seeds),
        ):
            if meta[key] not in allowed:
                return f"{key} {meta[key]} is not of {', '.join(map(str, sorted({*allowed})))}"
        name = name_of(meta)
        if run.name == name or (run.name == model and not known.sizes):
            return ""
        return f"its checkpoint is that of {name}"
