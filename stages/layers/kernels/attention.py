"""Attention without its matrix on the processor: softmax(s Q K^T) V by compiled tiles, for values
and gradients (thesis equation 3.4).

What torch's fused kernel answers, two to five times sooner for heads of 4 to 32, which that kernel
fills up to whole registers and multiplies in matrices too small for it; and tokens that are none
cost nothing. Elsewhere (`takes`) torch's kernel is the better one. The answer does not depend on
the number of threads, torch.get_num_threads().
Shapes: B sets, Q queries, N keys, H heads, P a head's width, A kinds of a query and K of a memory:
3 where both are the same tokens, else 1 and 2.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from stages import arithmetic

WIDEST = 64  # of a head; torch's kernel likes wider ones
# queries or keys that make a part of their own, so that threads can share a head; at most so many
PART, PARTS = (1024, 8)
SMALL = 1 << 18  # pairs of queries and keys that are not worth a second thread


def takes(tokens: Tensor, width: int) -> bool:
    """Whether heads `width` wide of these tokens are for `attend`: float32, as it is, on the
    processor."""
    return (
        tokens.device.type == "cpu"
        and tokens.dtype == torch.float32
        and 0 < width <= WIDEST
        and not torch.is_autocast_enabled("cpu")
        and arithmetic.compiled()
    )


def attend(
    query: Float[Tensor, "B Q A H P"],
    memory: Float[Tensor, "B N K H P"],
    real: Bool[Tensor, "B N"] | None,
) -> Float[Tensor, "B Q H P"]:
    """What each query reads from the real keys' values (all where None): zeros where there is none.
    Queries are the first of their A kinds, keys and values the last two; both may be the same
    tensor. RuntimeError for gradients of gradients."""
    return _Attend.apply(real, query) if query is memory else _Attend.apply(real, query, memory)


class _Attend(torch.autograd.Function):
    """Keeps what came in and went out, and the logarithm of each query's sum of weights."""

    @staticmethod
    def forward(ctx: Any, real: Tensor | None, *tokens: Tensor) -> Tensor:
        from stages.layers.kernels import attention_code  # numba takes a third of a second

        tokens = tuple(part.detach().contiguous() for part in tokens)
        query, memory = tokens[0], tokens[-1]
        real = torch.ones(memory.shape[:2], dtype=torch.bool) if real is None else real
        read = query.new_zeros(query.shape[:2] + query.shape[3:])
        logs = query.new_zeros(len(query), query.shape[3], query.shape[1])
        _share(
            attention_code.forward,
            attention_code.room(query.shape[1], memory.shape[1], query.shape[4], False),
            query.shape[1],
            query,
            memory,
            real,
            read,
            logs,
        )
        ctx.save_for_backward(*tokens, real, read, logs)
        return read

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        from stages.layers.kernels import attention_code

        if (
            torch.is_grad_enabled()
        ):  # create_graph: what is computed below would silently count as constant
            raise RuntimeError(
                "attention by compiled tiles has no gradients of gradients: take float64, or "
                "another device"
            )
        *tokens, real, read, logs = ctx.saved_tensors
        query, memory = tokens[0], tokens[-1]
        by_memory = torch.zeros_like(memory)
        by_query = read.new_zeros(_parts(memory.shape[1]), *read.shape)
        _share(
            attention_code.backward,
            attention_code.room(query.shape[1], memory.shape[1], query.shape[4], True),
            memory.shape[1],
            query,
            memory,
            real,
            read,
            logs,
            slope.contiguous(),
            by_query,
            by_memory,
        )
        of_query = by_query[0] if len(by_query) == 1 else by_query.sum(0)
        if len(tokens) == 2:
            return None, of_query[:, :, None], by_memory
        by_memory[:, :, 0] = of_query
        return None, by_memory


def _parts(count: int) -> int:
    """Of how many parts each head's work is: a matter of the shapes alone, lest the threads
    should change how sums are grouped."""
    return max(1, min(PARTS, -(-count // PART)))


def _share(
    kernel: Any, room: int, count: int, query: Tensor, memory: Tensor, real: Tensor, *rest: Tensor
) -> None:
    """Run a kernel on every head of every set, whose `count` queries or keys are parted, on as
    many threads as pay; each gets `room` numbers."""
    parts = _parts(count)
    tasks = len(query) * query.shape[3] * parts
    pairs = len(query) * query.shape[1] * memory.shape[1]
    threads = min(torch.get_num_threads(), tasks, max(1, pairs // SMALL))
    arrays = [
        query.numpy(),
        memory.numpy(),
        real.numpy(),
        np.float32(query.shape[4] ** -0.5),
        *(one.numpy() for one in rest),
    ]

    def work(begin: int, end: int) -> None:
        kernel(
            *arrays,
            query.new_empty(room).numpy(),
            torch.empty(-(-memory.shape[1] // 4) * 4, dtype=torch.int64).numpy(),
            begin,
            end,
            parts,
        )

    if threads < 2:
        work(0, tasks)
        return
    ends = [tasks * done // threads for done in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, ends, ends[1:]))
