"""The field models (thesis section 3.3.1): a context set and target points in, a prediction out.
One file a model, key = file name.

`build` makes a model from an arm's and a size's arguments and refuses what does not fit; `learns`
says how a model is fitted: "nothing", "neighbours" (k is chosen on validation slices) or
"gradient".
"""

import inspect
from collections.abc import Mapping
from typing import Any

from torch import nn

from stages.errors import InputError
from stages.fields.models.cnp import CNP
from stages.fields.models.day_average import DayAverage
from stages.fields.models.gen import GEN, NODES
from stages.fields.models.geofno import GeoFNO
from stages.fields.models.gka import GKA
from stages.fields.models.gka_mlp_tnn import GKAMLPTNN
from stages.fields.models.gka_tnn import GKATNN
from stages.fields.models.gng import GNG
from stages.fields.models.hour_average import HourAverage
from stages.fields.models.hypermixer import HyperMixer
from stages.fields.models.kalman import Kalman
from stages.fields.models.kernel import Kernel
from stages.fields.models.kernel_mlp import KernelMLP
from stages.fields.models.knn import KNN
from stages.fields.models.knn_tnn import KNNTNN
from stages.fields.models.kriging import Kriging
from stages.fields.models.msa import BLOCKS, HEADS, MSA
from stages.fields.models.optimum import Optimum
from stages.fields.models.particle import Particle
from stages.fields.models.perceiver import Perceiver
from stages.fields.models.persistence import Persistence
from stages.fields.models.tfs import TFS
from stages.fields.models.trend import Trend
from stages.layers.cross import CONDITIONINGS
from stages.layers.encoders import ENCODERS
from stages.layers.gaussian_process import KINDS
from stages.layers.graphs import EXTENTS
from stages.layers.messages import MESSAGES

FIELDS = {
    "day_average": DayAverage,
    "hour_average": HourAverage,
    "persistence": Persistence,
    "knn": KNN,
    "trend": Trend,
    "kernel": Kernel,
    "msa": MSA,
    "knn_tnn": KNNTNN,
    "gka": GKA,
    "gka_tnn": GKATNN,
    "gka_mlp_tnn": GKAMLPTNN,
    "kriging": Kriging,
    "optimum": Optimum,
    "particle": Particle,
    "kalman": Kalman,
    "cnp": CNP,
    "tfs": TFS,
    "perceiver": Perceiver,
    "hypermixer": HyperMixer,
    "kernel_mlp": KernelMLP,
    "gen": GEN,
    "gng": GNG,
    "geofno": GeoFNO,
}
NETWORKS = (
    "msa",
    "cnp",
    "tfs",
    "perceiver",
    "hypermixer",
    "gen",
    "gng",
    "geofno",
)  # predict any values; the others those that they read
SAME = tuple(name for name in FIELDS if name not in NETWORKS)
LIMITS = {
    "width": 4096,
    "heads": 4096,
    "hidden": 16384,
    "layers": 256,
    "encoder_layers": 256,
    "decoder_layers": 64,
    "latents": 65536,
    "places": 4096,
    "steps": 256,
    "nearest": 64,
    "modes": 64,
    "side": 256,
    "x_dim": 64,
    "i_dim": 64,
    "o_dim": 64,
}
WORDS = {
    "encoder": tuple(ENCODERS),
    "head": HEADS,
    "block": BLOCKS,
    "conditioning": CONDITIONINGS,
    "tied": (0, 1),
    "requery": (0, 1),
    "kind": tuple(KINDS),
    "nodes": NODES,
    "message": MESSAGES,
    "extent": tuple(EXTENTS),
}


def axes(name: str) -> int:
    """Axes of the places that a model reads: latitude, longitude, altitude; of local contexts
    east, north, up and time."""
    return 4 if FIELDS[name].context in ("neighbours", "recent") else 3


def build(
    name: str,
    arm: Mapping[str, Any] | None = None,
    size: Mapping[str, Any] | None = None,
    x_dim: int | None = None,
    i_dim: int = 2,
    o_dim: int = 2,
) -> nn.Module:
    """A new model, weights drawn from torch's global generator; x_dim None: as many as it reads of
    the wind.

    InputError names the argument that does not fit.
    """
    if name not in FIELDS:
        raise InputError("no such field model", found=repr(name), expected=", ".join(FIELDS))
    x_dim = axes(name) if x_dim is None else x_dim
    arguments = {**(arm or {}), **(size or {})}
    known = {
        key: parameter.default
        for key, parameter in inspect.signature(FIELDS[name]).parameters.items()
        if key not in ("x_dim", "i_dim", "o_dim")
    }
    problems = [f"{key} is not an argument" for key in sorted(set(arguments) - set(known))]
    dimensions = {"x_dim": x_dim, "i_dim": i_dim, "o_dim": o_dim}
    for key, value in {**arguments, **dimensions}.items():
        if key in LIMITS and not (type(value) is int and 1 <= value <= LIMITS[key]):
            problems.append(f"{key} must be a whole number from 1 to {LIMITS[key]}, not {value!r}")
        if key in WORDS and value not in WORDS[key]:
            problems.append(
                f"{key} must be one of {', '.join(map(str, WORDS[key]))}, not {value!r}"
            )
        if key.endswith(("_km", "_min", "_m_s")) and not (
            type(value) in (int, float) and 0 < value < float("inf")
        ):
            problems.append(f"{key} must be a number above 0, not {value!r}")
        if key == "neighbours" and not (value and all(type(k) is int and k >= 1 for k in value)):
            problems.append(f"neighbours must be whole numbers of at least 1, not {value!r}")
    whole = {**known, **arguments}
    if "heads" in known and not problems:
        problems += [
            f"{key} {whole[key]} is not a multiple of heads {whole['heads']}"
            for key in ("width", "hidden")
            if key in known and whole[key] % whole["heads"]
        ]
    if name in SAME and i_dim != o_dim:
        problems.append(f"a model of the {i_dim} values that it reads cannot predict {o_dim}")
    if problems:
        raise InputError(
            "the arguments do not fit the model",
            where=f"models.{name}",
            found="; ".join(problems),
            expected=f"of {', '.join(sorted(known)) or 'none'}",
            remedy="mend its arms and sizes in params.yaml",
        )
    return FIELDS[name](**dimensions, **arguments)
