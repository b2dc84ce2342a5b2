"""Models of sequences in any order (thesis chapter 4): tokens (B, T) and an order (B, T) in, logits
(B, T, V) out. One file a model.

`build` makes a model from an arm's and a size's arguments and refuses what does not fit. The plain
GPT is sigma_gpt with the order left_to_right (permutations.py): the order belongs to training and
sampling, not to the network.
"""

import inspect
import math
from collections.abc import Mapping
from typing import Any

from torch import nn

from stages.errors import InputError
from stages.sequences.models.diffusion import Diffusion
from stages.sequences.models.sigma_gpt import POSITIONS, STYLES, SigmaGPT

ORDERS = {"sigma_gpt": SigmaGPT, "diffusion": Diffusion}
LIMITS = {
    "width": 8192,
    "keys": 1024,
    "hidden": 32768,
    "heads": 256,
    "blocks": 256,
    "vocabulary": 1_000_000,
    "length": 1_000_000,
}
WORDS = {"positions": tuple(POSITIONS), "style": STYLES}


def build(
    name: str,
    arm: Mapping[str, Any] | None,
    size: Mapping[str, Any] | None,
    vocabulary: int,
    length: int,
) -> nn.Module:
    """A new model of sequences of `length` tokens out of 0..vocabulary-1, weights drawn from
    torch's global generator.

    InputError names the argument that does not fit.
    """
    if name not in ORDERS:
        raise InputError("no such model of sequences", found=repr(name), expected=", ".join(ORDERS))
    arguments, dimensions = (
        {**(arm or {}), **(size or {})},
        {"vocabulary": vocabulary, "length": length},
    )
    known = {
        key: parameter.default
        for key, parameter in inspect.signature(ORDERS[name]).parameters.items()
        if key not in dimensions
    }
    problems = [f"{key} is not an argument" for key in sorted(set(arguments) - set(known))]
    for key, value in {**arguments, **dimensions}.items():
        if key in LIMITS and not (type(value) is int and 1 <= value <= LIMITS[key]):
            problems.append(f"{key} must be a whole number from 1 to {LIMITS[key]}, not {value!r}")
        if key in WORDS and value not in WORDS[key]:
            problems.append(
                f"{key} must be one of {', '.join(map(str, WORDS[key]))}, not {value!r}"
            )
        if key == "dropout" and not (type(value) in (int, float) and 0 <= value < 1):
            problems.append(f"dropout must be a number from 0 to below 1, not {value!r}")
        if key == "prompts" and not (type(value) in (int, float) and 0 <= value <= 1):
            problems.append(f"prompts must be a number from 0 to 1, not {value!r}")
    whole = {**known, **arguments}
    if not problems and whole["width"] % math.lcm(4, whole["heads"]):
        problems.append(
            f"width {whole['width']} is not a multiple of 4 (two positions, sine and cosine) and "
            f"of heads {whole['heads']}"
        )
    if problems:
        raise InputError(
            "the arguments do not fit the model",
            where=f"models.{name}",
            found="; ".join(problems),
            expected=f"of {', '.join(sorted(known))}",
            remedy="mend its arms and sizes in params.yaml",
        )
    return ORDERS[name](**dimensions, **arguments)
