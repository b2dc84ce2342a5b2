"""An embedding of token sequences that needs no download: what pieces of one to three tokens a
sequence holds (thesis 4.3.4, figure 4.4).

The thesis asks a vendor's model (1536 numbers a text), which nobody can repeat once it is
withdrawn. Here a sequence is the counts of its pieces, among the most frequent of the training
sequences, weighted by 1 + log count and by rarity (tf-idf), of length 1, projected on the first
directions of the training sequences (truncated SVD: latent semantic analysis, Deerwester et al.
1990), less their mean, of length 1 again. Without the mean all texts of a language look alike, and
what is far from all of them is still everyone's neighbour. Limits: it sees spelling, word choice,
punctuation and repetition; it does not see meaning, agreement over more than three tokens, nor in
what order pieces come. Equal embeddings do not make equal texts.
Shapes: N sequences, T tokens, V vocabulary, M pieces, D dimensions.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from stages.errors import DataError

LONGEST = 3  # tokens of a piece
PIECES = 4000  # M at most
DIMENSIONS = 100  # D at most
FITTED = 4000  # training sequences, evenly spread, that the directions are found from


@dataclass(frozen=True)
class Embedding:
    """What was learned of the training sequences."""

    vocabulary: int
    pieces: np.ndarray  # M, codes in rising order
    rarity: np.ndarray  # M
    directions: np.ndarray  # M D, orthonormal
    middle: np.ndarray  # D, the training sequences' mean
    share: float  # of the training sequences' squared length that the directions hold

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        """Embeddings (N, D) float64 of tokens (N, T), each of length 1. DataError for tokens
        that there are not."""
        made = (
            np.asarray(
                weighed(counted(tokens, self.vocabulary, self.pieces), self.rarity)
                @ self.directions
            )
            - self.middle
        )
        return made * inverse(np.linalg.norm(made, axis=1))[:, None]


def inverse(length: np.ndarray) -> np.ndarray:
    """1 / length, and 0 of nothing."""
    return np.divide(1, length, out=np.zeros_like(length), where=length > 0)


def codes(tokens: np.ndarray, vocabulary: int) -> np.ndarray:
    """The pieces (N, K) of tokens (N, T), a number each: of one token t, of two V + t V + t',
    and so on. DataError for no such tokens."""
    tokens = np.asarray(tokens)
    if (
        tokens.ndim != 2
        or not tokens.size
        or tokens.dtype.kind not in "iu"
        or tokens.min() < 0
        or tokens.max() >= vocabulary
    ):
        raise DataError(
            "what is to be embedded are no tokens",
            expected=f"a table of whole numbers 0 to {vocabulary - 1}",
            found=f"{tokens.shape} of {tokens.dtype}"
            + (f", {tokens.min()} to {tokens.max()}" if tokens.size else ""),
        )
    tokens, parts, code, offset = tokens.astype(np.int64), [], None, 0
    for size in range(1, min(LONGEST, tokens.shape[1]) + 1):
        code = tokens if code is None else code[:, :-1] * vocabulary + tokens[:, size - 1 :]
        parts.append(code + offset)
        offset += vocabulary**size
    return np.concatenate(parts, 1)


def counted(tokens: np.ndarray, vocabulary: int, pieces: np.ndarray) -> sparse.csr_array:
    """How often each piece (M) stands in each sequence: (N, M) float64, others left out."""
    found = codes(tokens, vocabulary)
    place = np.minimum(np.searchsorted(pieces, found), len(pieces) - 1)
    row, column = np.nonzero(pieces[place] == found)
    table = sparse.coo_array(
        (np.ones(len(row)), (row, place[row, column])), shape=(len(found), len(pieces))
    ).tocsr()
    table.sum_duplicates()
    return table


def weighed(counts: sparse.csr_array, rarity: np.ndarray) -> sparse.csr_array:
    """(1 + log count) x rarity, each row of length 1 (or 0, where no piece is known)."""
    table = counts.copy()
    table.data = (1 + np.log(table.data)) * rarity[table.indices]
    scale = inverse(np.sqrt(table.multiply(table).sum(1)))
    return sparse.csr_array(table.multiply(scale[:, None]))


def fit(
    training: np.ndarray, vocabulary: int, pieces: int = PIECES, dimensions: int = DIMENSIONS
) -> Embedding:
    """Learn the pieces, their rarity and the directions from training tokens (N, T) alone; the same
    bytes for the same tokens.

    A direction points to where its largest number is positive. DataError for fewer than three
    sequences, or too few different ones.
    """
    training = np.asarray(training)
    if len(training) < 3:
        raise DataError(
            "too few sequences to learn an embedding from",
            expected="3 or more",
            found=str(len(training)),
        )
    some = training[
        np.arange(min(FITTED, len(training))) * len(training) // min(FITTED, len(training))
    ]
    kind, often = np.unique(codes(some, vocabulary), return_counts=True)
    kept = np.sort(kind[np.lexsort((kind, -often))[:pieces]])
    counts = counted(some, vocabulary, kept)
    rarity = np.log((1 + len(some)) / (1 + (counts > 0).sum(0))) + 1
    table = weighed(counts, rarity)
    most = min(dimensions, min(table.shape) - 1)
    if most < 1:
        raise DataError(
            "the training sequences know one piece only",
            expected="two different tokens or more",
            found=str(len(kept)),
        )
    start = np.ones(min(table.shape))  # of the search: no chance
    _, sizes, rows = svds(table, k=most, v0=start, return_singular_vectors="vh", solver="arpack")
    order = np.argsort(-sizes, kind="stable")
    sizes, rows = sizes[order], rows[order]
    found = rows[sizes > 1e-9 * sizes[0]]  # directions in which nothing lies are any
    largest = np.abs(found).argmax(1)
    directions = np.ascontiguousarray(
        (found * np.sign(found[np.arange(len(found)), largest])[:, None]).T
    )
    share = float((sizes**2).sum() / table.multiply(table).sum())
    return Embedding(
        vocabulary, kept, rarity, directions, np.asarray(table @ directions).mean(0), share
    )
