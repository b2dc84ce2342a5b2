"""How alike two maps are: a rank correlation of what convolutions alone do not join."""

import numpy as np
import pytest

from stages import files, seeds
from stages.scores.shell import WEIGHTS
from stages.tokens.likeness import likeness, references

PLACES = np.arange(30)
FAR = np.abs(PLACES[:, None] - PLACES) > 8


def drawn(name: str) -> np.ndarray:
    return np.exp(seeds.stream(0, "likeness", name).standard_normal((2, 30, 30)))


def test_a_map_is_like_itself_whatever_its_scale_and_unlike_its_reverse():
    one = drawn("one")
    assert likeness(one, [one**3], 8) == pytest.approx([1.0, 1.0])
    assert likeness(one, [1 / one], 8) == pytest.approx([-1.0, -1.0])
    assert np.abs(likeness(one, [drawn("other")], 8)).max() < 0.2
    assert likeness(one, [one, 1 / one], 8) == pytest.approx([0.0, 0.0]), "the mean of both"


def test_what_convolutions_join_says_nothing_and_a_map_without_mixing_is_like_none():
    one, other = drawn("one"), drawn("one")
    other[:, ~FAR] = 7.0
    assert likeness(one, [other], 8) == pytest.approx([1.0, 1.0])
    assert likeness(one * ~FAR, [one], 8) == pytest.approx([0.0, 0.0])


def test_it_is_the_correlation_of_the_ranks_that_scipy_has():
    from scipy.stats import spearmanr

    one, other = drawn("one"), drawn("one") + drawn("other")
    expected = [spearmanr(a[FAR], b[FAR]).statistic for a, b in zip(one, other, strict=True)]
    assert likeness(one, [other], 8) == pytest.approx(expected)


def test_attention_is_compared_with_its_other_seeds_alone(tmp_path):
    names = ("hypermixing-tied-w24-s0", "self_attention-post_norm-w24-s0",
             "self_attention-post_norm-w24-s1", "self_attention-pre_norm-w24-s0")  # fmt: skip
    for name in names:
        (tmp_path / name).mkdir()
        files.write_json(tmp_path / name / "history.json", {})
        (tmp_path / name / WEIGHTS).write_bytes(b"")
    assert [one.name for one in references(tmp_path / names[0])] == [*names[1:3]]
    assert [one.name for one in references(tmp_path / names[1])] == [names[2]]
