"""The compiled attention kernel against its definition written out in float64, for values and
gradients."""

import math

import numpy as np
import pytest
import torch

from stages.layers.kernels import attention as fused
from stages.layers.kernels import attention_code
from tests.benchmarks.scaling import counted

SHAPES = [  # sets, queries, keys, heads, width
    (1, 1, 1, 1, 1),
    (2, 5, 3, 2, 6),
    (3, 129, 33, 2, 4),
    (1, 300, 301, 1, 12),
    (2, 128, 32, 3, 16),
    (1, 40, 2100, 2, 5),
    (1, 2100, 40, 1, 20),
]


def drawn(shape, kinds, seed=0):
    torch.manual_seed(seed)
    sets, queries, keys, heads, width = shape
    query = torch.randn(sets, queries, 1 if kinds == 2 else kinds, heads, width)
    return query, query if kinds == 3 else torch.randn(sets, keys, 2, heads, width)


def defined(query, memory, real):
    """softmax(Q K^T / sqrt P) V, all in float64, zeros where no key is real."""
    query, key, value = (
        part.double().transpose(1, 2)
        for part in (query[:, :, 0], memory[:, :, -2], memory[:, :, -1])
    )
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    weights = scores.masked_fill(~real[:, None, None], -torch.inf).softmax(-1).nan_to_num(0)
    return (weights @ value.nan_to_num(0)).transpose(1, 2)


def gradients(read, slope, *tokens):
    return torch.autograd.grad((read * slope).sum(), tokens)


@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients_are_those_of_the_definition(shape, masked):
    query, memory = (part.requires_grad_() for part in drawn(shape, 2))
    real = (
        torch.rand(memory.shape[:2]) < 0.6
        if masked
        else torch.ones(memory.shape[:2], dtype=torch.bool)
    )
    real[0, 0] = True
    read = fused.attend(query, memory, real if masked else None)
    expected = defined(query, memory, real)
    torch.testing.assert_close(read.double(), expected, atol=3e-6, rtol=3e-5)
    slope = torch.randn_like(read)
    for mine, other in zip(
        gradients(read, slope, query, memory),
        gradients(expected, slope.double(), query, memory),
        strict=True,
    ):
        torch.testing.assert_close(mine, other.float(), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("count", [1, 31, 140, 1100])
def test_tokens_may_read_themselves(count):
    tokens, _ = drawn((2, count, count, 2, 6), 3)
    tokens.requires_grad_()
    real = torch.ones(tokens.shape[:2], dtype=torch.bool)
    read, expected = fused.attend(tokens, tokens, None), defined(tokens, tokens, real)
    torch.testing.assert_close(read.double(), expected, atol=3e-6, rtol=3e-5)
    slope = torch.randn_like(read)
    mine, other = gradients(read, slope, tokens)[0], gradients(expected, slope.double(), tokens)[0]
    torch.testing.assert_close(mine, other.float(), atol=1e-5, rtol=1e-4)


def test_what_is_not_real_is_not_read_whatever_it_holds():
    query, memory = drawn((2, 9, 50, 2, 6), 2)
    real = torch.ones(2, 50, dtype=torch.bool)
    real[0, 7:], real[1] = False, False
    spoilt = memory.masked_fill(~real[:, :, None, None, None], torch.nan).requires_grad_()
    read = fused.attend(query, spoilt, real)
    assert (
        torch.equal(read[0], fused.attend(query[:1], memory[:1, :7], None)[0]) and not read[1].any()
    )  # no key at all: zeros
    (slope,) = gradients(read, torch.ones_like(read), spoilt)
    assert slope[0, :7].any() and not slope[~real].any()


@pytest.mark.parametrize("scale", [1e-3, 30.0, 1e3, 1e15])
def test_scores_of_any_size_neither_overflow_nor_vanish(scale):
    """Weights as uneven as one: differences of scores far beyond what exp holds."""
    query, memory = drawn((1, 150, 70, 2, 4), 2)
    query = (query * scale).requires_grad_()
    read, real = fused.attend(query, memory, None), torch.ones(1, 70, dtype=torch.bool)
    torch.testing.assert_close(
        read.double(), defined(query, memory, real), atol=3e-5 if scale < 1e3 else 2e-3, rtol=1e-4
    )
    assert gradients(read, torch.randn_like(read), query)[0].isfinite().all()


@pytest.mark.parametrize("spoilt", ["query", "key", "value"])
def test_what_is_no_number_stays_none(spoilt):
    """A training that has diverged must be seen to have."""
    query, memory = drawn((1, 40, 40, 1, 4), 2)
    {"query": query[0, 3, 0], "key": memory[0, 5, 0], "value": memory[0, 5, 1]}[spoilt][0, 1] = (
        torch.nan
    )
    bad = fused.attend(query, memory, None).isnan()[0, :, 0]
    expected = torch.zeros_like(bad)
    expected[{"query": (3, slice(None)), "key": slice(None), "value": (slice(None), 1)}[spoilt]] = (
        True
    )
    assert torch.equal(bad, expected)


@pytest.mark.parametrize("shape", [(1, 1500, 1500, 2, 6), (5, 200, 300, 3, 4)], ids=str)
def test_the_number_of_threads_changes_no_bit(shape):
    found, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            query, memory = (part.requires_grad_() for part in drawn(shape, 2))
            read = fused.attend(query, memory, None)
            found.append((read, *gradients(read, torch.ones_like(read), query, memory)))
    finally:
        torch.set_num_threads(before)
    assert all(
        torch.equal(mine, other)
        for other in found[1:]
        for mine, other in zip(found[0], other, strict=True)
    )


def test_memory_grows_with_the_points_and_not_with_their_square():
    peaks = []
    for count in (1000, 4000):
        query, memory = (part.requires_grad_() for part in drawn((1, count, count, 1, 4), 2))
        slope = torch.ones(1, count, 1, 4)

        def step(query=query, memory=memory, slope=slope):
            return gradients(fused.attend(query, memory, None), slope, query, memory)

        peaks.append(counted(step, torch.device("cpu"))[0])
    assert 0.1 < 3 * peaks[0] < peaks[1] < 5 * peaks[0]  # MiB; a matrix would take 61


def test_exp_is_right_to_a_unit_in_the_last_place():
    import numba

    values = np.linspace(-87, 0, 1_000_003, dtype=np.float32)

    @numba.njit
    def every(values, found):
        for i in range(len(values)):
            found[i] = attention_code.exponential(values[i])

    found = np.empty_like(values)
    every(values, found)
    assert np.abs(found / np.exp(values.astype(np.float64)) - 1).max() < 2**-22
    every(np.array([-np.inf, -1e30, -88, np.nan], np.float32), found[:4])
    assert (found[:3] < 2e-38).all() and (found[:3] >= 0).all() and np.isnan(found[3])


def test_it_takes_single_precision_of_the_processor_only():
    tokens = torch.zeros(1, 2, 8)
    assert (
        fused.takes(tokens, 4)
        and not fused.takes(tokens.double(), 4)
        and not fused.takes(tokens.to("meta"), 4)
    )
    assert not fused.takes(tokens, fused.WIDEST + 1)
    with torch.autocast("cpu", torch.bfloat16):
        assert not fused.takes(tokens, 4)


def test_gradients_of_gradients_are_refused():
    query, memory = (part.requires_grad_() for part in drawn((1, 4, 4, 1, 4), 2))
    with pytest.raises(RuntimeError, match="gradients of gradients"):
        torch.autograd.grad(fused.attend(query, memory, None).sum(), query, create_graph=True)
