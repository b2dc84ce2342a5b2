"""Orders are permutations, undo themselves, keep a prompt in front, and are uniform where they
should be."""

import pytest
import torch
from scipy.stats import chisquare

from stages import seeds
from stages.errors import InputError
from stages.sequences import permutations
from stages.sequences.permutations import (
    KINDS,
    ahead,
    draw,
    fractal,
    inverse,
    left_to_right,
    random,
)


def generator(*names):
    return seeds.torch_stream(0, "permutations", *names)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 2, 7, 100])
@pytest.mark.parametrize("first", [0, 1])
def test_every_row_is_a_permutation_that_its_inverse_undoes_and_the_prompt_is_in_front(
    kind, length, first
):
    order = draw(kind, 50, length, generator(kind, length), share=0.5, first=first)
    steps = torch.arange(length).expand(50, -1)
    assert order.dtype == torch.int64 and torch.equal(order.sort(1).values, steps)
    assert torch.equal(order.gather(1, inverse(order)), steps) and torch.equal(
        inverse(order).gather(1, order), steps
    )
    assert torch.equal(order[:, :first], steps[:, :first])


def test_the_fractal_order_halves_breadth_first():
    assert fractal(7).tolist() == [3, 1, 5, 0, 2, 4, 6] and fractal(8).tolist() == [
        4,
        2,
        6,
        1,
        3,
        5,
        7,
        0,
    ]
    covered, widest = torch.tensor([-1, 100]), []
    for position in fractal(100):
        covered = torch.cat((covered, position[None])).sort().values
        widest.append(int(covered.diff().max()))
    assert all(
        widest[2**depth - 2] <= 100 / 2**depth + 1 for depth in range(1, 7)
    )  # after 2^d - 1 positions no gap is above T/2^d


def test_random_orders_are_uniform_and_independent_between_rows():
    order = random(60_000, 3, generator("uniform"))
    code = (order * torch.tensor([9, 3, 1])).sum(1)
    assert chisquare(code.unique(return_counts=True)[1]).pvalue > 1e-3 and len(code.unique()) == 6
    pairs = code.view(2, -1)
    assert chisquare((pairs[0] * 27 + pairs[1]).unique(return_counts=True)[1]).pvalue > 1e-3


def test_a_curriculum_decides_row_by_row_with_its_share():
    rows = (draw("curriculum", 4000, 20, generator("share"), share=0.3) == torch.arange(20)).all(1)
    assert abs(rows.double().mean() - 0.3) < 4 * (0.3 * 0.7 / 4000) ** 0.5
    assert (draw("curriculum", 50, 20, generator("all"), share=1.0) == torch.arange(20)).all()


def test_given_positions_come_ahead_and_nothing_else_moves():
    order = random(30, 12, generator("ahead"))
    given = torch.rand(30, 12, generator=generator("given")) < 0.4
    for new, old, known in zip(
        ahead(order, given).tolist(), order.tolist(), given.tolist(), strict=True
    ):
        assert new == [place for place in old if known[place]] + [
            place for place in old if not known[place]
        ]


def test_the_same_generator_state_gives_the_same_orders():
    assert torch.equal(random(5, 30, generator("same")), random(5, 30, generator("same")))
    assert not torch.equal(random(5, 30, generator("same")), random(5, 30, generator("other")))
    assert torch.equal(
        left_to_right(3, 4), permutations.draw("left_to_right", 3, 4, generator("plain"))
    )


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "backwards"}, {"kind": "curriculum", "share": 1.1}, {"kind": "random", "first": 9}],
)
def test_what_does_not_fit_is_refused(wrong):
    with pytest.raises(InputError):
        draw(**{"batch": 2, "length": 8, "generator": generator("wrong"), **wrong})
