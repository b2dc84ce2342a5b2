"""A small language, letter by letter: nested clauses and verbs that agree with a noun far before
them (mini's text).

    sentence -> noun phrase(n) verb(n) ". "        noun phrase(n) -> "the" noun(n) [clause]        clause -> "that" noun phrase(m) seeing(m)
Numbers n, m are plural with probability `plural`; a noun has a clause with probability `nested`,
but no clause lies in more than `deepest` others; words are uniform in their class. A plural noun
ends in s, a singular verb too: the cat that the dogs see sleeps. A sequence begins with a sentence
and is cut at T letters. Words of a class end before others begin, so the letters so far tell the
rule at work: the exact chance of each next letter is known (stages/sequences/evaluation/chains.py).
Raw: a line a sequence, UTF-8, as a text would be.
Shapes: N sequences of T letters.
"""

from pathlib import Path

import numpy as np

from stages.files import atomic_file
from stages.params.sequences import Grammar
from stages.seeds import stream
from stages.sequences.made import SPLITS, describe

NOUNS = ("bird", "cat", "cow", "dog", "goat", "hen")
VERBS = ("jump", "run", "sing", "sleep", "swim")
SEEING = ("chase", "hear", "like", "see")


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
