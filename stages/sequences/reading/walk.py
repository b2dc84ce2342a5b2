"""Lazy random walks (thesis D.1): tokens as they were drawn, and the law by which their posteriors
are known.

Raw: train.npy, val.npy, test.npy (int16, N x T) and meta.json. Token = altitude - `lowest`. A file
is a split.
Shapes: N sequences of T tokens. Altitudes without dimension.
"""

from pathlib import Path

from stages.errors import DataError
from stages.params.sequences import Reading
from stages.sequences.reading import Sequences, described, tables

KEYS = {"starts": list, "stay": float, "lowest": int, "vocabulary": int}


def read(raw: Path, seed: int, config: Reading) -> Sequences:
    """All walks, or the first `config.train` of the training ones. Nothing is drawn: `seed` is not
    used.

    DataError for files that are damaged or disagree with meta.json.
    """
    meta = described(raw, "walk", KEYS)
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
