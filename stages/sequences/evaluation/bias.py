"""How far Algorithm 3 as printed is from the law of a perfect model, by the number of orders tried
N_o (thesis 4.2.4, D.3; see the errata).

A rejected token is dropped instead of being drawn from the residual, and the order is chosen after
the draws: both bend the law of the samples. Here the real samplers ask laws that can be listed, so
nothing but the sampler errs: total variation and chi-square of many draws, beside the exact
sampler, sequential sampling, and the floor, what independent draws of the law itself show. Laws:
four correlated bits; a step of two ones among five bits; permutations of four, where renaming
tokens changes neither law nor algorithm, so that no bias is possible.
Shapes: R rows, S sequences of a law, T length, V vocabulary, N orders, K steps, P positions. Total
variation and chi-square have no unit.
"""

from itertools import permutations as arrangements
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor
from torch.nn import functional

from stages import seeds
from stages.errors import DataError
from stages.sequences import permutations
from stages.sequences.sampling.burst import burst
from stages.sequences.sampling.exact import exact
from stages.sequences.sampling.sequential import sequential

ORDERS = (1, 2, 5, 20, 50)  # N_o
DRAWS, BATCH = 100_000, 10_000
LOW = -1e4  # the logarithm of a chance of 0
LEAST = 5  # draws that a class of the chi-square test is to expect
FLOORS = 1000  # sets of independent draws for the floor's 95 % end


class Listed:
    """A perfect model of a law given by its sequences (S, T) and their weights (S,): what
    `sampling.opened` opens.

    A context, the known tokens, is a number in base V + 1 with a digit a position, 0 where nothing
    is known. `table` holds the logits of the token at every position after every context: row
    context * T + position.
    """

    def __init__(self, sequences: Tensor, weights: Tensor, vocabulary: int):
        self.sequences, self.chances = sequences, weights.double() / weights.double().sum()
        self.vocabulary, self.length = vocabulary, sequences.shape[1]
        mass = torch.zeros((vocabulary,) * self.length, dtype=torch.float64)
        mass.index_put_(tuple(sequences.T), self.chances, accumulate=True)
        for axis in range(self.length):
            mass = torch.cat((mass.sum(axis, keepdim=True), mass), axis)
        self.strides = (vocabulary + 1) ** torch.arange(self.length - 1, -1, -1)
        mass = mass.flatten().log().clamp(min=LOW)
        contexts = torch.arange((vocabulary + 1) ** self.length)
        unknown = (
            contexts[:, None] - contexts[:, None] // self.strides % (vocabulary + 1) * self.strides
        )  # a known position asked again
        after = unknown[..., None] + self.strides[:, None] * torch.arange(1, vocabulary + 1)
        self.table = (mass[after] - mass[unknown][..., None]).flatten(0, 1).float()

    def open(self, tokens: Tensor, order: Tensor, first: Tensor) -> "Known":
        """A reader whose rows know the first `first` (R,) steps of their orders (R, T)."""
        given = permutations.inverse(order) < first[:, None]
        return Known(self, ((tokens + 1) * given * self.strides).sum(1))


class Known:
    """A law that knows a context (R,) in each row: the samplers' Reader. What follows an
    impossible draft is never accepted: any answer does."""

    def __init__(self, law: Listed, context: Tensor):
        self.law, self.context, self.vocabulary, self.length = (
            law,
            context,
            law.vocabulary,
            law.length,
        )

    def _logits(self, context: Tensor, positions: Tensor) -> Tensor:
        """(...) contexts and positions -> (..., V). Padding repeats a position, so that its
        context may be none: any other will do."""
        row = (context * self.length + positions).clamp(max=len(self.law.table) - 1)
        return functional.embedding(row, self.law.table)

    def ask(
        self,
        bursts: Tensor | None = None,
        orders: Tensor | None = None,
        drafts: Tensor | None = None,
    ) -> tuple[Tensor | None, Tensor | None]:
        """Logits (R, P, V) at positions `bursts` (R, P); along orders (R, N, K) given the drafts
        before each step (R, N, K, V)."""
        marginal = (
            None
            if bursts is None
            else self._logits(self.context[:, None].expand_as(bursts), bursts)
        )
        if orders is None:
            return marginal, None
        self.orders, before = orders, self.context[:, None, None].expand_as(orders)
        if drafts is not None:
            added = (drafts + 1) * self.law.strides[orders]
            before = before + added.cumsum(2) - added
        return marginal, self._logits(before, orders)

    def keep(self, choice: Tensor, count: Tensor, tokens: Tensor) -> None:
        """Know also the first `count` (R,) steps of the chosen chain."""
        order = self.orders[torch.arange(len(choice)), choice][:, : tokens.shape[1]]
        new = torch.arange(order.shape[1]) < count[:, None]
        self.context = self.context + ((tokens + 1) * self.law.strides[order] * new).sum(1)

    def retain(self, rows: Tensor) -> None:
        """Row i is now what row rows[i] was."""
        self.context = self.context[rows]


def laws() -> dict[str, Listed]:
    """The laws on which the bias is measured."""
    uneven = (
        torch.randn(16, generator=seeds.torch_stream(0, "correlated"), dtype=torch.float64)
        .mul(1.5)
        .exp()
    )
    since = torch.arange(5) - torch.arange(4)[:, None]
    step, alike = ((since >= 0) & (since < 2)).long(), torch.tensor(list(arrangements(range(4))))
    return {
        "correlated": Listed(torch.cartesian_prod(*[torch.arange(2)] * 4), uneven, 2),
        "step": Listed(step, torch.ones(4), 2),
        "permutation": Listed(alike, torch.ones(24), 4),
    }


def floor(chances: np.ndarray, draws: int, rng: np.random.Generator) -> dict[str, float]:
    """The total variation that `draws` independent draws of the law show: its expectation, exact by
    De Moivre's mean absolute deviation of binomial counts, and the end below which 95 of 100
    such sets lie (by simulation)."""
    over = np.floor(draws * chances) + 1
    mean = (over * (1 - chances) * stats.binom.pmf(over, draws, chances)).sum() / draws
    shares = rng.multinomial(draws, chances, size=FLOORS) / draws
    return {
        "mean": float(mean),
        "high": float(np.quantile(np.abs(shares - chances).sum(1) / 2, 0.95)),
    }


def chi_square(counts: np.ndarray, chances: np.ndarray) -> dict[str, float | int]:
    """Pearson's test that counts (S,) are drawn by chances (S,): the rarest classes are put
    together until each expects LEAST draws."""
    rank = np.argsort(chances, kind="stable")
    counts, expected = counts[rank].astype(np.float64), chances[rank] * counts.sum()
    few = int(np.searchsorted(expected.cumsum(), LEAST)) + 1 if expected[0] < LEAST else 1
    counts, expected = (
        np.concatenate((values[:few].sum(keepdims=True), values[few:]))
        for values in (counts, expected)
    )
    value = float(((counts - expected) ** 2 / expected).sum())
    return {
        "chi_square": value,
        "degrees": len(counts) - 1,
        "p": float(stats.chi2.sf(value, len(counts) - 1)),
    }


def frequencies(tokens: Tensor, sequences: Tensor) -> Tensor:
    """The share (S + 1,) of each listed sequence (S, T) among the sampled ones (draws, T); last,
    the share of all that are not listed."""
    together = torch.cat((sequences, tokens))
    base = int(together.max()) + 1
    if base ** together.shape[1] < 2**62:  # one number a sequence is far faster to sort
        together = (together * base ** torch.arange(together.shape[1], device=tokens.device)).sum(
            1, keepdim=True
        )
    kinds, which = (
        together.unique(dim=0, return_inverse=True)
        if together.shape[1] > 1
        else together[:, 0].unique(return_inverse=True)
    )
    count = torch.bincount(which[len(sequences) :], minlength=len(kinds)).double() / max(
        len(tokens), 1
    )
    listed = count[which[: len(sequences)]]
    return torch.cat((listed, (count.sum() - listed.sum()).clamp(min=0)[None]))


def judged(law: Listed, tokens: Tensor) -> dict[str, float | int]:
    """Total variation and chi-square of samples (draws, T). DataError for a sequence that the
    law cannot draw."""
    share = frequencies(tokens, law.sequences).numpy()
    if np.rint(share[-1] * len(tokens)):
        raise DataError(
            "a sampler drew what the law cannot",
            expected="listed sequences",
            found=f"{share[-1]:.3g} of the draws",
        )
    chances = law.chances.numpy()
    counts = np.rint(share[:-1] * len(tokens))
    return {
        "total_variation": float(np.abs(share[:-1] - chances).sum() / 2),
        **chi_square(counts, chances),
    }


def drawn(
    law: Listed, sampler: str, orders: int, generator: torch.Generator, draws: int
) -> tuple[Tensor, float]:
    """Samples (draws, T) of burst, exact or sequential in random orders, and the mean passes of
    one (draft and check are two)."""
    found, passes = [], 0
    for start in range(0, draws, BATCH):
        blank = torch.zeros(min(BATCH, draws - start), law.length, dtype=torch.int64)
        if sampler == "burst":
            sample = burst(law, blank, generator, orders)
        else:
            along = exact if sampler == "exact" else sequential
            sample = along(law, permutations.random(*blank.shape, generator), blank, generator)
        found.append(sample.tokens)
        passes += int(sample.passes.sum())
    return torch.cat(found), passes / draws


def bias_by_law(
    seed: int, orders: tuple[int, ...] = ORDERS, draws: int = DRAWS
) -> dict[str, dict[str, Any]]:
    """law -> {sequences, draws, floor {mean, high}, burst {N_o: ...}, exact, sequential}, each with
    total_variation, chi_square, degrees, p and passes. On the CPU; the numbers depend on the
    seed alone."""
    result = {}
    for name, law in laws().items():

        def judge(
            sampler: str, count: int = 1, name: str = name, law: Listed = law
        ) -> dict[str, float | int]:
            tokens, passes = drawn(
                law,
                sampler,
                count,
                seeds.torch_stream(seed, "evaluation", "bias", name, sampler, count),
                draws,
            )
            return judged(law, tokens) | {"passes": passes}

        result[name] = {
            "sequences": len(law.sequences),
            "draws": draws,
            "floor": floor(
                law.chances.numpy(), draws, seeds.stream(seed, "evaluation", "bias", name, "floor")
            ),
            "burst": {str(count): judge("burst", count) for count in orders},
            "exact": judge("exact"),
            "sequential": judge("sequential"),
        }
    return result
