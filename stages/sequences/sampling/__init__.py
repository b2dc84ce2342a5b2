"""Sampling from a model of sequences in any order (thesis sections 4.2.3-4.2.4, D.3): what samplers
ask, and what they return.

A sampler knows a law by a `Reader` alone: cache.py reads a network, the tests read exact tables.
Every row goes at its own pace: no row waits for another, a finished row leaves the computation.
Passes and token positions are counted per row: figures that know no device. The first `first` steps
of an order are given (the prompt); `permutations.ahead` puts any positions there.
Shapes: B rows asked for, R rows at work, T length, V vocabulary, P bursts, N chains, K steps of a
chain.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional

from stages.errors import InputError
from stages.sequences.sampling.cache import Cache


@runtime_checkable
class Reader(Protocol):
    """A law that has read the accepted tokens of R rows. `ask` is one pass: logits at positions
    `bursts` (R, P) given the accepted tokens, and along `orders` (R, N, K) given also the `drafts`
    before each step. `keep` accepts the first count >= 1 steps of one chain of the last pass
    (tokens (R, K) along it; only the last of them may differ from its draft); `retain` makes row
    i what row rows[i] was."""

    vocabulary: int
    length: int

    def ask(
        self,
        bursts: Tensor | None = None,
        orders: Tensor | None = None,
        drafts: Tensor | None = None,
    ) -> tuple[Tensor | None, Tensor | None]: ...

    def keep(self, choice: Tensor, count: Tensor, tokens: Tensor) -> None: ...

    def retain(self, rows: Tensor) -> None: ...


@runtime_checkable
class Law(Protocol):
    """What answers by itself, without a network: it opens a reader of tokens and orders (B, T)
    whose first steps (B,) are given."""

    def open(self, tokens: Tensor, order: Tensor, first: Tensor) -> Reader: ...


@dataclass
class Sample:
    """tokens (B, T) by position, the order (B, T) in which they were accepted; per row (B,):
    `rounds` that accepted something, `passes` of the network, `positions` that these computed
    (without padding)."""

    tokens: Tensor
    order: Tensor
    rounds: Tensor
    passes: Tensor
    positions: Tensor
    when: Tensor  # (B, T) the round that accepted each step of the order; 0: given


def opened(law: Any, tokens: Tensor, order: Tensor, first: Tensor) -> Reader:
    """A reader of a network or of a law."""
    if isinstance(law, Law):
        return law.open(tokens, order, first)
    return Cache(law, tokens, order, first)


def gumbel(
    shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Standard Gumbel noise: argmax(logits + noise) is a draw from softmax(logits). Of uniform
    doubles, lest its tails be coarse; torch's own exponential draws take more than twice the
    time."""
    uniform = torch.rand(shape, dtype=torch.float64, generator=generator, device=generator.device)
    return uniform.neg_().log1p_().neg_().to(dtype).log_().neg_()


def prompts(tokens: Tensor, order: Tensor, first: int | Tensor) -> Tensor:
    """How many steps of each row are given, (B,). InputError where they do not fit tokens (B, T)
    and orders (B, T)."""
    rows, length = order.shape
    first = torch.as_tensor(first, dtype=torch.int64, device=order.device).expand(rows)
    if tokens.shape != order.shape or (
        rows and not 0 <= int(first.min()) <= int(first.max()) <= length
    ):
        raise InputError(
            "tokens, order and prompt do not fit together",
            expected="(B, T), (B, T), 0 to T given steps",
            found=f"tokens {tuple(tokens.shape)}, order {tuple(order.shape)}, prompts of "
            f"{first.tolist()[:5]}",
        )
    return first


class Rows:
    """The rows at work: order and tokens (R, T), `known` accepted steps (R,), the places `ids`
    that they have in the sample."""

    def __init__(self, law: Any, tokens: Tensor, order: Tensor, first: int | Tensor):
        rows, self.length = order.shape
        first = prompts(tokens, order, first)
        self.order, self.tokens, self.known = order.clone(), tokens.clone(), first.clone()
        self.ids = torch.arange(rows, device=order.device)
        self.sample = Sample(
            tokens.clone(),
            order.clone(),
            *(torch.zeros_like(first) for _ in range(3)),
            torch.zeros_like(order),
        )
        self.when = torch.zeros_like(order)
        self.sample.positions += first  # the prompt's
        self.reader = opened(law, tokens, order, first.clone())
        self.leave()

    def __len__(self) -> int:
        return len(self.ids)

    def remaining(self) -> tuple[Tensor, Tensor]:
        """The positions not yet accepted, in order, (R, K) with K the most of any row; and which
        are real. Padding repeats the last."""
        place = self.known[:, None] + torch.arange(
            self.length - int(self.known.min()), device=self.known.device
        )
        self.place = place.clamp(max=self.length)
        return self.order.gather(1, place.clamp(max=self.length - 1)), place < self.length

    def count(self, passes: int, positions: Tensor | int) -> None:
        """Note passes that the rows at work have made, and positions that these computed."""
        self.sample.passes[self.ids] += passes
        self.sample.positions[self.ids] += positions

    def accept(self, choice: Tensor, count: Tensor, order: Tensor, tokens: Tensor) -> None:
        """Accept the first `count` steps of an order (R, K) of the remaining positions and its
        tokens; then let finished rows go. What is not accepted is the next draft. The reader's
        last pass held this order as chain `choice`."""
        self.reader.keep(choice, count, tokens)
        place = self.place[:, : order.shape[1]]
        self.order = self._put(self.order, place, order)
        self.tokens = self._put(
            self.tokens, order.masked_fill(place >= self.length, self.length), tokens
        )
        steps = torch.arange(self.length, device=count.device)
        rounds = self.sample.rounds[self.ids] + 1
        new = (steps >= self.known[:, None]) & (steps < (self.known + count)[:, None])
        self.when = torch.where(new, rounds[:, None], self.when)
        self.known = self.known + count
        self.sample.rounds[self.ids] += 1
        self.leave()

    def draft(self, order: Tensor, tokens: Tensor) -> Tensor:
        """Note a burst's tokens (R, K) at the remaining positions. A row with one left is finished:
        for the step asked next a burst is the law itself. Returns which rows stay at work."""
        self.tokens = self._put(
            self.tokens, order.masked_fill(self.place >= self.length, self.length), tokens
        )
        last = (self.known == self.length - 1).long()
        self.sample.rounds[self.ids] += last
        self.when[:, -1] = torch.where(last > 0, self.sample.rounds[self.ids], self.when[:, -1])
        self.known = self.known + last
        return self.leave()

    def leave(self) -> Tensor:
        """Finished rows go to the sample; the last rows at work take their places. Returns what
        rows the new ones were."""
        done = self.known >= self.length
        if not done.any():
            return torch.arange(len(done), device=done.device)
        self.sample.tokens[self.ids[done]], self.sample.order[self.ids[done]] = (
            self.tokens[done],
            self.order[done],
        )
        self.sample.when[self.ids[done]] = self.when[done]
        left = int((~done).sum())
        rows = torch.arange(left, device=done.device)
        rows[done[:left]] = left + (~done[left:]).nonzero()[:, 0]
        self.reader.retain(rows)
        self.order, self.tokens, self.when, self.known, self.ids = (
            part[rows] for part in (self.order, self.tokens, self.when, self.known, self.ids)
        )
        return rows

    def _put(self, into: Tensor, place: Tensor, values: Tensor) -> Tensor:
        """`into` (R, T) with values at places; place T is thrown away."""
        return functional.pad(into, (0, 1)).scatter(1, place, values)[:, : self.length]
