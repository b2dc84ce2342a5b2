"""The samplers of trained models of sequences: which suit a model, that they keep prompts, what
they cost, and that greedy is greedy."""

import numpy as np
import pytest
import torch

from stages.sequences.evaluation import passes
from stages.sequences.models.diffusion import Diffusion
from stages.sequences.models.sigma_gpt import SigmaGPT

LENGTH = 6
EXACT = ("exact", "window_2", "window_16")
SIZE = {"width": 16, "keys": 8, "hidden": 16, "heads": 2, "blocks": 1}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("left_to_right", ["left_to_right", *EXACT]),
        ("fractal", ["left_to_right", "own", *EXACT]),
        ("random", ["left_to_right", "own", "burst_1", "burst_5", *EXACT]),
        ("curriculum", ["left_to_right", "own", "burst_1", "burst_5", *EXACT]),
    ],
)
def test_each_order_of_training_has_its_samplers(kind, names):
    network = SigmaGPT(3, LENGTH, **SIZE).eval()
    found = passes.samplers(network, kind, (1, 5), (4,))
    assert list(found) == names
    tokens = np.tile([2, 1, 0, 0, 0, 0], (7, 1))
    known = np.array([0, 1, 2, 2, 1, 0, 6])
    for name, sampler in found.items():
        sample = passes.drawn(sampler, tokens, known, 3, 4, torch.Generator().manual_seed(0))
        given = np.arange(LENGTH) < known[:, None]
        assert (
            (sample.tokens[given] == tokens[given]).all()
            and sample.tokens.min() >= 0
            and sample.tokens.max() < 3
        ), name
        assert (np.sort(sample.order, 1) == np.arange(LENGTH)).all()
        asked = LENGTH - known
        assert (
            (sample.passes == asked).all()
            if "burst" not in name and name not in EXACT
            else (sample.rounds <= asked).all()
        )


def test_orders_put_what_each_row_knows_in_front_from_left_to_right():
    known = torch.tensor([0, 3, 6, 1])
    order = passes.ordered("random", 4, LENGTH, known, torch.Generator().manual_seed(3))
    assert torch.equal(order.sort(1).values, torch.arange(LENGTH).expand(4, LENGTH))
    for row, count in zip(order, known.tolist(), strict=True):
        assert row[:count].tolist() == list(range(count))
    assert (
        passes.ordered("curriculum", 50, LENGTH, 0, torch.Generator().manual_seed(3))
        .unique(dim=0)
        .shape[0]
        > 40
    )


def test_diffusion_takes_its_steps_and_keeps_the_prompt():
    found = passes.samplers(Diffusion(3, LENGTH, **SIZE).eval(), "left_to_right", (1,), (1, 4))
    assert list(found) == ["diffusion_1", "diffusion_4"]
    sample = passes.drawn(
        found["diffusion_4"],
        np.full((5, LENGTH), 2),
        np.full(5, 3),
        3,
        2,
        torch.Generator().manual_seed(0),
    )
    assert (
        (sample.tokens[:, :3] == 2).all()
        and (sample.passes == 4).all()
        and (sample.positions == 4 * LENGTH).all()
    )


@pytest.mark.parametrize("kind", ["left_to_right", "fractal", "random"])
def test_greedy_takes_the_likeliest_token_of_each_step_given_those_before(kind):
    torch.manual_seed(1)
    network = SigmaGPT(3, LENGTH, **SIZE).eval()
    network.readout.weight.data.mul_(20)
    found = passes.samplers(network, kind, (1,), (4,), answered=True)
    assert "greedy" not in passes.samplers(network, kind, (1,), (4,))
    sample = passes.drawn(
        found["greedy"],
        np.tile([2, 1, 0, 0, 0, 0], (5, 1)),
        np.array([0, 1, 2, 2, 0]),
        3,
        5,
        torch.Generator().manual_seed(4),
    )
    for tokens, order, known in zip(
        *(torch.from_numpy(part) for part in (sample.tokens, sample.order)),
        (0, 1, 2, 2, 0),
        strict=True,
    ):
        with torch.no_grad():
            guess = network(tokens[None], order[None])[0].argmax(1)
        assert torch.equal(tokens[order][known:], guess[known:])
    assert (
        len(np.unique(sample.tokens)) > 1
        and (sample.passes == LENGTH - np.array([0, 1, 2, 2, 0])).all()
    )
