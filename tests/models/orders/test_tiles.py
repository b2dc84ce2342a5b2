"""Compiled attention of packed heads against its definition written out in float64, for values
and gradients."""

import math

import pytest
import torch

from stages import seeds
from stages.layers.kernels import tiles
from stages.sequences import permutations
from stages.sequences.models import build

SHAPES = [  # sequences, tokens, heads, columns of a key, columns of a value
    (1, 1, 1, 16, 16),
    (2, 2, 2, 32, 16),
    (3, 31, 3, 16, 48),
    (1, 32, 4, 16, 16),
    (2, 33, 2, 32, 32),
    (1, 128, 2, 16, 64),
    (2, 129, 1, 64, 16),
    (1, 300, 2, 48, 16),
]
either = pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])


def drawn(shape, scale=1.0):
    torch.manual_seed(0)
    count, tokens, heads, width, deep = shape
    packed = torch.randn(count, tokens, heads * (2 * width + deep))
    packed[:, :, : heads * width] *= scale  # queries
    return packed.requires_grad_(), heads, width


def defined(packed, heads, width, causal):
    """softmax(Q K^T / sqrt P) V, all in float64; parts are cut here again."""
    packed, found = packed.double(), []
    deep, place = packed.shape[2] // heads - 2 * width, 2 * heads * width
    for head in range(heads):
        query, key = (packed[:, :, at * width : (at + 1) * width] for at in (head, heads + head))
        scores = query @ key.mT / math.sqrt(width)
        if causal:
            scores = scores.masked_fill(
                torch.ones(scores.shape[1:], dtype=torch.bool).triu(1), -torch.inf
            )
        found.append(
            scores.softmax(-1) @ packed[:, :, place + head * deep : place + (head + 1) * deep]
        )
    return torch.cat(found, 2)


@either
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients_are_those_of_the_definition(shape, causal):
    packed, heads, width = drawn(shape)
    assert tiles.takes(packed, width, shape[4])
    read = tiles.attend(packed, heads, width, causal)
    expected = defined(packed, heads, width, causal)
    torch.testing.assert_close(read.double(), expected, atol=3e-6, rtol=3e-5)
    slope = torch.randn_like(read)
    (mine,), (other,) = (
        torch.autograd.grad(read, packed, slope),
        torch.autograd.grad(expected, packed, slope.double()),
    )
    torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-4)


@either
def test_no_token_reads_what_it_must_not(causal):
    packed, heads, width = drawn((1, 75, 2, 16, 32))
    read = tiles.attend(packed, heads, width, causal)
    for token in range(75):
        (slope,) = torch.autograd.grad(read[0, token].sum(), packed, retain_graph=True)
        query, *memory = (part.flatten(2)[0].any(1) for part in tiles.parts(slope, heads, width))
        assert (
            torch.equal(query, torch.arange(75) == token) or token == 0
        )  # one key alone: the query changes nothing
        for seen in memory[1:] if causal and token == 0 else memory:
            assert torch.equal(
                seen, torch.arange(75) <= token if causal else torch.ones(75, dtype=torch.bool)
            )


def test_what_comes_later_changes_no_bit():
    packed, heads, width = drawn((2, 100, 2, 32, 16))
    other = packed.detach().clone()
    other[:, 51:] = 1e4
    assert torch.equal(
        tiles.attend(packed, heads, width, True)[:, :51],
        tiles.attend(other, heads, width, True)[:, :51],
    )


@either
@pytest.mark.parametrize("scale", [1e-3, 30.0, 1e3, 1e15])
def test_scores_of_any_size_neither_overflow_nor_vanish(scale, causal):
    """Weights as uneven as one: differences of scores far beyond what exp holds."""
    packed, heads, width = drawn((1, 150, 2, 16, 16), scale)
    read = tiles.attend(packed, heads, width, causal)
    torch.testing.assert_close(
        read.double(),
        defined(packed, heads, width, causal),
        atol=3e-5 if scale < 1e3 else 2e-3,
        rtol=1e-4,
    )
    assert torch.autograd.grad(read, packed, torch.randn_like(read))[0].isfinite().all()


@either
@pytest.mark.parametrize("part", range(3), ids=["query", "key", "value"])
def test_what_is_no_number_stays_none(part, causal):
    """A training that has diverged must be seen to have, at every token that reads it."""
    packed, heads, width = drawn((1, 40, 1, 16, 16))
    packed.data[0, 5, 16 * part + 1] = torch.nan
    bad = tiles.attend(packed, heads, width, causal).isnan()[0].any(1)
    readers = torch.arange(40) == 5 if part == 0 else torch.arange(40) >= (5 if causal else 0)
    assert bad[readers].all() and not (part == 0 and bad[~readers].any())


@either
def test_the_number_of_threads_changes_no_bit(causal):
    found, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            packed, heads, width = drawn((5, 300, 3, 16, 32))
            read = tiles.attend(packed, heads, width, causal)
            found.append((read, *torch.autograd.grad(read, packed, torch.ones_like(read))))
    finally:
        torch.set_num_threads(before)
    assert all(
        torch.equal(mine, other)
        for other in found[1:]
        for mine, other in zip(found[0], other, strict=True)
    )


def test_a_tensor_that_does_not_lie_in_one_piece_is_read_as_it_is():
    packed, heads, width = drawn((3, 20, 2, 16, 16))
    turned = packed.detach().transpose(0, 1).contiguous().transpose(0, 1)
    assert not turned.is_contiguous() and torch.equal(
        tiles.attend(turned, heads, width, True), tiles.attend(packed, heads, width, True)
    )


def test_it_takes_single_precision_and_whole_registers_of_the_processor_only():
    packed = torch.zeros(1, 2, 48)
    assert (
        tiles.takes(packed, 16, 16)
        and not tiles.takes(packed.double(), 16, 16)
        and not tiles.takes(packed.to("meta"), 16, 16)
    )
    assert not tiles.takes(packed.bfloat16(), 16, 16)
    assert not any(
        tiles.takes(packed, *widths)
        for widths in ((8, 16), (16, 24), (16, 0), (tiles.WIDEST + 16, 16))
    )
    with torch.autocast("cpu", torch.bfloat16):
        assert not tiles.takes(packed, 16, 16)


@pytest.mark.parametrize("name", ["sigma_gpt", "diffusion"])
def test_a_model_is_the_same_function_by_torch_s_kernel(name, monkeypatch):
    tokens = torch.randint(5, (3, 21))
    order = permutations.random(3, 21, seeds.torch_stream(0, "tiles"))
    found = []
    for compiled in (True, False):
        if not compiled:
            monkeypatch.setattr(tiles, "takes", lambda *_: False)
        seeds.everything(0)
        model = build(
            name,
            {"dropout": 0.0},
            {"width": 32, "keys": 32, "hidden": 24, "heads": 2, "blocks": 2},
            5,
            21,
        )
        logits = model(tokens, order if name == "sigma_gpt" else torch.tensor([0.1, 0.5, 0.9]))
        found.append(
            (logits, *torch.autograd.grad(logits.square().sum(), list(model.parameters())))
        )
    for mine, other in zip(*found, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-4, rtol=1e-4)


def test_gradients_of_gradients_are_refused():
    packed, heads, width = drawn((1, 4, 1, 16, 16))
    with pytest.raises(RuntimeError, match="gradients of gradients"):
        torch.autograd.grad(
            tiles.attend(packed, heads, width, True).sum(), packed, create_graph=True
        )
