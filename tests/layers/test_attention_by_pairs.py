"""Attention by an MLP of every pair, by compiled code: held against the definition, written out in
float64, values and gradients; and where it hands on to torch."""

import pytest
import torch

from stages import arithmetic
from stages.layers.kernels import pairs
from stages.layers.relative import PAIRS, RelativeAttention

pytestmark = pytest.mark.skipif(not arithmetic.compiled(), reason="the kernels are off")
# sets, queries, keys, axes, width, heads, by length alone
SHAPES = [
    (3, 64, 64, 1, 32, 4, False),
    (2, 100, 33, 2, 32, 4, False),
    (2, 9, 700, 2, 64, 4, False),
    (2, 40, 50, 2, 32, 4, True),
    (1, 1, 1, 3, 64, 2, False),
    (2, 3, 17, 1, 24, 3, True),
]


def drawn(shape, dtype=torch.float32):
    """A layer, and what it is given; the first of several sets has no real key."""
    sets, queries, keys, axes, width, heads, turned = shape
    torch.manual_seed(sum(shape))
    layer = RelativeAttention(axes, width, heads, 16, "post", turned)
    given = [torch.randn(sets, count, width) for count in (queries, keys)]
    places = [torch.randn(sets, count, axes) for count in (queries, keys)]
    places[1][-1, 0] = places[0][-1, 0]  # a pair of one place
    real = torch.rand(sets, keys) > 0.3
    real[0] = sets == 1
    slope = torch.randn(sets, queries, width)
    return layer, given, places, real, slope


def defined(layer, given, places, real):
    """The definition: every pair's logits at once, in the numbers' own precision."""
    queries, memory = given
    heads = layer.heads
    query = layer.query(queries).unflatten(2, (heads, -1))
    key, value = layer.key_value(memory).unflatten(2, (2, heads, -1)).unbind(2)
    dots = torch.einsum("bqad,bnad->bqna", query, key) / query.shape[3] ** 0.5
    far = places[0][:, :, None] - places[1][:, None]
    if layer.logits.turned:
        far = torch.linalg.vector_norm(far, dim=3, keepdim=True)
    told = layer.logits.network(torch.cat((dots, far), 3))
    weights = told.masked_fill(~real[:, None, :, None], -torch.inf).softmax(2).nan_to_num()
    return layer.outward(torch.einsum("bqna,bnad->bqad", weights, value).flatten(2))


def answered(way, layer, given, places, real, slope):
    """What is read, and gradients by what was given and by every parameter."""
    given = [one.clone().requires_grad_() for one in given]
    layer.zero_grad()
    read = way(layer, given, places, real)
    read.backward(slope)
    return [read.detach(), *(one.grad for one in (*given, *layer.parameters()))]


def compiled(layer, given, places, real):
    assert pairs.takes(given[0], *places, 16)
    return layer(*given, real, *places)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients_are_those_of_the_definition(shape):
    layer, given, places, real, slope = drawn(shape)
    found = answered(compiled, layer, given, places, real, slope)
    exact = answered(
        defined,
        layer.double(),
        *([one.double() for one in part] for part in (given, places)),
        real,
        slope.double(),
    )
    largest = max(float(one.abs().max()) for one in exact[3:])
    for one, other in zip(found, exact, strict=True):
        assert bool(one.isfinite().all())
        # the last bias moves all logits of a query alike: its gradient is a sum of rounding
        least = max(float(other.abs().max()), 1e-2 * largest)
        torch.testing.assert_close(one.double(), other, rtol=0, atol=3e-6 * least)


def test_a_key_that_is_not_real_changes_no_bit():
    layer, given, places, real, slope = drawn(SHAPES[0])
    found = answered(compiled, layer, given, places, real, slope)
    given[1][~real] = 1e6
    places[1][~real] = -1e6
    again = answered(compiled, layer, given, places, real, slope)
    read = found[0], again[0]
    assert torch.equal(*read)
    assert torch.equal(found[1], again[1])
    assert not found[2][~real].any()


def test_the_number_of_threads_changes_no_bit():
    layer, given, places, real, slope = drawn((4, 100, 100, 2, 32, 4, False))
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(answered(compiled, layer, given, places, real, slope)[0])
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found)


def test_torch_answers_where_the_code_is_not_for_it():
    layer, given, places, real, _ = drawn(SHAPES[0])
    assert pairs.takes(given[0], *places, 16)
    assert not pairs.takes(given[0], *places, 12)
    assert not pairs.takes(given[0].double(), *(one.double() for one in places), 16)
    asked = places[0].clone().requires_grad_()
    assert not pairs.takes(given[0], asked, places[1], 16)
    layer(*given, real, asked, places[1]).sum().backward()
    assert asked.grad is not None and bool(asked.grad.abs().sum() > 0)
    with torch.no_grad():
        assert pairs.takes(given[0], asked, places[1], 16)
        whole = compiled(layer, given, places, real)
        layer.pairs = PAIRS + 1
        torch.testing.assert_close(layer(*given, real, *places), whole, rtol=1e-5, atol=1e-5)
