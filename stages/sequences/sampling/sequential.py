"""Autoregression in any order, a token a pass (thesis section 4.2.1), and the conditional density
at every position (section 4.2.3).

Shapes: B batch, T length, V vocabulary.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional

from stages.sequences import permutations
from stages.sequences.sampling import Law, Rows, Sample, gumbel, prompts
from stages.sequences.sampling.cache import Column


@torch.inference_mode()
def sequential(
    law: Any,
    order: Int64[Tensor, "B T"],
    tokens: Int64[Tensor, "B T"],
    generator: torch.Generator,
    first: int | Tensor = 0,
    cache: bool = True,
    noise: Float[Tensor, "B T V"] | None = None,
) -> Sample:
    """Draw the tokens after the first `first` steps of each order, one a pass; those before are
    read from `tokens` (by position).

    Without `cache` a network computes the whole prefix at every pass. `noise` (Gumbel, by position)
    makes the sample a function of it.
    """
    if isinstance(law, Law):
        return _asked(law, order, tokens, generator, first, noise)
    first, length = prompts(tokens, order, first), order.shape[1]
    ids = first.argsort(stable=True)[
        : int((first < length).sum())
    ]  # who starts later joins later: all march in step
    steps = length - first
    computed = (
        torch.full_like(first, length)
        if cache
        else (length * (length + 1) - first * (first + 1)) // 2
    )
    rounds = torch.arange(1, length + 1, device=order.device) - first[:, None]
    sample = Sample(
        tokens.clone(), order.clone(), steps, steps.clone(), computed, rounds.clamp(min=0)
    )
    if len(ids):
        reader = Column(law, order[ids]) if cache else _Uncached(law, order[ids])
        starts, orders = first[ids], order[ids]
        along = tokens[ids].gather(1, orders).T.contiguous()  # T R
        by_step = along.unbind(0)

        def draw(logits: Tensor, step: int | Tensor) -> Tensor:
            some = ids[: len(logits)]
            drawn = (
                gumbel(tuple(logits.shape), generator, logits.dtype)
                if noise is None
                else noise[some, order[some, step]]
            )
            return (logits + drawn).argmax(1)

        along.scatter_(0, starts[None], draw(reader.open(along, starts), starts)[None])
        for step, rows in _march(starts.tolist(), length):
            seen, made = (
                by_step[place] if rows == len(ids) else by_step[place][:rows]
                for place in (step - 1, step)
            )
            made.copy_(draw(reader.step(seen, step), step))
        sample.tokens[ids] = torch.empty_like(orders).scatter(1, orders, along.T)
    return sample


def _march(starts: list[int], length: int) -> Iterator[tuple[int, int]]:
    """Every step after the first start, and how many rows have started before it."""
    rows = 0
    for step in range(starts[0] + 1, length):
        while rows < len(starts) and starts[rows] < step:
            rows += 1
        yield step, rows


class _Uncached:
    """The training forward in the place of a Column: the whole prefix at every step."""

    def __init__(self, model: nn.Module, order: Tensor):
        self.model, self.order, self.tokens = model, order, torch.zeros_like(order)

    def open(self, along: Tensor, first: Tensor) -> Tensor:
        """Logits (R, V) of the step after each prompt."""
        self.tokens.scatter_(1, self.order, along.T)
        return self.model(self.tokens, self.order[:, : int(first.max()) + 1])[
            torch.arange(len(first), device=first.device), first
        ]

    def step(self, seen: Tensor, step: int) -> Tensor:
        """Logits (M, V) at a step of the first M rows, `seen` at the one before."""
        order, tokens = self.order[: len(seen), : step + 1], self.tokens[: len(seen)]
        tokens.scatter_(1, order[:, step - 1 : step], seen[:, None])
        return self.model(tokens, order)[:, step]


def _asked(
    law,
    order: Tensor,
    tokens: Tensor,
    generator: torch.Generator,
    first: int | Tensor,
    noise: Tensor | None,
) -> Sample:
    """The same of a law that opens its own reader."""
    rows = Rows(law, tokens, order, first)
    while len(rows):
        remaining, _ = rows.remaining()
        position = remaining[:, :1]
        logits = rows.reader.ask(orders=position[:, None])[1][:, 0, 0]
        rows.count(1, 1)
        drawn = (
            gumbel(tuple(logits.shape), generator, logits.dtype)
            if noise is None
            else noise[rows.ids, position[:, 0]]
        )
        one = torch.ones_like(rows.known)
        rows.accept(one - 1, one, position, (logits + drawn).argmax(1, keepdim=True))
    return rows.sample


@torch.inference_mode()
def density(
    law: Any, tokens: Int64[Tensor, "B T"], given: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T V"]:
    """The law of the token at every position, conditioned on the given ones and nothing else, in
    one pass; certainty at the given ones."""
    batch, length = tokens.shape
    plain = permutations.left_to_right(batch, length).to(tokens.device)
    rows = Rows(law, tokens, permutations.ahead(plain, given), given.sum(1))
    known = functional.one_hot(tokens, rows.reader.vocabulary)
    if not len(rows):
        return known.float()
    remaining, _ = rows.remaining()
    found = rows.reader.ask(bursts=remaining)[0].softmax(2)
    law_at = known.to(found.dtype)
    law_at[rows.ids[:, None], remaining] = found
    return law_at
