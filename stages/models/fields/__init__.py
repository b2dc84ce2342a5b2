"""The field models (thesis section 3.3.1): a context set and target points in, a prediction out. One file a model, key = file name.

`build` makes a model from an arm's and a size's arguments and refuses what does not fit; `learns` says how a model is fitted:
"nothing", "neighbours" (k is chosen on validation slices) or "gradient".
"""

import inspect
from collections.abc import Mapping
from typing import Any

from torch import nn

from stages.errors import InputError
from stages.models.fields.day_average import DayAverage
from stages.models.fields.hour_average import HourAverage
from stages.models.fields.kernel import Kernel
from stages.models.fields.knn import KNN
from stages.models.fields.msa import HEADS, MSA
from stages.models.fields.persistence import Persistence
from stages.models.fields.trend import Trend
from stages.models.layers.encoders import ENCODERS

FIELDS = {"day_average": DayAverage, "hour_average": HourAverage, "persistence": Persistence, "knn": KNN, "trend": Trend, "kernel": Kernel,
          "msa": MSA}
SAME = ("day_average", "hour_average", "persistence", "knn", "trend", "kernel")  # predict the values that they read, not others
LIMITS = {"width": 4096, "heads": 4096, "layers": 256, "x_dim": 64, "i_dim": 64, "o_dim": 64}
WORDS = {"encoder": tuple(ENCODERS), "head": HEADS}


def build(name: str, arm: Mapping[str, Any] | None = None, size: Mapping[str, Any] | None = None,
          x_dim: int = 3, i_dim: int = 2, o_dim: int = 2) -> nn.Module:
    """A new model, weights drawn from torch's global generator. InputError names the argument that does not fit."""
    if name not in FIELDS:
        raise InputError("no such field model", found=repr(name), expected=", ".join(FIELDS))
    arguments = {**(arm or {}), **(size or {})}
    known = set(inspect.signature(FIELDS[name].__init__).parameters) - {"self", "x_dim", "i_dim", "o_dim"}
    problems = [f"{key} is not an argument" for key in sorted(set(arguments) - known)]
    dimensions = {"x_dim": x_dim, "i_dim": i_dim, "o_dim": o_dim}
    for key, value in {**arguments, **dimensions}.items():
        if key in LIMITS and not (type(value) is int and 1 <= value <= LIMITS[key]):
            problems.append(f"{key} must be a whole number from 1 to {LIMITS[key]}, not {value!r}")
        if key in WORDS and value not in WORDS[key]:
            problems.append(f"{key} must be one of {', '.join(WORDS[key])}, not {value!r}")
        if key == "neighbours" and not (value and all(type(k) is int and k >= 1 for k in value)):
            problems.append(f"neighbours must be whole numbers of at least 1, not {value!r}")
    if not problems and arguments.get("width", 12) % arguments.get("heads", 2):
        problems.append(f"width {arguments.get('width', 12)} is not a multiple of heads {arguments.get('heads', 2)}")
    if name in SAME and i_dim != o_dim:
        problems.append(f"a model of the {i_dim} values that it reads cannot predict {o_dim}")
    if problems:
        raise InputError("the arguments do not fit the model", where=f"models.{name}", found="; ".join(problems),
                         expected=f"of {', '.join(sorted(known)) or 'none'}", remedy="mend its arms and sizes in params.yaml")
    return FIELDS[name](**dimensions, **arguments)
