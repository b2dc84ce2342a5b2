"""The embedding of sequences against counts by hand and a dense decomposition: what it sees, and
what it must not."""

from collections import Counter

import numpy as np
import pytest

from stages.errors import DataError
from stages.sequences.evaluation import embedding

VOCABULARY = 5
TRAINING = np.random.default_rng(0).choice(VOCABULARY, (80, 24), p=[0.4, 0.3, 0.15, 0.1, 0.05])


def of(*words: str) -> np.ndarray:
    """Words of the letters a to e as tokens."""
    return np.array([[ord(letter) - ord("a") for letter in word] for word in words])


def pieces_of(row: np.ndarray) -> Counter:
    """The pieces of a sequence as tuples."""
    return Counter(
        tuple(row[i : i + size].tolist()) for size in (1, 2, 3) for i in range(len(row) - size + 1)
    )


def named(code: int) -> tuple[int, ...]:
    """A code as the tuple it stands for."""
    size = 1
    while code >= VOCABULARY**size:
        code -= VOCABULARY**size
        size += 1
    return tuple(code // VOCABULARY**place % VOCABULARY for place in range(size - 1, -1, -1))


def dense(tokens: np.ndarray, learned: embedding.Embedding) -> np.ndarray:
    """The weighed table (N, M) by the textbook, from tuples."""
    known = [named(int(code)) for code in learned.pieces]
    holders = {piece: sum(piece in pieces_of(row) for row in TRAINING) for piece in known}
    table = np.zeros((len(tokens), len(known)))
    for at, row in enumerate(tokens):
        found = pieces_of(row)
        for place, piece in enumerate(known):
            if found[piece]:
                table[at, place] = (1 + np.log(found[piece])) * (
                    np.log((1 + len(TRAINING)) / (1 + holders[piece])) + 1
                )
    length = np.linalg.norm(table, axis=1, keepdims=True)
    return np.divide(table, length, out=np.zeros_like(table), where=length > 0)


def test_the_pieces_kept_are_the_most_frequent_ones_of_the_training_sequences():
    learned = embedding.fit(TRAINING, VOCABULARY, pieces=20)
    often = Counter()
    for row in TRAINING:
        often += pieces_of(row)
    least = min(often[named(int(code))] for code in learned.pieces)
    assert len(learned.pieces) == 20 and sum(count > least for count in often.values()) <= 20
    assert (np.diff(learned.pieces) > 0).all()


def test_counts_are_those_of_tuples_counted_by_hand():
    learned = embedding.fit(TRAINING, VOCABULARY)
    table = embedding.counted(TRAINING[:9], VOCABULARY, learned.pieces).toarray()
    for row, counts in zip(TRAINING[:9], table, strict=True):
        assert {
            named(int(code)): n for code, n in zip(learned.pieces, counts, strict=True) if n
        } == pieces_of(row)


def test_embeddings_are_a_dense_decomposition_less_its_mean_scaled_to_length_one():
    learned = embedding.fit(TRAINING, VOCABULARY, pieces=60, dimensions=7)
    table = dense(TRAINING, learned)
    _, sizes, axes = np.linalg.svd(table, full_matrices=False)
    axes = axes[:7] * np.sign(axes[np.arange(7), np.abs(axes[:7]).argmax(1)])[:, None]
    projected = table @ axes.T
    expected = projected - projected.mean(0)
    np.testing.assert_allclose(
        learned(TRAINING), expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-8
    )
    assert learned.share == pytest.approx((sizes[:7] ** 2).sum() / (sizes**2).sum())
    np.testing.assert_allclose(learned.directions.T @ learned.directions, np.eye(7), atol=1e-10)


def test_a_sequence_is_embedded_alike_alone_and_among_others_and_the_same_bytes_come_again():
    learned, again = embedding.fit(TRAINING, VOCABULARY), embedding.fit(TRAINING.copy(), VOCABULARY)
    assert learned.directions.tobytes() == again.directions.tobytes()
    other = np.random.default_rng(1).integers(VOCABULARY, size=(6, 24))
    np.testing.assert_allclose(learned(other)[3:4], learned(other[3:4]), atol=1e-12)


def test_it_does_not_see_in_what_order_pieces_come_but_sees_other_words():
    learned = embedding.fit(TRAINING, VOCABULARY)
    first, swapped, other = learned(of("aabcdaabcaa", "aabcaabcdaa", "aabcdabacaa"))
    np.testing.assert_allclose(first, swapped, atol=1e-12)
    assert np.linalg.norm(first - other) > 0.1


def test_a_sequence_without_a_known_piece_has_a_place_all_the_same():
    learned = embedding.fit(of("ababab", "abbaba", "bababb"), VOCABULARY)
    assert np.isfinite(learned(of("cdecde", "ababab"))).all()


def test_the_code_of_every_piece_is_its_own():
    whole = np.indices((VOCABULARY,) * 3).reshape(3, -1).T
    found = np.unique(embedding.codes(whole, VOCABULARY))
    np.testing.assert_array_equal(found, np.arange(VOCABULARY + VOCABULARY**2 + VOCABULARY**3))
    assert embedding.codes(np.full((1, 3), 49_999), 50_000).min() >= 0  # no number runs over


@pytest.mark.parametrize(
    "wrong",
    [
        np.full((2, 4), VOCABULARY),
        np.full((2, 4), -1),
        np.zeros((2, 4)),
        np.zeros(4, int),
        np.zeros((0, 4), int),
    ],
)
def test_what_are_no_tokens_is_refused(wrong):
    learned = embedding.fit(TRAINING, VOCABULARY)
    with pytest.raises(DataError, match="no tokens"):
        learned(wrong)


def test_too_few_or_all_too_plain_training_sequences_are_refused():
    with pytest.raises(DataError, match="too few"):
        embedding.fit(TRAINING[:2], VOCABULARY)
    with pytest.raises(DataError, match="one piece"):
        embedding.fit(np.zeros((5, 1), int), VOCABULARY)
