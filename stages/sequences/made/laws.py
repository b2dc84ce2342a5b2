"""Three laws whose every conditional is known: product, step and permutation (thesis 4.3.1,
D.2.2-D.2.4; the bench of burst sampling).

Product: independent tokens, 1 with probability `share`. Step: zeros with one run of `width` ones;
its begin is uniform over `places` (91 in the thesis' sizes; the public code leaves the last one
out). Permutation: uniform over the orders of 0..T-1. Sequences are independent draws, so a law with
few sequences (step) repeats itself in all splits: that is the law, not a leak.
Shapes: N sequences of T tokens.
"""

from pathlib import Path

import numpy as np

from stages.params.sequences import Permutation, Product, Step
from stages.sequences.made import make_each


def make(config: Product | Step | Permutation, folder: Path) -> None:
    """Write train.npy, val.npy, test.npy (N, T), int16, and meta.json into `folder`."""
    draw, law = {"product": product, "step": step, "permutation": permutation}[config.kind](config)
    make_each(config, folder, config.length, draw, law)


def product(config: Product):
    """How product sequences are drawn, and their law."""
    return (lambda rng, number: rng.random((number, config.length)) < config.share), {
        "share": config.share
    }


def step(config: Step):
    """How step sequences are drawn, and their law."""

    def draw(rng: np.random.Generator, number: int) -> np.ndarray:
        begin = rng.integers(config.places, size=(number, 1))
        since = np.arange(config.length) - begin
        return (since >= 0) & (since < config.width)

    return draw, {"width": config.width, "places": config.places}


def permutation(config: Permutation):
    """How permutations are drawn; their law has no numbers but the length."""
    return (
        lambda rng, number: rng.permuted(np.tile(np.arange(config.length), (number, 1)), axis=1)
    ), {}
