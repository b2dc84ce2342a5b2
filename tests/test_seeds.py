"""Streams of randomness are named, reproducible on every machine, and do not disturb each other."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages import seeds

NAMES = st.lists(
    st.text(st.characters(exclude_characters="/", exclude_categories=("Cs",)), max_size=8)
    | st.integers(0, 99),
    max_size=3,
)


def test_derived_seeds_are_these_on_every_machine():
    # First eight bytes of SHA-256("0/a/1"), shifted right by one: computed with sha256sum, not with
    # this code.
    assert seeds.derive(0, "a", 1) == int("699f66ceb18a8ce7", 16) >> 1


@given(left=st.tuples(st.integers(0, 5), NAMES), right=st.tuples(st.integers(0, 5), NAMES))
def test_other_names_or_seeds_give_other_streams(left, right):
    same = (left[0], [*map(str, left[1])]) == (right[0], [*map(str, right[1])])
    assert (seeds.derive(left[0], *left[1]) == seeds.derive(right[0], *right[1])) == same
    assert 0 <= seeds.derive(left[0], *left[1]) < 2**63


def test_a_stream_does_not_move_when_another_draws_more():
    first = seeds.stream(0, "a").normal(size=5)
    other = seeds.stream(0, "b")
    other.normal(size=1000)
    assert (seeds.stream(0, "a").normal(size=5) == first).all()
    assert not (seeds.stream(0, "b").normal(size=5) == first).any()


def test_neighbouring_seeds_share_nothing():
    draws = np.stack([seeds.stream(seed, "x").normal(size=2000) for seed in range(20)])
    correlations = np.corrcoef(draws)[np.triu_indices(20, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(2000)  # 190 pairs, five standard deviations


def test_torch_streams_repeat_and_leave_the_global_generator_alone():
    torch = pytest.importorskip("torch")
    before = torch.random.get_rng_state()
    draws = [torch.randn(4, generator=seeds.torch_stream(3, "w")) for _ in range(2)]
    assert torch.equal(*draws) and torch.equal(before, torch.random.get_rng_state())
    assert not torch.equal(draws[0], torch.randn(4, generator=seeds.torch_stream(4, "w")))


def test_everything_repeats_all_global_generators():
    torch = pytest.importorskip("torch")
    import random

    def draw(seed):
        seeds.everything(seed)
        return random.random(), float(np.random.random()), float(torch.rand(1))

    assert draw(1) == draw(1) and not set(draw(1)) & set(draw(2))


def test_naming_a_stream_does_not_import_torch():
    code = (
        "import sys\nfrom stages import seeds\nseeds.stream(0, 'a')\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], cwd=Path(__file__).parents[1], check=False
        ).returncode
        == 0
    )
