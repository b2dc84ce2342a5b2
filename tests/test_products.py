"""The products of matrices that replace torch's own: exact in every layout, refused as by torch,
right in their gradients, and the same bits wherever operands lie, in one thread or several.
"""

import math

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from torch.nn import functional

from stages import arithmetic
from stages.arithmetic import kernels

pytestmark = pytest.mark.skipif(
    arithmetic.name() != arithmetic.COMMON,
    reason="torch computes with its own kernels: native, or no AVX2",
)
SMALL, LARGE = (5, 7, 11), (40, 60, 50)  # m, k, n of m x k times k x n: below LEAST and above
kinds = pytest.mark.parametrize("kind", [torch.float32, torch.float64], ids=str)
sizes = pytest.mark.parametrize("size", [SMALL, LARGE, (1, 300, 300), (300, 300, 1)], ids=str)
LAYOUTS = ("plain", "transposed", "strided", "expanded")


def whole(*shape: int, kind: torch.dtype = torch.float64) -> torch.Tensor:
    """Whole numbers so small that every product and sum of theirs is exact."""
    return torch.from_numpy(np.random.default_rng(sum(shape)).integers(-8, 9, shape)).to(kind)


def drawn(*shape: int, kind: torch.dtype = torch.float64) -> torch.Tensor:
    """Uniform numbers between -1 and 1."""
    return torch.from_numpy(np.random.default_rng(sum(shape)).random(shape) * 2 - 1).to(kind)


def laid(rows: int, columns: int, how: str, kind: torch.dtype) -> torch.Tensor:
    """A matrix of whole numbers in one of the LAYOUTS."""
    if how == "transposed":
        return whole(columns, rows, kind=kind).T
    if how == "strided":
        return whole(2 * rows, 3 * columns, kind=kind)[::2, 1::3]
    if how == "expanded":
        return whole(1, columns, kind=kind).expand(rows, -1)
    return whole(rows, columns, kind=kind)


def exact(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product by NumPy's whole numbers, in the type of `a`."""
    return torch.from_numpy(a.long().numpy() @ b.long().numpy()).to(a.dtype)


@kinds
@sizes
@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_products_are_exact_in_every_layout(kind, size, first, second):
    m, k, n = size
    a, b, c = laid(m, k, first, kind), laid(k, n, second, kind), whole(n, kind=kind)
    wanted = exact(a, b)
    assert torch.equal(a @ b, wanted) and torch.equal(torch.mm(a, b), wanted)
    for added in (c, whole(m, 1, kind=kind), whole(m, n, kind=kind)):
        assert torch.equal(torch.addmm(added, a, b), wanted + added)
    assert torch.equal(torch.addmm(c, a, b, beta=2, alpha=-3), 2 * c - 3 * wanted)
    lost = torch.full((n,), math.nan, dtype=kind)
    assert torch.equal(torch.addmm(lost, a, b, beta=0), wanted), "beta 0 adds nothing, nor nan"
    assert torch.addmm(lost, a, b).isnan().all()


@kinds
@sizes
@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_batches_of_products_are_exact_in_every_layout(kind, size, first, second):
    m, k, n = size
    a, b = laid(m, k, first, kind), laid(k, n, second, kind)
    three, both = torch.stack((a, -a, a + 1)), torch.stack((b, b - 1, b))
    wanted = exact(three, both)
    assert torch.equal(torch.bmm(three, both), wanted)
    assert torch.equal(torch.bmm(three.mT.contiguous().mT, both.mT.contiguous().mT), wanted)
    assert torch.equal(torch.bmm(three, b.expand(3, -1, -1)), exact(three, b))


def test_the_sizes_lie_below_and_above_the_least(monkeypatch):
    passed, multiplied = [], kernels._multiplied

    def noted(a, b):
        passed.append(tuple(a.shape))
        return multiplied(a, b)

    monkeypatch.setattr(kernels, "_multiplied", noted)
    for m, k, n in (SMALL, LARGE):
        drawn(m, k) @ drawn(k, n)
    assert passed == [LARGE[:2]] and math.prod(SMALL) < kernels.LEAST < math.prod(LARGE)
    functional.linear(drawn(40, 60), drawn(50, 60), drawn(50))
    torch.bmm(drawn(3, 40, 60), drawn(3, 60, 50))
    assert passed == [LARGE[:2], LARGE[:2], (3, 40, 60)]


@kinds
def test_empty_products_are_torchs(kind):
    def empty(*shape):
        return torch.empty(*shape, dtype=kind)

    assert torch.equal(empty(3, 0) @ empty(0, 4), torch.zeros(3, 4, dtype=kind))
    assert torch.bmm(empty(0, 300, 300), empty(0, 300, 300)).shape == (0, 300, 300)
    assert (empty(0, 300) @ empty(300, 300)).shape == (0, 300)


@pytest.mark.parametrize(
    "function, shapes, says",
    [
        (torch.mm, [(90, 80), (90, 80)], "shapes cannot be multiplied"),
        (torch.mm, [(900,), (900, 900)], "must be a matrix"),
        (torch.mm, [(3, 90, 90), (3, 90, 90)], "must be a matrix"),
        (torch.bmm, [(90, 90), (90, 90)], "3D tensor"),
        (torch.bmm, [(3, 90, 90), (2, 90, 90)], "Expected size for first two dimensions"),
        (torch.addmm, [(90,), (90, 80), (90, 80)], "shapes cannot be multiplied"),
        (torch.addmm, [(90,), (900,), (900, 90)], "must be a matrix"),
        (torch.addmm, [(7,), (90, 90), (90, 90)], "size"),
    ],
)
def test_what_cannot_be_multiplied_is_refused_by_torch_itself(function, shapes, says):
    with pytest.raises(RuntimeError, match=says):
        function(*(torch.ones(shape) for shape in shapes))


def test_two_types_are_refused_by_torch_itself():
    with pytest.raises(RuntimeError, match="dtype"):
        torch.ones(90, 90) @ torch.ones(90, 90).double()


@pytest.mark.parametrize("kind", [torch.int64, torch.bfloat16, torch.complex64], ids=str)
def test_products_of_other_types_stay_torchs_own(kind):
    a, b = whole(40, 60), whole(60, 50)
    got = a.to(kind) @ b.to(kind)
    assert got.dtype == kind and torch.equal(got, (a @ b).to(kind))


@pytest.mark.parametrize("least", [1, kernels.LEAST])
def test_gradients_are_right(monkeypatch, least):
    monkeypatch.setattr(kernels, "LEAST", least)  # with 1 every product goes through NumPy
    a, b, c, w, p, q = (
        drawn(*shape).requires_grad_()
        for shape in ((3, 4), (4, 5), (5,), (5, 4), (2, 3, 4), (2, 4, 5))
    )
    assert gradcheck(torch.mm, (a, b)) and torch.autograd.gradgradcheck(torch.mm, (a, b))
    assert gradcheck(lambda x, y: (x.T.contiguous().T @ y).sin(), (a, b))
    assert gradcheck(torch.bmm, (p, q)) and gradcheck(functional.linear, (a, w, c))
    for by in ((1, 1), (0.5, 2), (0, 3), (-1, 0)):
        assert gradcheck(
            lambda x, y, z, by=by: torch.addmm(x, y, z, beta=by[0], alpha=by[1]), (c, a, b)
        )
    with torch.no_grad():
        assert not (a @ b).requires_grad and not torch.addmm(c, a, b).requires_grad
    assert torch.addmm(c, a, b).requires_grad


def test_a_large_layers_gradients_are_exact():
    x, weight, bias = (
        whole(*shape, kind=torch.float32).requires_grad_() for shape in ((80, 90), (70, 90), (70,))
    )
    up = whole(80, 70, kind=torch.float32)
    functional.linear(x, weight, bias).backward(up)
    assert torch.equal(x.grad, exact(up, weight)) and torch.equal(weight.grad, exact(up.T, x))
    assert torch.equal(bias.grad, up.sum(0))


@kinds
@pytest.mark.parametrize("size", [LARGE, (33, 65, 64), (1, 300, 300), (300, 300, 1)], ids=str)
def test_a_product_does_not_depend_on_where_its_operands_lie(kind, size):
    m, k, n = size
    pair = drawn(m, k, kind=kind), drawn(k, n, kind=kind)
    wanted = pair[0] @ pair[1]
    for off in range(1, 17):
        a, b = (
            torch.empty(one.numel() + off, dtype=kind)[off:].view(one.shape).copy_(one)
            for one in pair
        )
        assert torch.equal(a @ b, wanted)


@kinds
def test_threads_change_no_bit_of_a_product_from_the_least_on(kind):
    a, b, three = (drawn(*shape, kind=kind) for shape in ((70, 300), (300, 90), (8, 70, 300)))
    threads = torch.get_num_threads()

    def products() -> list[torch.Tensor]:
        return [a @ b, torch.addmm(b[0], a, b), torch.bmm(three, b.expand(8, -1, -1))]

    try:
        torch.set_num_threads(1)
        wanted = products()
        for count in (2, 3):
            torch.set_num_threads(count)
            assert all(map(torch.equal, products(), wanted))
    finally:
        torch.set_num_threads(threads)
