"""The exact density of every token given any set of others, to compare a learned density with
(claim A-9; thesis figures 4.3 and D.1).

Product, step, walk and grammar by the forward and backward sums of chains.py; permutations: uniform
over what is left; mazes: maze.py. D.3 and D.4 are the walk's closed forms, corrected: u = (n - o +
x - X)/2 must be a whole number, and paths are weighted by their chances (the documents count them,
as if a step and a stay were equally likely).
Shapes: N sequences, T tokens, V of the vocabulary. Float64; chances without unit, entropies in
nats.
"""

from typing import Any

import numpy as np
from scipy.special import gammaln

from stages.errors import DataError, InputError
from stages.sequences.evaluation import chains, maze

KINDS = (*chains.CHAINS, "permutation", "maze")


def conditionals(
    kind: str, tokens: np.ndarray, known: np.ndarray, law: dict[str, Any]
) -> np.ndarray:
    """p(token at t = v | the known tokens): tokens (N, T), known (N, T) bool, to (N, T, V); a known
    token has the chance 1.

    What stands in `tokens` where nothing is known does not matter. Of a maze all cells (the prompt)
    must be known. DataError where the known tokens have no chance, or shapes disagree; InputError
    for a kind without exact density.
    """
    if kind not in KINDS:
        raise InputError(f"no exact density is known of {kind!r}", expected=", ".join(KINDS))
    if tokens.ndim != 2 or known.shape != tokens.shape:
        raise DataError(
            "tokens and what is known of them disagree",
            expected="two tables of one shape",
            found=f"{tokens.shape} and {known.shape}",
        )
    if kind in chains.CHAINS:
        return chains.CHAINS[kind](law).conditionals(tokens, known)
    return permutations(tokens, known) if kind == "permutation" else paths(tokens, known, law)


def permutations(tokens: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Uniform over the tokens that are not known to stand elsewhere."""
    length = tokens.shape[1]
    given = (tokens[..., None] == np.arange(length)) & known[..., None]
    chains.refuse_impossible((given.sum(1).max(1) <= 1) & (given.any(2) == known).all(1))
    left = ~given.any(1)
    return np.where(
        known[..., None], given, left[:, None] / np.maximum(left.sum(1), 1)[:, None, None]
    )


def paths(tokens: np.ndarray, known: np.ndarray, law: dict[str, Any]) -> np.ndarray:
    """Of mazes whose prompt is known: the density of each cell of the path's half."""
    shape = (law["rows"], law["columns"])
    size = shape[0] * shape[1]
    if tokens.shape[1] != 2 * size or not known[:, :size].all():
        raise InputError(
            "the density of a path is known for a whole maze only",
            expected=f"{2 * size} tokens, the first {size} known",
            found=f"{tokens.shape[1]} tokens, {int(known[:, :size].all(1).sum())} of {len(tokens)} "
            "mazes known",
        )
    found = np.zeros((*tokens.shape, 5))
    found[:, :size] = tokens[:, :size, None] == np.arange(5)
    for row, (one, given) in enumerate(zip(tokens, known, strict=True)):
        given_maze = one[:size].reshape(shape)
        density = (
            maze.density(given_maze, one[size:].reshape(shape), given[size:].reshape(shape))
            if maze.sound(given_maze)
            else None
        )
        chains.refuse_impossible(np.array([density is not None]), row)
        found[row, size:] = density.reshape(size, 5)
    return found


def log_chance(kind: str, tokens: np.ndarray, law: dict[str, Any]) -> np.ndarray:
    """Nats of whole sequences (N, T) under their law (N,); minus infinity for what it cannot
    draw. InputError for a kind without one."""
    if kind == "permutation":
        length = tokens.shape[1]
        valid = (np.sort(tokens, axis=1) == np.arange(length)).all(1)
        return np.where(valid, -gammaln(length + 1), -np.inf)
    if kind not in chains.CHAINS:
        raise InputError(
            f"no chance of a whole sequence is known of {kind!r}",
            expected=", ".join((*chains.CHAINS, "permutation")),
        )
    return chains.CHAINS[kind](law).log_chance(tokens)


def entropy(kind: str, law: dict[str, Any], length: int) -> float:
    """Nats per token of sequences of `length` tokens: what no model's cross-entropy can be below,
    in any order.

    InputError for a kind without one.
    """
    if kind == "permutation":
        return float(gammaln(length + 1)) / length
    if kind not in chains.CHAINS:
        raise InputError(
            f"no entropy is known of {kind!r}", expected=", ".join((*chains.CHAINS, "permutation"))
        )
    return chains.CHAINS[kind](law).entropy(length) / length


def moved(by: np.ndarray | int, steps: int, stay: float) -> np.ndarray:
    """D.3: the chance that a lazy walk has moved `by` after `steps` steps, by the multinomial
    sum over `o` steps of staying."""
    by = np.asarray(by)[..., None]
    still = np.arange(steps + 1)
    up, odd = np.divmod(steps - still + by, 2)
    down = steps - still - up
    fits = (odd == 0) & (up >= 0) & (down >= 0)
    up, down = np.where(fits, up, 0), np.where(fits, down, 0)
    with np.errstate(divide="ignore"):
        at_rest = (
            np.where(still > 0, still * np.log(stay), 0.0)
            if stay
            else np.where(still > 0, -np.inf, 0.0)
        )
    logs = (
        gammaln(steps + 1)
        - gammaln(up + 1)
        - gammaln(down + 1)
        - gammaln(still + 1)
        + at_rest
        + (up + down) * np.log((1 - stay) / 2)
    )
    return np.where(fits, np.exp(logs), 0.0).sum(-1)


def backwards(
    x: np.ndarray, later: int, first: int, second: int, starts: list[int], stay: float
) -> np.ndarray:
    """D.4: the density at time `first` over the places x, given the place `later` at time
    `second` > `first` (times from 0).

    DataError where `later` is out of reach.
    """
    reach = sum(float(moved(later - start, second, stay)) for start in starts)
    if not reach > 0:
        raise DataError(
            "a walk cannot be there",
            where=f"place {later} at time {second}",
            expected=f"within reach of {starts}",
        )
    x = np.asarray(x)
    return (
        sum(moved(x - start, first, stay) for start in starts)
        * moved(later - x, second - first, stay)
        / reach
    )
