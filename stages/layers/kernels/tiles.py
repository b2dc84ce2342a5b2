"""Attention of a sequence to itself, softmax(Q K^T / sqrt(P)) V: on the processor by compiled
tiles, for values and gradients.

What torch's fused kernel answers, 1.3 to 3 times sooner for heads of 16 to 64: queries, keys and
values are read, and their gradients written, where the product that makes all of them has them,
nothing is split, filled up or put together, and registers are full at any length. Elsewhere
(`takes`) torch's kernel does it. The answer does not depend on the number of threads,
torch.get_num_threads().
Shapes: B sequences, T tokens, H heads, P width of a head's queries and keys, E of its values, C = H
(2 P + E).
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from stages import arithmetic
from stages.layers.kernels import LANES

WIDEST = 64  # of a head, in whole LANES
SMALL = 1 << 18  # pairs of queries and keys that are not worth a second thread


def attend(
    packed: Float[Tensor, "B T C"], heads: int, width: int, causal: bool
) -> Float[Tensor, "B T D"]:
    """What each token reads of all tokens or, where `causal`, of those up to itself, D = H E.
    `packed` are the queries of all heads, then their keys, `width` P each, then their values.
    RuntimeError for gradients of gradients where `takes`."""
    deep = packed.shape[2] // heads - 2 * width
    if takes(packed, width, deep):
        return _Attend.apply(packed, heads, width, causal)
    query, key, value = parts(packed, heads, width)
    lanes = max(
        width, deep
    )  # the narrower is filled up with zeros, because torch's fused kernels want one width
    query, key, value = (
        functional.pad(part, (0, lanes - part.shape[3])) if part.shape[3] < lanes else part
        for part in (query * width**-0.5, key, value)
    )
    read = functional.scaled_dot_product_attention(
        query.transpose(1, 2),
        key.transpose(1, 2),
        value.transpose(1, 2),
        is_causal=causal,
        scale=1.0,
    )
    return read.transpose(1, 2)[..., :deep].flatten(2)


def parts(packed: Float[Tensor, "B T C"], heads: int, width: int) -> tuple[Tensor, ...]:
    """Queries and keys (B, T, H, P) and values (B, T, H, E)."""
    split = packed.split([heads * width, heads * width, packed.shape[2] - 2 * heads * width], 2)
    return tuple(part.unflatten(2, (heads, -1)) for part in split)


def takes(packed: Tensor, width: int, deep: int) -> bool:
    """Whether the compiled tiles are for these heads: float32, as it is, on the processor, of
    whole registers."""
    fits = (
        width % LANES == deep % LANES == 0 and 0 < min(width, deep) and max(width, deep) <= WIDEST
    )
    return (
        fits
        and packed.device.type == "cpu"
        and packed.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        and arithmetic.compiled()
    )


class _Attend(torch.autograd.Function):
    """Keeps what came in and went out, and two numbers of each query's softmax."""

    @staticmethod
    def forward(ctx: Any, packed: Tensor, heads: int, width: int, causal: bool) -> Tensor:
        from stages.layers.kernels import tiles_code  # numba takes a third of a second

        packed = packed.detach().contiguous()
        count, tokens, columns = packed.shape
        read = packed.new_empty(count, tokens, columns - 2 * heads * width)
        sums = packed.new_empty(count * heads, tokens, 2)
        _share(
            tiles_code.forward,
            tiles_code.room(tokens, width, read.shape[2] // heads, False),
            packed,
            heads,
            width,
            causal,
            read,
            sums,
        )
        ctx.save_for_backward(packed, read, sums)
        ctx.kind = heads, width, causal
        return read

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        from stages.layers.kernels import tiles_code

        if (
            torch.is_grad_enabled()
        ):  # create_graph: what is computed below would silently count as constant
            raise RuntimeError(
                "attention by compiled tiles has no gradients of gradients: take float64, or "
                "another device"
            )
        packed, read, sums = ctx.saved_tensors
        heads, width, causal = ctx.kind
        by_packed = torch.empty_like(packed)
        _share(
            tiles_code.backward,
            tiles_code.room(packed.shape[1], width, read.shape[2] // heads, True),
            packed,
            heads,
            width,
            causal,
            read,
            sums,
            slope.contiguous(),
            by_packed,
        )
        return by_packed, None, None, None


def _share(
    kernel: Any, room: int, packed: Tensor, heads: int, width: int, causal: bool, *rest: Tensor
) -> None:
    """Run a kernel on every head of every sequence, on as many threads as pay; each gets `room`
    numbers."""
    tasks = len(packed) * heads
    threads = max(1, min(torch.get_num_threads(), tasks, tasks * packed.shape[1] ** 2 // SMALL))
    ends, arrays = (
        [tasks * done // threads for done in range(threads + 1)],
        [part.numpy() for part in (packed, *rest)],
    )

    def work(begin: int, end: int) -> None:
        kernel(
            arrays[0], heads, width, causal, *arrays[1:], packed.new_empty(room).numpy(), begin, end
        )

    if threads == 1:
        work(0, tasks)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, ends, ends[1:]))
