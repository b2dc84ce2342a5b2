"""Three laws whose every conditional is known: product, step and permutation (thesis 4.3.1,
D.2.2-D.2.4; the bench of burst sampling).

Product: independent tokens, 1 with probability `share`. Step: zeros with one run of `width` ones;
its begin is uniform over `places` (91 in the thesis' sizes; the public code leaves the last one
out). Permutation: uniform over the orders of 0..T-1. Sequences are independent draws, so a law with
few sequences (step) repeats itself in all splits: that is the law, not a leak. A file is a split
(train.npy, val.npy, test.npy: int16, N x T), with the law in meta.json.
Shapes: N sequences of T tokens.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import DataError
from stages.files import read_json
from stages.params.sequences import Permutation, Product, Reading, Step
from stages.sequences.tokens import Sequences, make_each, read_meta, tables

KEYS: dict[str, dict[str, type]] = {
    "product": {"share": float},
    "step": {"width": int, "places": int},
    "permutation": {},
}


def make(config: Product | Step | Permutation, folder: Path) -> None:
    """Write train.npy, val.npy, test.npy (N, T), int16, and meta.json into `folder`."""
    draw, law = {"product": product, "step": step, "permutation": permutation}[config.kind](config)
    make_each(config, folder, config.length, draw, law)


def product(
    config: Product,
) -> tuple[Callable[[np.random.Generator, int], np.ndarray], dict[str, Any]]:
    """How product sequences are drawn, and their law."""
    return (lambda rng, number: rng.random((number, config.length)) < config.share), {
        "share": config.share
    }


def step(config: Step) -> tuple[Callable[[np.random.Generator, int], np.ndarray], dict[str, Any]]:
    """How step sequences are drawn, and their law."""

    def draw(rng: np.random.Generator, number: int) -> np.ndarray:
        begin = rng.integers(config.places, size=(number, 1))
        since = np.arange(config.length) - begin
        return (since >= 0) & (since < config.width)

    return draw, {"width": config.width, "places": config.places}


def permutation(
    config: Permutation,
) -> tuple[Callable[[np.random.Generator, int], np.ndarray], dict[str, Any]]:
    """How permutations are drawn; their law has no numbers but the length."""
    return (
        lambda rng, number: rng.permuted(np.tile(np.arange(config.length), (number, 1)), axis=1)
    ), {}


def read(raw: Path, seed: int, config: Reading) -> Sequences:
    """All sequences, or the first `config.train` of the training ones. Nothing is drawn: `seed` is
    not used.

    DataError for files that are damaged, disagree with meta.json, or hold a sequence that their law
    cannot have made.
    """
    told = read_json(raw / "meta.json")
    kind = told.get("kind") if isinstance(told, dict) else None
    if kind not in KEYS:
        raise DataError(
            "meta.json tells no law",
            where=str(raw / "meta.json"),
            expected=", ".join(KEYS),
            found=repr(kind),
            remedy="acquire the data set again",
        )
    meta = read_meta(raw, kind, KEYS[kind])
    vocabulary = meta["length"] if kind == "permutation" else 2
    return Sequences(
        kind=kind,
        **tables(raw, meta, vocabulary, config.train),
        files=("train.npy", "val.npy", "test.npy"),
        vocabulary=vocabulary,
        law={key: meta[key] for key in ("length", *KEYS[kind])},
        names={"tokens": [str(k) for k in range(vocabulary)]},
    )
