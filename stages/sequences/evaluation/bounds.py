"""How many passes a burst sampler needs with a perfect model: the lower bounds of figure 4.6,
recomputed (thesis D.2).

Product: 1. Step: Algorithm 3 run with the exact conditionals (D.2.3 says "at most 3", which no run
need obey). Permutation: Equations D.6-D.9, exactly: a pass draws a class for each of the m places
left, and keeps each class that was drawn once (as if always the best order had been tried); so the
passes left after one that kept k are those of m - k, and mean and deviation follow by recursion.
`burst` also runs Algorithm 3 for permutations, with the orders it really tries.
Shapes: O orders tried (N_o), T tokens, L sequences of a listed law. Counts of passes.
"""

from typing import Any

import numpy as np

from stages.errors import InputError

KINDS = ("product", "step", "permutation")


def bound(
    kind: str, law: dict[str, Any], orders: int, runs: int, rng: np.random.Generator
) -> dict[str, float]:
    """{mean, sd} of the passes for one sequence; for step over `runs` runs (then also `runs`).
    InputError for a kind without a bound."""
    if kind == "product":
        return {"mean": 1.0, "sd": 0.0}
    if kind == "step":
        passes, wrong = burst("step", law, orders, runs, rng)
        return {
            "mean": float(passes.mean()),
            "sd": float(passes.std(ddof=1)),
            "runs": float(runs),
            "wrong": float(wrong),
        }
    if kind == "permutation":
        return dict(zip(("mean", "sd"), permutation(law["length"]), strict=True))
    raise InputError(f"no lower bound of passes is known of {kind!r}", expected=", ".join(KINDS))


def classes(length: int) -> np.ndarray:
    """The chance of k different classes among m draws of m classes, for m, k = 0..length:
    (length + 1, length + 1) (D.9, by recursion)."""
    table = np.zeros((length + 1, length + 1))
    table[0, 0] = 1
    for m in range(1, length + 1):
        held = np.zeros(m + 1)
        held[0] = 1
        for _ in range(m):
            held[1:] = held[1:] * np.arange(1, m + 1) / m + held[:-1] * (m - np.arange(m)) / m
            held[0] = 0
        table[m, : m + 1] = held
    return table


def permutation(length: int) -> tuple[float, float]:
    """Mean and standard deviation of the passes for a permutation of `length` (5.18 and 0.60 at
    100)."""
    table = classes(length)
    first, second = (
        np.zeros(length + 1),
        np.zeros(length + 1),
    )  # moments of the passes with m places left
    for m in range(1, length + 1):
        left = m - np.arange(1, m + 1)
        weight = table[m, 1 : m + 1]
        first[m] = 1 + weight @ first[left]
        second[m] = weight @ (1 + 2 * first[left] + second[left])
    return float(first[length]), float(np.sqrt(max(second[length] - first[length] ** 2, 0.0)))


class Listed:
    """A perfect model of a law whose sequences are listed (L, T), each as likely."""

    def __init__(self, table: np.ndarray):
        self.table, self.vocabulary = table, int(table.max()) + 1
        self.onehot = table[..., None] == np.arange(self.vocabulary)

    def marginals(self, tokens: np.ndarray, known: np.ndarray) -> np.ndarray:
        """The density of each token given the known ones: T V."""
        agree = (self.table[:, known] == tokens[known]).all(1)
        return self.onehot[agree].mean(0)

    def along(self, tokens: np.ndarray, known: np.ndarray, order: np.ndarray) -> np.ndarray:
        """The chance of each token of an order of places, given the known ones and those before
        it; 0 after an impossible one."""
        agree = (self.table[:, known] == tokens[known]).all(1)[:, None]
        fits = np.logical_and.accumulate(self.table[:, order] == tokens[order], axis=1)
        alive = np.concatenate([agree, agree & fits], axis=1).sum(0)
        return alive[1:] / np.maximum(alive[:-1], 1)

    def wrong(self, tokens: np.ndarray) -> bool:
        """Whether the law cannot have drawn a sequence."""
        return not (self.table == tokens).all(1).any()


class Shuffled:
    """A perfect model of uniform permutations."""

    def __init__(self, length: int):
        self.length = length

    def marginals(self, tokens: np.ndarray, known: np.ndarray) -> np.ndarray:
        """The density of each token given the known ones: T V, uniform over what is left."""
        left = np.ones(self.length)
        left[tokens[known]] = 0
        return np.where(
            known[:, None], tokens[:, None] == np.arange(self.length), left / max(left.sum(), 1)
        )

    def along(self, tokens: np.ndarray, known: np.ndarray, order: np.ndarray) -> np.ndarray:
        """The chance of each token of an order of places, given the known ones and those before
        it; 0 from the first repeat on."""
        held, left = set(tokens[known].tolist()), len(order)
        found = np.zeros(len(order))
        for k, token in enumerate(tokens[order].tolist()):
            if token in held:
                return found
            held.add(token)
            found[k] = 1 / (left - k)
        return found

    def wrong(self, tokens: np.ndarray) -> bool:
        """Whether a sequence is no permutation."""
        return len(set(tokens.tolist())) < self.length


def burst(
    kind: str, law: dict[str, Any], orders: int, runs: int, rng: np.random.Generator
) -> tuple[np.ndarray, int]:
    """Algorithm 3 with a perfect model: the passes of each of `runs` sequences, and how many of
    them the law cannot have drawn.

    The same uniform numbers serve all orders of a pass, one a place, as printed. InputError for
    another kind than step and permutation.
    """
    length = law["length"]
    if kind == "step":
        since = np.arange(length) - np.arange(law["places"])[:, None]
        model: Listed | Shuffled = Listed(((since >= 0) & (since < law["width"])).astype(np.int64))
    elif kind == "permutation":
        model = Shuffled(length)
    else:
        raise InputError(f"no perfect model is run for {kind!r}", expected="step, permutation")
    passes, wrong = np.zeros(runs, np.int64), 0
    for run in range(runs):
        tokens, known = np.zeros(length, np.int64), np.zeros(length, bool)
        while not known.all():
            density = model.marginals(tokens, known)
            passes[run] += 1
            draft = np.where(
                known,
                tokens,
                (density.cumsum(1) < rng.random((length, 1)) * density.sum(1, keepdims=True)).sum(
                    1
                ),
            )
            tokens, known = advanced(model, draft, known, density, orders, rng)
        wrong += model.wrong(tokens)
    return passes, wrong


def advanced(
    model: Listed | Shuffled,
    draft: np.ndarray,
    known: np.ndarray,
    density: np.ndarray,
    orders: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """The draft (T), and what is known of it after the order that accepts most of it before the
    first rejection."""
    chance, left, best = rng.random(len(draft)), np.flatnonzero(~known), np.zeros(0, np.int64)
    for _ in range(orders):
        order = rng.permutation(left)
        accepted = chance[order] * density[order, draft[order]] < model.along(draft, known, order)
        number = len(order) if accepted.all() else int(accepted.argmin())
        best = order[:number] if number > len(best) else best
    known = known.copy()
    known[best] = True
    return draft, known
