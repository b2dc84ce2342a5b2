"""Lazy random walks from one of several starts (thesis D.1, equation D.1): easy forwards, hard
backwards, and with posteriors that are known.

The start is uniform over `starts`; each step is 0 with probability `stay`, else +1 or -1, each as
likely. Token = altitude - `lowest`, the lowest altitude within reach; so no walk meets an edge.
A file is a split (train.npy, val.npy, test.npy: int16, N x T), with the law in meta.json.
Altitudes without dimension. Shapes: N sequences of T tokens.
"""

from pathlib import Path

import numpy as np

from stages.errors import DataError
from stages.params.sequences import Reading, Walk
from stages.sequences.tokens import Sequences, make_each, read_meta, tables

KEYS = {"starts": list, "stay": float, "lowest": int, "vocabulary": int}


def make(config: Walk, folder: Path) -> None:
    """Write train.npy, val.npy, test.npy (N, T), int16, and meta.json into `folder`."""

    def draw(rng: np.random.Generator, number: int) -> np.ndarray:
        start = rng.choice(np.array(config.starts), size=(number, 1))
        chance = rng.random((number, config.length - 1))
        moves = np.where(chance < config.stay, 0, np.where(chance < (1 + config.stay) / 2, 1, -1))
        return np.concatenate([start, start + np.cumsum(moves, axis=1)], axis=1) - config.lowest

    make_each(
        config,
        folder,
        config.length,
        draw,
        {
            "starts": [start - config.lowest for start in config.starts],
            "stay": config.stay,
            "lowest": config.lowest,
            "vocabulary": config.vocabulary,
        },
    )


def read(raw: Path, seed: int, config: Reading) -> Sequences:
    """All walks, or the first `config.train` of the training ones. Nothing is drawn: `seed` is not
    used.

    DataError for files that are damaged or disagree with meta.json.
    """
    meta = read_meta(raw, "walk", KEYS)
    law = {key: meta[key] for key in ("length", *KEYS)}
    within = [
        type(start) is int and meta["length"] - 1 <= start <= law["vocabulary"] - meta["length"]
        for start in law["starts"]
    ]
    if not (within and all(within) and 0 <= law["stay"] < 1):
        raise DataError(
            "meta.json tells of no lazy walk",
            where=str(raw / "meta.json"),
            found=repr(law)[:160],
            remedy="acquire the data set again",
            expected="starts from which no walk of this length leaves the vocabulary; a chance to "
            "stay from 0 to below 1",
        )
    return Sequences(
        kind="walk",
        **tables(raw, meta, law["vocabulary"], config.train),
        files=("train.npy", "val.npy", "test.npy"),
        vocabulary=law["vocabulary"],
        law=law,
        names={"tokens": [str(law["lowest"] + k) for k in range(law["vocabulary"])]},
    )
