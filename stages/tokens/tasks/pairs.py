"""Sentence pairs whose label needs both sentences and the order of their words: does the premise
entail the hypothesis, contradict it, or neither?

A sentence says how two classes lie to each other: "all foxes are owls", "no ...", "some ...", "some
foxes are not owls", with words in between that change nothing. The label is found by going through
all worlds, every class having members. The hypothesis has the premise's nouns in the same or the
other order, or another noun. Of each pair of quantifiers that can tell anything, half of the pairs
are neutral: which words stand there, without their order, says little. The best possible accuracy
is 1.
"""

import itertools
from functools import lru_cache

import numpy as np

QUANTIFIERS = {
    "all": ("all", "are", ""),
    "no": ("no", "are", ""),
    "some": ("some", "are", ""),
    "some_not": ("some", "are", "not"),
}
NOUNS = (
    "foxes", "owls", "bakers", "pilots", "poets", "twins", "swimmers", "giants",
    "dancers", "hermits", "sailors", "tailors", "ravens", "weavers", "miners", "nurses",
)  # fmt: skip
FILLERS = ("indeed", "today", "here", "clearly", "surely", "now")
CASES = ("same", "swapped", "other")


def _true(quantifier: str, one: int, other: int, world: tuple[int, ...]) -> bool:
    """Whether a quantifier holds between two classes, bits of the kinds of things in a world."""
    both = any(kind >> one & 1 and kind >> other & 1 for kind in world)
    apart = any(kind >> one & 1 and not kind >> other & 1 for kind in world)
    return {"all": not apart, "no": not both, "some": both, "some_not": apart}[quantifier]


@lru_cache(maxsize=64)
def label(premise: str, hypothesis: str, case: str) -> str:
    """The label, from all worlds of three classes that each have a member."""
    terms = {"same": (0, 1), "swapped": (1, 0), "other": (0, 2)}[case]
    worlds = (
        world
        for count in range(1, 9)
        for world in itertools.combinations(range(8), count)
        if all(any(kind >> one & 1 for kind in world) for one in range(3))
    )
    found = {_true(hypothesis, *terms, world) for world in worlds if _true(premise, 0, 1, world)}
    if len(found) == 2:
        return "neutral"
    return "entailment" if found == {True} else "contradiction"


def telling() -> list[tuple[str, str]]:
    """The pairs of quantifiers of which some case is not neutral."""
    return [
        pair
        for pair in itertools.product(QUANTIFIERS, QUANTIFIERS)
        if any(label(*pair, case) != "neutral" for case in CASES)
    ]


def draw(
    count: int, nouns: int, fillers: int, rng: np.random.Generator
) -> list[tuple[str, str, str]]:
    """(premise, hypothesis, label), of so many nouns, with up to `fillers` further words a
    sentence."""
    pairs, found = telling(), []
    for _ in range(count):
        premise, hypothesis = pairs[rng.integers(len(pairs))]
        neutral = rng.random() < 0.5
        fitting = [c for c in CASES if (label(premise, hypothesis, c) == "neutral") == neutral]
        case = fitting[rng.integers(len(fitting))]
        a, b, c = (NOUNS[place] for place in rng.choice(nouns, 3, replace=False))
        others = {"same": (a, b), "swapped": (b, a), "other": ((a, c), (c, b))[rng.integers(2)]}
        found.append(
            (
                _sentence(premise, a, b, fillers, rng),
                _sentence(hypothesis, *others[case], fillers, rng),
                label(premise, hypothesis, case),
            )
        )
    return found


def bare(sentence: str) -> str:
    """A sentence without its fillers."""
    return " ".join(word for word in sentence.split() if word not in FILLERS)


def _sentence(quantifier: str, one: str, other: str, fillers: int, rng: np.random.Generator) -> str:
    first, verb, negation = QUANTIFIERS[quantifier]
    words = [first, one, verb, negation, other]
    words = [word for word in words if word]
    for _ in range(rng.integers(fillers + 1)):
        words.insert(rng.integers(len(words) + 1), FILLERS[rng.integers(len(FILLERS))])
    return " ".join(words)
