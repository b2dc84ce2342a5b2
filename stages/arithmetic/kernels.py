"""What no setting makes alike in torch, or makes slow: square roots and their kin, and products of
matrices, on the processor.

MKL's roots differ between makers whatever MKL_CBWR says: they start from the processor's own guess
of 1/sqrt(x) (the instruction RSQRTPS), whose bits each maker chooses. NumPy's are the correctly
rounded ones of IEEE 754. MKL's products under MKL_CBWR=COMPATIBLE are alike everywhere and take two
to three times as long as OpenBLAS' for AVX2, which NumPy brings. So these go through NumPy, forward
and backward: float32 and float64 on the processor. All else is torch's own, small products too
(which follow the number of threads: the protocol fixes it).

Not reached: `x ** 0.5`, `x.pow(0.5)`, the backward pass of `x ** 1.5` and every `out=` go to MKL's
roots by another way, whose last digits are the maker's. Write `.sqrt()`, without `out=`.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.library import Library, get_kernel

from stages import arithmetic

FLOATS = (torch.float32, torch.float64)
LEAST = 1 << 16  # multiplications: below, the way to NumPy costs more than it saves
_LIBRARY: list[Library] = []  # kept for as long as the process lives; torch forgets kernels with it


# Which functions of one number go through NumPy, for which types: those of MKL that came out
# otherwise on an emulated Intel processor.
SINGLE: dict[str, tuple[np.ufunc, tuple[torch.dtype, ...]]] = {
    "sqrt": (np.sqrt, FLOATS),
    "log": (np.log, (torch.float64,)),
    "tan": (np.tan, FLOATS),
    "asin": (np.arcsin, FLOATS),
    "acos": (np.arccos, FLOATS),
    "atan": (np.arctan, FLOATS),
}


def install() -> None:
    """Replace the kernels, once a process."""
    if _LIBRARY:
        return
    library, cpu = Library("aten", "IMPL"), torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    _LIBRARY.append(library)
    made: dict[str, Callable[..., Callable[..., Tensor]]] = {
        "mm": partial(_product, 2),
        "bmm": partial(_product, 3),
        "addmm": _sum_and_product,
    }
    for name, (function, kinds) in SINGLE.items():
        made |= {
            name: partial(_of_one, function, kinds),
            f"{name}_": partial(_in_place, function, kinds),
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch tells that a kernel is replaced: it is meant to be
        for name, make in made.items():
            library.impl(name, make(_own(name, cpu)), "CPU", allow_override=True)


def _own(name: str, cpu: Any) -> Callable[..., Tensor]:
    kernel = get_kernel(f"aten::{name}", "CPU")
    return lambda *arguments, **more: kernel.call_boxed(cpu, *arguments, **more)


def _of_one(
    function: np.ufunc, kinds: tuple[torch.dtype, ...], own: Callable[..., Tensor]
) -> Callable[[Tensor], Tensor]:
    def answer(x: Tensor) -> Tensor:
        return _filled(function, x, torch.empty_like(x)) if x.dtype in kinds else own(x)

    return answer


def _in_place(
    function: np.ufunc, kinds: tuple[torch.dtype, ...], own: Callable[..., Tensor]
) -> Callable[[Tensor], Tensor]:
    def answer(x: Tensor) -> Tensor:
        if x.dtype not in kinds or _twofold(x):
            return own(x)
        return _filled(function, x, x)

    return answer


def _twofold(x: Tensor) -> bool:
    """Whether elements share a place in memory (expanded): torch refuses to write there."""
    return any(step == 0 and size > 1 for step, size in zip(x.stride(), x.shape, strict=True))


def _filled(function: np.ufunc, x: Tensor, to: Tensor) -> Tensor:
    with np.errstate(
        all="ignore"
    ):  # of what has no answer: no number or infinity, silently, as torch has it
        function(x.detach().numpy(), out=to.detach().numpy())
    return to


def _worth(rank: int, a: Tensor, b: Tensor) -> bool:
    """Whether a product of tensors of `rank` is for NumPy: a matter of types and shapes alone.

    What cannot be multiplied is torch's, to say so."""
    return (
        a.dtype in FLOATS
        and a.dtype == b.dtype
        and a.dim() == b.dim() == rank
        and a.shape[-1] == b.shape[-2]
        and a.shape[:-2] == b.shape[:-2]
        and a.shape[-2] * a.shape[-1] * b.shape[-1] >= LEAST
    )


def _multiplied(a: Tensor, b: Tensor) -> Tensor:
    product = torch.empty((*a.shape[:-1], b.shape[-1]), dtype=a.dtype)
    np.matmul(a.detach().numpy(), b.detach().numpy(), out=product.numpy())
    return product


def _product(rank: int, own: Callable[..., Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def product(a: Tensor, b: Tensor) -> Tensor:
        return _multiplied(a, b) if _worth(rank, a, b) else own(a, b)

    return product


def _sum_and_product(own: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def addmm(c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        if beta != 1 or alpha != 1 or c.dtype != a.dtype or not _worth(2, a, b):
            return own(c, a, b, beta=beta, alpha=alpha)
        return _multiplied(a, b).add_(c)

    return addmm


if arithmetic.name() == arithmetic.COMMON:
    install()
