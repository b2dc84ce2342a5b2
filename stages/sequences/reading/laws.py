"""Sequences of the product, step and permutation laws (thesis 4.3.1, D.2): tokens as they were
drawn, and the law itself.

Raw: train.npy, val.npy, test.npy (int16, N x T) and meta.json. A file is a split, so nothing is
split here.
Laws with few sequences repeat them in all splits; how many of val and test stand in train too is
counted, not refused.
Shapes: N sequences of T tokens.
"""

from pathlib import Path

from stages.errors import DataError
from stages.files import read_json
from stages.params.sequences import Reading
from stages.sequences.reading import Sequences, described, tables

KEYS = {"product": {"share": float}, "step": {"width": int, "places": int}, "permutation": {}}


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
    meta = described(raw, kind, KEYS[kind])
    vocabulary = meta["length"] if kind == "permutation" else 2
    return Sequences(
        kind=kind,
        **tables(raw, meta, vocabulary, config.train),
        files=("train.npy", "val.npy", "test.npy"),
        vocabulary=vocabulary,
        law={key: meta[key] for key in ("length", *KEYS[kind])},
        names={"tokens": [str(k) for k in range(vocabulary)]},
    )
