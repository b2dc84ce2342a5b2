"""Randomness from names: one integer seed and a path of words give an independent, reproducible
stream.

`stream(0, "simulate", "traffic")` is the same on every machine and does not move when another
stream draws more.
Only `everything` touches global generators.
"""

import hashlib
import random
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive(seed: int, *names: str | int) -> int:
    """A 63-bit seed from a base seed and names (SHA-256, so neighbouring seeds share nothing)."""
    text = "/".join([str(int(seed)), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """A NumPy generator (PCG64) for the stream called `names`."""
    return np.random.Generator(np.random.PCG64(derive(seed, *names)))


def torch_stream(seed: int, *names: str | int, device: str = "cpu") -> "torch.Generator":
    """A torch.Generator for the stream called `names`; torch is imported only when this is
    called."""
    import torch

    return torch.Generator(device=device).manual_seed(derive(seed, *names))


def everything(seed: int) -> None:
    """Seed Python's, NumPy's and torch's global generators (weight initialisation draws from
    torch's)."""
    import torch

    random.seed(derive(seed, "python"))
    np.random.seed(derive(seed, "numpy") % 2**32)
    torch.manual_seed(derive(seed, "torch"))
