"""The functions of one number that replace torch's own: exact values in every shape and layout,
refusals, gradients, and bits that follow from the numbers alone. Products: test_products.py.
"""

import decimal
import math
import warnings

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from stages import arithmetic
from stages.arithmetic import kernels

pytestmark = pytest.mark.skipif(
    arithmetic.name() != arithmetic.COMMON,
    reason="torch computes with its own kernels: native, or no AVX2",
)
UNARY = [(name, kind) for name, (_, kinds) in kernels.SINGLE.items() for kind in kinds]
unary = pytest.mark.parametrize("name, kind", UNARY, ids=str)
each = pytest.mark.parametrize("name", kernels.SINGLE)
LAYOUTS = {
    "plain": lambda x: x,
    "empty": lambda x: x[:0],
    "one number": lambda x: x[1, 2],
    "strided": lambda x: x[1::3, ::2],
    "transposed": lambda x: x.T,
    "columns": lambda x: x[:, 3],
    "expanded": lambda x: x[:1].expand(9, -1),
    "off by one": lambda x: x.reshape(-1)[1:],
    "permuted": lambda x: x.reshape(4, 15, 20).permute(2, 0, 1),
}


def drawn(*shape: int, kind: torch.dtype = torch.float64, high: float = 0.99) -> torch.Tensor:
    """Numbers from 0.01 on, where every one of the functions has an answer."""
    uniform = np.random.default_rng(sum(shape)).random(shape)
    return torch.from_numpy(0.01 + (high - 0.01) * uniform).to(kind)


def expected_of(name: str, x: torch.Tensor) -> np.ndarray:
    """NumPy's own answer, of a plain copy."""
    with np.errstate(all="ignore"):
        return kernels.SINGLE[name][0](x.detach().contiguous().clone().numpy())


def same(got: torch.Tensor, wanted: np.ndarray) -> bool:
    """Whether shape, type and every number agree."""
    mine = got.detach().numpy()
    alike = mine.shape == wanted.shape and mine.dtype == wanted.dtype
    return alike and np.array_equal(mine, wanted, equal_nan=True)


@unary
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_answer_is_numpys_in_every_layout(name, kind, layout):
    x = LAYOUTS[layout](drawn(40, 30, kind=kind))
    wanted = expected_of(name, x)
    assert same(getattr(torch, name)(x), wanted) and same(getattr(x, name)(), wanted)


@unary
@pytest.mark.parametrize("layout", [key for key in LAYOUTS if key != "expanded"])
def test_in_place_it_writes_there_and_nowhere_else(name, kind, layout):
    base = drawn(40, 30, kind=kind)
    before, view = base.clone(), LAYOUTS[layout](base)
    wanted, version = expected_of(name, view), view._version
    got = getattr(view, f"{name}_")()
    assert got is view and same(view, wanted) and view._version == version + 1
    LAYOUTS[layout](base).copy_(LAYOUTS[layout](before))
    assert torch.equal(base, before)


@unary
def test_it_is_right_by_another_reckoning(name, kind):
    x = drawn(500, kind=kind)
    wanted = [getattr(math, name)(value) for value in x.tolist()]
    tolerance = 4 * torch.finfo(kind).eps
    np.testing.assert_allclose(getattr(torch, name)(x).numpy(), wanted, rtol=tolerance)


@unary
def test_where_there_is_no_answer_it_is_silently_no_number(name, kind):
    odd = torch.tensor(
        [-1.5, -1.0, -0.0, 0.0, 1.0, 2.0, math.inf, -math.inf, math.nan, 5e-324, 1e-40], dtype=kind
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = getattr(torch, name)(odd)
    assert same(got, expected_of(name, odd)) and got[8].isnan()
    lost = {
        "sqrt": (0, 1, 7),
        "log": (0, 1, 7),
        "asin": (0, 5, 6, 7),
        "acos": (0, 5, 6, 7),
        "tan": (6, 7),
        "atan": (),
    }[name]
    assert got.isnan().nonzero().flatten().tolist() == [*lost, 8]
    if name not in ("log", "acos"):
        assert got[2:4].signbit().tolist() == [True, False], "zero keeps its sign"


def test_roots_are_rounded_correctly():
    x = torch.cat((drawn(3000, kind=torch.float32, high=9), torch.tensor([1e-45, 3e38, 2**-126])))
    assert torch.equal(x.sqrt(), x.double().sqrt().float()), "float64 has the digits for it"
    y = drawn(300, high=9)
    with decimal.localcontext() as context:
        context.prec = 60
        assert y.sqrt().tolist() == [float(decimal.Decimal(one).sqrt()) for one in y.tolist()]


@each
def test_other_types_stay_torchs_own(name):
    function = getattr(torch, name)
    assert function(torch.tensor([0, 1])).dtype == torch.float32
    assert function(torch.tensor([True])).dtype == torch.float32
    assert function(torch.tensor([0.3 + 0.1j])).dtype == torch.complex64
    half = drawn(50, kind=torch.bfloat16)
    assert function(half).dtype == torch.bfloat16
    assert torch.allclose(function(half).double(), function(half.double()), rtol=1e-2)


@each
def test_what_torch_refuses_it_still_refuses(name):
    with pytest.raises(RuntimeError, match="can't be cast"):
        getattr(torch.tensor([1, 2]), f"{name}_")()
    with pytest.raises(RuntimeError, match="single memory location"):
        getattr(torch.ones(1).expand(4), f"{name}_")()
    with pytest.raises(RuntimeError, match="leaf Variable"):
        getattr(drawn(4).requires_grad_(), f"{name}_")()


@each
def test_gradients_are_right(name):
    function, x = getattr(torch, name), drawn(3, 4).requires_grad_()
    assert gradcheck(function, x) and torch.autograd.gradgradcheck(function, x)
    assert gradcheck(lambda y: getattr(y.clone(), f"{name}_")(), x)
    wanted = torch.autograd.grad(function(x).sum(), x)[0]
    rows = torch.func.vmap(torch.func.grad(lambda row: function(row).sum()))(x.detach())
    assert torch.equal(rows, wanted)
    with torch.no_grad():
        assert not function(x).requires_grad and same(function(x), expected_of(name, x))
    with torch.inference_mode():
        assert same(function(x), expected_of(name, x))


@pytest.mark.parametrize("kind", [torch.float32, torch.float64], ids=str)
def test_threads_and_places_change_no_bit(kind):
    threads, x = torch.get_num_threads(), drawn(200_000, kind=kind)
    names = [name for name, one in UNARY if one == kind]
    try:
        torch.set_num_threads(1)
        wanted = [getattr(torch, name)(x) for name in names]
        for off in (1, 3):
            torch.set_num_threads(off)
            moved = torch.empty(len(x) + off, dtype=kind)[off:].copy_(x)
            assert all(
                torch.equal(getattr(torch, name)(moved), one)
                for name, one in zip(names, wanted, strict=True)
            )
    finally:
        torch.set_num_threads(threads)


def test_the_ways_that_do_not_lead_here_are_those_that_are_named(monkeypatch):
    """kernels.py names them; one that leads here after all is to be struck out there."""
    passed, filled = [], kernels._filled

    def noted(function, x, to):
        passed.append(function)
        return filled(function, x, to)

    monkeypatch.setattr(kernels, "_filled", noted)
    x = drawn(9)
    for way in (
        torch.sqrt,
        torch.Tensor.sqrt,
        lambda y: torch._foreach_sqrt([y]),
        lambda y: y.clone().sqrt_(),
    ):
        passed.clear()
        way(x)
        assert passed == [np.sqrt]
    passed.clear()
    for way in (
        lambda y: y**0.5,
        lambda y: y.pow(0.5),
        lambda y: y**-0.5,
        lambda y: torch.sqrt(y, out=torch.empty_like(y)),
    ):
        way(x)
    assert passed == []
    assert all(word in kernels.__doc__ for word in ("** 0.5", ".pow(0.5)", "out="))
