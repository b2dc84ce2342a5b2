"""Attention whose logits an MLP makes of each pair's dot products and difference (form "post" of
layers/relative.py): on the processor by compiled code, for values and gradients.

Torch's own products want a pair's few numbers side by side, copy them there and back, and keep a
cache's worth of them between one operation and the next; here a layer of the MLP is a product of
its weights with rows of pairs. Elsewhere (`takes`) torch answers. The answer does not depend on the
number of threads, torch.get_num_threads().
Shapes: B sets, Q queries, N keys, X axes, A heads, h numbers a head, H = A h, G = 2 H.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from stages import arithmetic
from stages.layers.kernels import LANES

SMALL = 1 << 14  # pairs that are not worth a second thread
MOST = 1 << 12  # keys of a tile: its rows grow with them


def takes(query: Tensor, query_x: Tensor, key_x: Tensor, hidden: int) -> bool:
    """Whether the compiled code is for these: float32, as it is, on the processor, hidden numbers
    in whole registers, places that nothing is learned of."""
    return (
        query.device.type == "cpu"
        and query.dtype == query_x.dtype == torch.float32
        and not (torch.is_grad_enabled() and (query_x.requires_grad or key_x.requires_grad))
        and not torch.is_autocast_enabled("cpu")
        and hidden % LANES == 0
        and key_x.shape[1] <= MOST
        and arithmetic.compiled()
    )


def attend(
    query: Float[Tensor, "B Q H"],
    packed: Float[Tensor, "B N G"],
    real: Bool[Tensor, "B N"],
    query_x: Float[Tensor, "B Q X"],
    key_x: Float[Tensor, "B N X"],
    heads: int,
    turned: bool,
    layers: list[nn.Linear],
) -> Float[Tensor, "B Q H"]:
    """What queries read of the `real` keys, zeros where none is. `packed` are the keys of all
    heads, then their values; `layers` the MLP's; `turned`: it is told a difference's length."""
    parameters = [part for layer in layers for part in (layer.weight, layer.bias)]
    hidden = layers[0].out_features
    given = (query, packed, real, query_x, key_x, heads, hidden, turned, *parameters)
    return _Attend.apply(*given)  # type: ignore[no-untyped-call]  # torch's own


class _Attend(torch.autograd.Function):
    """Keeps what came in, and two numbers of each query's softmax."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        packed: Tensor,
        real: Tensor,
        query_x: Tensor,
        key_x: Tensor,
        heads: int,
        hidden: int,
        turned: bool,
        *parameters: Tensor,
    ) -> Tensor:
        from stages.layers.kernels import pairs_code  # numba takes a third of a second

        given = [
            one.detach().contiguous()
            for one in (
                query, packed, real, query_x, key_x, torch.cat([p.flatten() for p in parameters])
            )
        ]  # fmt: skip
        read = torch.empty_like(given[0])
        sums = query.new_empty(len(query), heads, query.shape[1], 2)
        kind = heads, hidden, turned
        _share(pairs_code.forward, _room(given, kind, False), given, kind, read, sums)
        ctx.save_for_backward(*given, sums)
        ctx.kind, ctx.shapes = kind, [part.shape for part in parameters]
        return read

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        from stages.layers.kernels import pairs_code

        *given, sums = ctx.saved_tensors
        by_query, by_packed = torch.empty_like(given[0]), torch.empty_like(given[1])
        by_parameters = slope.new_empty(len(slope), given[5].numel())
        found = (sums, slope.contiguous(), by_query, by_packed, by_parameters)
        _share(pairs_code.backward, _room(given, ctx.kind, True), given, ctx.kind, *found)
        whole = by_parameters.sum(0).split([shape.numel() for shape in ctx.shapes])
        parts = [part.reshape(shape) for part, shape in zip(whole, ctx.shapes, strict=True)]
        return by_query, by_packed, *[None] * 6, *parts


def _room(given: list[Tensor], kind: tuple[int, int, bool], back: bool) -> int:
    """The numbers that each thread needs."""
    from stages.layers.kernels import pairs_code

    query, packed, _, query_x, *_ = given
    heads, hidden, turned = kind
    axes, width = 1 if turned else query_x.shape[2], query.shape[2] // heads
    return pairs_code.room(query.shape[1], packed.shape[1], heads, width, axes, hidden, back)


def _share(
    kernel: Any, room: int, given: list[Tensor], kind: tuple[int, int, bool], *rest: Tensor
) -> None:
    """Run a kernel on every set, on as many threads as pay; each gets `room` numbers."""
    sets = len(given[0])
    pairs = sets * given[0].shape[1] * given[1].shape[1]
    threads = max(1, min(torch.get_num_threads(), sets, pairs // SMALL))
    ends = [sets * done // threads for done in range(threads + 1)]
    arrays, found = [one.numpy() for one in given], [one.numpy() for one in rest]

    def work(begin: int, end: int) -> None:
        kernel(*arrays, *kind, *found, given[0].new_empty(room).numpy(), begin, end)

    if threads == 1:
        work(0, sets)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, ends, ends[1:]))
