"""Mazes with their paths (thesis 4.3.1): the maze is the prompt, the maze with its path is to be
produced.

Raw: train.npy, val.npy, test.npy (int16, N x 2 R K) and meta.json. A file is a split, and a maze
(walls, start, goal) that stands in two splits is refused: its answer would be known beforehand.
Codes: 0 empty, 1 wall, 2 start, 3 goal, 4 path.
Shapes: N mazes, R rows, K columns.
"""

from pathlib import Path

from stages.errors import DataError
from stages.params.sequences import Reading
from stages.sequences.reading import Sequences, described, repeated, tables

CODES = ("empty", "wall", "start", "goal", "path")


def read(raw: Path, seed: int, config: Reading) -> Sequences:
    """All mazes, or the first `config.train` of the training ones. Nothing is drawn: `seed` is not
    used.

    DataError for files that are damaged or disagree with meta.json, and for a maze of the training
    file in another one.
    """
    meta = described(raw, "maze", {"rows": int, "columns": int, "walls": int, "far": int})
    cells = meta["rows"] * meta["columns"]
    if min(meta["rows"], meta["columns"]) < 3 or meta["length"] != 2 * cells:
        raise DataError(
            "meta.json tells of no mazes",
            where=str(raw / "meta.json"),
            expected="twice rows x columns tokens",
            remedy="acquire the data set again",
            found=f"{meta['length']} tokens, {meta['rows']} x {meta['columns']}",
        )
    found = tables(raw, meta, len(CODES), config.train)
    twice = repeated(found["tokens"][:, :cells], found["split"])
    if any(twice.values()):
        raise DataError(
            "mazes stand in the training file and in another",
            where=str(raw),
            expected="none",
            found=repr(twice),
            remedy="acquire the data set again",
        )
    return Sequences(
        kind="maze",
        **found,
        files=("train.npy", "val.npy", "test.npy"),
        vocabulary=len(CODES),
        prompt=cells,
        law={key: meta[key] for key in ("rows", "columns", "walls", "far")},
        names={"tokens": list(CODES)},
    )
