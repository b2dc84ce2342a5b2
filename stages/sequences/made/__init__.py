"""The simulators of the thesis' chapter 4 (section 4.3.1, appendix D), one file a kind: raw bytes,
in the format of real files if any.

`<kind>.make(config, folder)` writes a file a split (train, val, test) and meta.json, which says by
what law they were drawn. A split has its own streams of random numbers: more training sequences
leave those of val and test as they are (but for kinds that refuse repeats).
Shapes: N sequences of T tokens.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stages.files import atomic_file, write_json
from stages.params.sequences import Made
from stages.seeds import stream

SPLITS = ("train", "val", "test")


def make_each(
    config: Made,
    folder: Path,
    length: int,
    draw: Callable[[np.random.Generator, int], np.ndarray],
    law: dict[str, Any],
) -> None:
    """Write what `draw(generator, number)` draws (N, T) for each split, with `law` in meta.json
    beside sizes and seed."""
    for name in SPLITS:
        number = getattr(config, name)
        write_tokens(
            folder, name, draw(stream(config.seed, "sequences", config.kind, name), number)
        )
    describe(config, folder, length, law)


def write_tokens(folder: Path, split: str, tokens: np.ndarray) -> None:
    """One split's sequences (N, T) as SPLIT.npy, int16."""
    with atomic_file(folder / f"{split}.npy") as file:
        np.save(file, tokens.astype("<i2"), allow_pickle=False)


def describe(config: Made, folder: Path, length: int, law: dict[str, Any]) -> None:
    """meta.json: kind, sizes, seed and law of a simulated set."""
    write_json(
        folder / "meta.json",
        {
            "kind": config.kind,
            "length": length,
            "seed": config.seed,
            "split": {name: getattr(config, name) for name in SPLITS},
        }
        | law,
    )
