"""Whether generated sequences can be told from held-out ones, in numbers, and a map to look at
(thesis 4.3.4, figure 4.4).

The thesis lays embeddings out by t-SNE and concludes from looking. Here each sampler's sequences
are tested against as many validation ones, in the space of embedding.py: `mmd`, the unbiased
squared maximum mean discrepancy (Gretton et al. 2012) with a Gaussian kernel as wide as the median
distance of validation sequences; `neighbour`, how often a sequence's nearest other is of its own
kind (leave one out: half where nothing can be told, less where validation sequences are copied).
Their p are of a permutation test, one-sided: small p tells them apart, a large one proves nothing,
least of few samples; neighbouring windows of one text are more alike than the test supposes. So the
floor stands beside, test against validation sequences, and as ceilings the companions' samples.
Shapes: n sequences a side, T tokens, D dimensions. Distances are of the embedding, without unit.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist, pdist

from stages.sequences.evaluation import embedding, spread, tsne

KINDS = ("text", "grammar")
PERMUTATIONS = 999
FEWEST = 5  # sequences a side
POINTS = 700  # of a map, at most
HELD_OUT = "val"
UNITS = {"mmd": "squared distance", "mmd_p": "p", "neighbour": "share", "neighbour_p": "p"}
Metrics = dict[str, dict[str, Any]]


def labelled(count: int, rng: np.random.Generator) -> np.ndarray:
    """Which half each of 2 count sequences belongs to (1 + PERMUTATIONS, 2 count), 0 or 1: as it
    is first, then drawn."""
    true = np.repeat([0.0, 1.0], count)
    return np.stack([true, *(rng.permutation(true) for _ in range(PERMUTATIONS))])


def discrepancies(squared: np.ndarray, labels: np.ndarray, width: float) -> np.ndarray:
    """Unbiased squared MMD (L,) of two halves of squared distances (2n, 2n), for each row of
    labels (L, 2n)."""
    count = len(squared) // 2
    near = np.exp(-squared / (2 * width**2))
    np.fill_diagonal(near, 0)
    ones = labels @ near
    second = (ones * labels).sum(1)
    across = (ones * (1 - labels)).sum(1)
    first = near.sum() - second - 2 * across
    return (first + second) / (count * (count - 1)) - 2 * across / count**2


def neighbours(squared: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The share (L,) of sequences whose nearest other has their label; of several at the same
    least distance, the share of these."""
    apart = squared.copy()
    np.fill_diagonal(apart, np.inf)
    nearest = (apart == apart.min(1, keepdims=True)).astype(np.float64)
    nearest /= nearest.sum(1, keepdims=True)
    ours, theirs = labels, 1 - labels
    return (((ours @ nearest.T) * ours).sum(1) + ((theirs @ nearest.T) * theirs).sum(1)) / len(
        squared
    )


def told_apart(
    first: np.ndarray, second: np.ndarray, width: float, rng: np.random.Generator
) -> Metrics:
    """Metrics of two sets of as many embeddings (n, D) each; nothing known (null) of fewer than
    FEWEST, or without a width."""
    count = len(first)
    if count < FEWEST or not width > 0:
        return {name: {"value": None, "unit": unit, "n": count} for name, unit in UNITS.items()}
    both = np.concatenate([first, second])
    squared, labels = cdist(both, both, "sqeuclidean"), labelled(count, rng)
    found = {"mmd": discrepancies(squared, labels, width), "neighbour": neighbours(squared, labels)}
    values = {name: float(one[0]) for name, one in found.items()}
    values |= {
        f"{name}_p": float((one >= one[0] - 1e-12).mean()) for name, one in found.items()
    }  # rounding parts no ties
    return {name: {"value": values[name], "unit": unit, "n": count} for name, unit in UNITS.items()}


@dataclass(frozen=True)
class Reader:
    """An embedding learned of the training sequences, and the held-out sequences that samples
    are compared with."""

    embed: embedding.Embedding
    prompt: int  # tokens that are given: not compared
    held: np.ndarray  # n D, of validation
    unseen: np.ndarray  # n D, of test
    width: float  # median distance of validation sequences

    @classmethod
    def of(
        cls, splits: Mapping[str, np.ndarray], vocabulary: int, prompt: int, samples: int
    ) -> "Reader":
        """Of the tokens (N, T) of train, val and test, at most `samples` of the latter two.
        DataError: see embedding.fit."""
        made = {name: tokens[:, prompt:] for name, tokens in splits.items()}
        embed = embedding.fit(made["train"], vocabulary)
        count = min(samples, len(made["val"]), len(made["test"]))
        held, unseen = (embed(spread(made[name], count)) for name in ("val", "test"))
        return cls(embed, prompt, held, unseen, float(np.median(pdist(held))) if count > 1 else 0.0)

    def points(self, tokens: np.ndarray) -> np.ndarray:
        """Embeddings (N, D) of whole sequences (N, T), without their prompts."""
        return self.embed(tokens[:, self.prompt :])

    def compare(self, tokens: np.ndarray, rng: np.random.Generator) -> Metrics:
        """The metrics of samples (N, T) against as many validation sequences."""
        made = spread(self.points(tokens), len(self.held))
        return told_apart(spread(self.held, len(made)), made, self.width, rng)

    def floor(self, rng: np.random.Generator) -> Metrics:
        """The same of test sequences: what a perfect sampler would show."""
        return told_apart(self.held, self.unseen, self.width, rng)


def number_of(sampler: str) -> int:
    """The number that ends a sampler's name: burst_4 has 4 orders."""
    return int(sampler.rpartition("_")[2])


def chosen(names: Mapping[str, Any]) -> list[str]:
    """The samples on the map, of names CELL/SAMPLER: of each arm's first seed the own order or left
    to right, the middle burst and the most steps of diffusion; of companions all but uniform
    tokens, which would lie far outside."""
    arms: dict[str, dict[str, list[str]]] = {}
    for name in sorted(names):
        cell, sampler = name.split("/")
        arms.setdefault(re.sub(r"-s\d+$", "", cell), {}).setdefault(cell, []).append(sampler)
    found = []
    for arm, cells in arms.items():
        cell, samplers = next(iter(cells.items()))
        bursts = sorted((one for one in samplers if re.fullmatch(r"burst_\d+", one)), key=number_of)
        steps = sorted(
            (one for one in samplers if re.fullmatch(r"diffusion_\d+", one)), key=number_of
        )
        plain = [one for one in ("own", "left_to_right") if one in samplers][:1]
        alone = [one for one in samplers if one == arm != "uniform"]
        found += [
            f"{cell}/{one}"
            for one in (*plain, *bursts[len(bursts) // 2 :][:1], *steps[-1:], *alone)
        ]
    return found


def generations(
    reader: Reader, made: Mapping[str, np.ndarray], rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is told of all samples together, made (N, T) by CELL/SAMPLER.

    The entry: `floor` {metrics}, `embedding` and `map` as they were made. The tensors:
    map/CELL/SAMPLER and map/val (n, 2) float32, laid out together; none where there are too few
    points, or they are all the same.
    """
    floor = {name: one for name, one in reader.floor(rng).items() if one["value"] is not None}
    entry = {
        "floor": floor,
        "embedding": {
            "pieces": len(reader.embed.pieces),
            "dimensions": reader.embed.directions.shape[1],
            "share": reader.embed.share,
        },
    }
    names = chosen(made)
    count = min(len(reader.held), POINTS // (len(names) + 1))
    parts = {HELD_OUT: spread(reader.held, count)} | {
        name: spread(reader.points(made[name]), count) for name in names
    }
    points = np.concatenate(list(parts.values()))
    if not names or count < FEWEST or not np.ptp(points, axis=0).max() > 1e-9:
        return entry, {}
    plane, left = tsne.project(points)
    ends = np.cumsum([len(one) for one in parts.values()])
    tensors = {
        f"map/{name}": one.astype(np.float32)
        for name, one in zip(parts, np.split(plane, ends[:-1]), strict=True)
    }
    return entry | {
        "map": {
            "points": len(points),
            "perplexity": min(tsne.PERPLEXITY, (len(points) - 1) / 3),
            "kl": left,
        }
    }, tensors
