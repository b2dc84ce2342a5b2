"""The generated language (stages/sequences/made/grammar.py): a token a letter.

Raw: train.txt, val.txt, test.txt (UTF-8, a line of T letters a sequence) and meta.json with the
grammar. A file is a split. The vocabulary is the letters of the grammar's words, space and full
stop, in the order of their code points; it does not depend on what was drawn.
Shapes: N sequences of T letters.
"""

from pathlib import Path

import numpy as np

from stages.errors import DataError
from stages.params.sequences import Reading
from stages.sequences.reading import SPLITS, Sequences, described, kept, origins

KEYS = {
    "nouns": list,
    "verbs": list,
    "seeing": list,
    "nested": float,
    "plural": float,
    "deepest": int,
}
FIXED = "the that s. "


def read(raw: Path, seed: int, config: Reading) -> Sequences:
    """All lines, or the first `config.train` of the training ones. Nothing is drawn: `seed` is not
    used.

    DataError for a file that is missing, has other lines than meta.json says, or letters that no
    word has (file and line are named).
    """
    meta = described(raw, "grammar", KEYS)
    words = [word for key in ("nouns", "verbs", "seeing") for word in meta[key]]
    if not all(meta[key] for key in ("nouns", "verbs", "seeing")) or not all(
        isinstance(word, str) and word.isalpha() for word in words
    ):
        raise DataError(
            "meta.json tells no words",
            where=str(raw / "meta.json"),
            found=repr(words)[:160],
            remedy="acquire the data set again",
        )
    letters = "".join(sorted(set(FIXED.join(["", *words]))))
    code = {letter: number for number, letter in enumerate(letters)}
    rows: list[list[int]] = []
    numbers = kept(meta, config.train)
    for name in SPLITS:
        found = lines(raw / f"{name}.txt", meta["split"][name], meta["length"], letters)
        rows += [[code[letter] for letter in line] for line in found[: numbers[name]]]
    return Sequences(
        kind="grammar",
        tokens=np.array(rows, np.int32),
        **origins([numbers[name] for name in SPLITS]),
        files=tuple(f"{name}.txt" for name in SPLITS),
        vocabulary=len(letters),
        names={"tokens": list(letters)},
        law={key: meta[key] for key in KEYS} | {"letters": letters},
    )


def lines(path: Path, number: int, length: int, letters: str) -> list[str]:
    """The lines of a file, each of `length` letters. DataError names the line that is not."""
    try:
        found = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            "a file of text cannot be read",
            where=str(path),
            found=str(error),
            remedy="acquire the data set again",
        ) from None
    known = set(letters)
    wrong = [k for k, line in enumerate(found, 1) if len(line) != length or not set(line) <= known]
    if len(found) != number or wrong:
        told = f"{len(found)} lines" + (
            f"; line {wrong[0]} is {found[wrong[0] - 1]!r:.80}" if wrong else ""
        )
        raise DataError(
            "a file does not hold the lines that meta.json tells of",
            where=str(path),
            found=told,
            remedy="acquire the data set again",
            expected=f"{number} lines of {length} letters of {letters!r}",
        )
    return found
