"""Samples judged by the rules of their kind (thesis 4.3.1, figure 4.6; reference code:
product_sequence and its fellows).

One function a kind: samples (N, T) and the law of sequences.json to named metrics {value, unit, n,
low, high}. Shares have 90 % Wilson intervals, means over samples normal ones; both are null where
there are none. `nats` is the exact negative logarithm of a valid sample's chance, per token: near
the law's entropy when samples are drawn by the law, below it when a sampler repeats the likely
ones.
Product: runs of ones and zeros by Wald and Wolfowitz; a sample is valid when p > 0.001, its z
divided by the root of the variance (the public code divides by the variance). The test says nothing
of the share of ones: that is `ones`.
Shapes: N samples, T tokens, P tokens of a prompt.
"""

import math
from typing import Any

import numpy as np
from scipy import stats

from stages.errors import DataError, InputError
from stages.sequences.evaluation import chains, maze

Z = float(stats.norm.ppf(0.95))  # 90 % of the normal law lie within
LEAST_P = 0.001  # of the run test, as in the reference code
Metrics = dict[str, dict[str, Any]]


def judge(kind: str, samples: np.ndarray, prompts: np.ndarray, law: dict[str, Any]) -> Metrics:
    """The metrics of samples (N, T) that were to continue prompts (N, P), P from 0 on;
    `prompt_kept`: those that begin with their prompt.

    InputError for a kind that is judged elsewhere or not at all; DataError for samples that are no
    table, or fewer or more than prompts.
    """
    if kind not in JUDGES:
        raise InputError(
            f"samples of kind {kind!r} have no judge here",
            expected=", ".join(JUDGES),
            remedy="climbs and text have their own modules",
        )
    samples, prompts = np.asarray(samples), np.asarray(prompts)
    if samples.ndim != 2 or not samples.size or samples.dtype.kind not in "iu":
        raise DataError(
            "samples are no table of whole numbers",
            expected="(samples, tokens), at least one",
            found=f"{samples.shape} of {samples.dtype}",
        )
    if prompts.ndim != 2 or len(prompts) != len(samples) or prompts.shape[1] > samples.shape[1]:
        raise DataError(
            "prompts and samples disagree",
            expected=f"{len(samples)} prompts of at most {samples.shape[1]} tokens",
            found=str(prompts.shape),
        )
    found = JUDGES[kind](samples, prompts, law)
    if prompts.shape[1]:
        found["prompt_kept"] = share((samples[:, : prompts.shape[1]] == prompts).all(1))
    return found


def wilson(successes: int, n: int) -> tuple[float, float]:
    """The 90 % Wilson interval of a share."""
    mean, wide = successes / n, Z**2 / n
    centre = (mean + wide / 2) / (1 + wide)
    half = Z / (1 + wide) * math.sqrt(mean * (1 - mean) / n + wide / (4 * n))
    return max(0.0, min(centre - half, mean)), min(1.0, max(centre + half, mean))


def share(hits: np.ndarray) -> dict[str, Any]:
    """A share of hits (N, bool) with its interval; nothing known (null) of none."""
    n = int(hits.size)
    low, high = wilson(int(hits.sum()), n) if n else (None, None)
    return {
        "value": float(hits.mean()) if n else None,
        "unit": "share",
        "n": n,
        "low": low,
        "high": high,
    }


def mean(values: np.ndarray, unit: str) -> dict[str, Any]:
    """A mean over samples with its interval, for two or more."""
    n = len(values)
    value = float(values.mean()) if n else None
    half = Z * float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else None
    low, high = (None, None) if half is None else (value - half, value + half)
    return {"value": value, "unit": unit, "n": n, "low": low, "high": high}


def runs_p(sample: np.ndarray) -> float | None:
    """The two-sided p of the Wald-Wolfowitz test that zeros and ones (T) come in no order; None
    where it cannot say."""
    ones, length = int(sample.sum()), len(sample)
    zeros = length - ones
    if min(ones, zeros) == 0 or length < 3 or ones * zeros == 1:
        return None
    runs = 1 + int((sample[1:] != sample[:-1]).sum())
    expected = 1 + 2 * ones * zeros / length
    variance = (expected - 1) * (expected - 2) / (length - 1)
    return (
        float(2 * stats.norm.sf(abs(runs - expected) / math.sqrt(variance)))
        if variance > 0
        else None
    )


def product(samples: np.ndarray, prompts: np.ndarray, law: dict[str, Any]) -> Metrics:
    """valid (the run test), untested (no test says anything of them), ones, nats. Tokens that
    are neither 0 nor 1 make a sample invalid."""
    binary: Any = np.isin(samples, (0, 1)).all(1)
    found = [runs_p(sample) if fine else 0.0 for sample, fine in zip(samples, binary, strict=True)]
    tested = np.array([p is not None for p in found])
    return {
        "valid": share(np.array([p > LEAST_P for p in found if p is not None], bool)),
        "untested": share(~tested),
        "ones": share(samples[binary] == 1),
        "nats": nats("product", samples[binary], law),
    }


def step(samples: np.ndarray, prompts: np.ndarray, law: dict[str, Any]) -> Metrics:
    """valid (one run of `width` ones, where one can be), ones, begins: p of a chi-square test
    that begins are uniform, from 5 a place on."""
    begins = samples.argmax(1)
    since = np.arange(samples.shape[1]) - begins[:, None]
    valid = (samples == ((since >= 0) & (since < law["width"]))).all(1) & (begins < law["places"])
    found = {"valid": share(valid), "ones": share(samples == 1)}
    if valid.sum() >= 5 * law["places"] and not prompts.shape[1]:
        counted = np.bincount(begins[valid], minlength=law["places"])
        found["begins"] = {
            "value": float(stats.chisquare(counted).pvalue),
            "unit": "p",
            "n": int(valid.sum()),
            "low": None,
            "high": None,
        }
    return found


def permutation(samples: np.ndarray, prompts: np.ndarray, law: dict[str, Any]) -> Metrics:
    """valid (each token once), different: the share of the vocabulary that a sample holds, in
    the mean."""
    length = samples.shape[1]
    held = (np.sort(samples, axis=1)[:, :, None] == np.arange(length)).any(1)
    return {"valid": share(held.all(1)), "different": mean(held.mean(1), "share")}


def walk(samples: np.ndarray, prompts: np.ndarray, law: dict[str, Any]) -> Metrics:
    """valid (a start of the law, steps of -1, 0, 1), starts and steps that are legal, stays
    among those, nats of valid samples."""
    moves = np.abs(np.diff(samples, axis=1))
    starts = np.isin(samples[:, 0], law["starts"])
    valid = starts & (moves <= 1).all(1)
    return {
        "valid": share(valid),
        "starts": share(starts),
        "steps": share(moves <= 1),
        "stays": share(moves[moves <= 1] == 0),
        "nats": nats("walk", samples[valid], law),
    }


def mazes(samples: np.ndarray, prompts: np.ndarray, law: dict[str, Any]) -> Metrics:
    """correct, optimal, and the parts of correct: copied, connected, unbranched.

    The maze is the prompt's, or, where prompts are shorter than one, the sample's own first half
    (which must then be sound).
    """
    shape = (law["rows"], law["columns"])
    size = shape[0] * shape[1]
    if samples.shape[1] != 2 * size:
        raise DataError(
            "samples are no mazes of this law",
            expected=f"{2 * size} tokens",
            found=f"{samples.shape[1]} tokens",
        )
    given = (prompts if prompts.shape[1] >= size else samples)[:, :size].reshape(-1, *shape)
    nothing = maze.Verdict(False, False, False, False)
    verdicts = [
        maze.judge(made.reshape(shape), one)
        if maze.sound(one) and (first == one.ravel()).all()
        else nothing
        for first, made, one in zip(samples[:, :size], samples[:, size:], given, strict=True)
    ]
    found = {
        name: np.array([getattr(verdict, name) for verdict in verdicts])
        for name in ("correct", "optimal", "copied", "connected", "unbranched")
    }
    return {name: share(hits) for name, hits in found.items()}


def grammar(samples: np.ndarray, prompts: np.ndarray, law: dict[str, Any]) -> Metrics:
    """valid (all letters are the grammar's), legal: the mean part of a sample before its first
    wrong letter; nats of valid samples."""
    chain = chains.grammar(law)
    chances = chain.log_chance(samples)
    valid = np.isfinite(chances)
    return {
        "valid": share(valid),
        "legal": mean(chain.legal(samples) / samples.shape[1], "share"),
        "nats": mean(-chances[valid] / samples.shape[1], "nats per token"),
    }


def nats(kind: str, samples: np.ndarray, law: dict[str, Any]) -> dict[str, Any]:
    """The mean of samples' exact negative logarithms of their chances, per token."""
    chances = chains.CHAINS[kind](law).log_chance(samples) if len(samples) else np.zeros(0)
    return mean(-chances / samples.shape[1], "nats per token")


JUDGES = {
    "product": product,
    "step": step,
    "permutation": permutation,
    "walk": walk,
    "maze": mazes,
    "grammar": grammar,
}
