"""A small language, letter by letter: nested clauses and verbs that agree with a noun far before
them (mini's text).

    sentence -> noun phrase(n) verb(n) ". "
    noun phrase(n) -> "the" noun(n) [clause]
    clause -> "that" noun phrase(m) seeing(m)
Numbers n, m are plural with probability `plural`; a noun has a clause with probability `nested`,
but no clause lies in more than `deepest` others; words are uniform in their class. A plural noun
ends in s, a singular verb too: the cat that the dogs see sleeps. A sequence begins with a sentence
and is cut at T letters. Words of a class end before others begin, so the letters so far tell the
rule at work: the exact chance of each next letter is known (stages/sequences/evaluation/chains.py).
A file is a split (train.txt, val.txt, test.txt: UTF-8, a line of T letters a sequence), with the
grammar in meta.json. A token is a letter: those of the grammar's words, space and full stop, in the
order of their code points, whatever was drawn.
Shapes: N sequences of T letters.
"""

from pathlib import Path

import numpy as np

from stages.errors import DataError
from stages.files import atomic_file
from stages.params.sequences import Grammar, Reading
from stages.seeds import stream
from stages.sequences.tokens import Sequences, describe, kept, origins, read_meta
from stages.splits import SPLITS

NOUNS = ("bird", "cat", "cow", "dog", "goat", "hen")
VERBS = ("jump", "run", "sing", "sleep", "swim")
SEEING = ("chase", "hear", "like", "see")
KEYS = {
    "nouns": list,
    "verbs": list,
    "seeing": list,
    "nested": float,
    "plural": float,
    "deepest": int,
}
FIXED = "the that s. "


def make(config: Grammar, folder: Path) -> None:
    """Write train.txt, val.txt, test.txt and meta.json into `folder`."""
    for name in SPLITS:
        rng = stream(config.seed, "sequences", "grammar", name)
        with atomic_file(folder / f"{name}.txt", "w") as file:
            file.writelines(text(rng, config) + "\n" for _ in range(getattr(config, name)))
    describe(
        config,
        folder,
        config.length,
        {
            "nouns": list(NOUNS),
            "verbs": list(VERBS),
            "seeing": list(SEEING),
            "nested": config.nested,
            "plural": config.plural,
            "deepest": config.deepest,
        },
    )


def text(rng: np.random.Generator, config: Grammar) -> str:
    """Sentences up to `length` letters; the last one is cut."""
    found = ""
    while len(found) < config.length:
        plural = bool(rng.random() < config.plural)
        found += f"{phrase(rng, config, plural, 0)} {verb(rng, VERBS, plural)}. "
    return found[: config.length]


def phrase(rng: np.random.Generator, config: Grammar, plural: bool, depth: int) -> str:
    """A noun phrase that lies in `depth` clauses."""
    said = "the " + NOUNS[rng.integers(len(NOUNS))] + "s" * plural
    if depth == config.deepest or rng.random() >= config.nested:
        return said
    other = bool(rng.random() < config.plural)
    return f"{said} that {phrase(rng, config, other, depth + 1)} {verb(rng, SEEING, other)}"


def verb(rng: np.random.Generator, words: tuple[str, ...], plural: bool) -> str:
    """A verb that agrees with its noun."""
    return words[rng.integers(len(words))] + "s" * (not plural)


def read(raw: Path, seed: int, config: Reading) -> Sequences:
    """All lines, or the first `config.train` of the training ones. Nothing is drawn: `seed` is not
    used.

    DataError for a file that is missing, has other lines than meta.json says, or letters that no
    word has (file and line are named).
    """
    meta = read_meta(raw, "grammar", KEYS)
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
