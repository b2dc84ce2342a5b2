"""Keys and values of the accepted tokens, rows of a batch each as far as it has come (thesis
section D.3, equation D.11 as corrected).

A pass may hold three kinds of steps at once. The prompt, in the first pass: causal, and remembered.
Bursts: from the last accepted token to any position asked for; each sees the memory and itself,
softmax([Q K1^T, diag(q k)] / sqrt(d)), and is forgotten (the print has q v and no root). Chains:
drafts along an order, causal; the accepted steps of one chain are then kept. So a draft and the
check of the last one can share a pass, and a burst's logits are those of the position asked next.
Memory is one buffer made once. A single chain is written into it in place; a finished row's place
is taken by the last row (one row copied). Rows that march in step, a token a pass, need less: a
Column.
Shapes: R rows at work, S steps remembered, P bursts, N chains, K steps of a chain, T length, V
vocabulary, H heads.
"""

import math
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from stages.sequences.models.sigma_gpt import SigmaGPT
from stages.sequences.sampling.lean import Lean


class Cache:
    """A SigmaGPT as a reader (sampling/__init__.py). `order[:, :first]` are the given positions,
    `tokens` (R, T) by position."""

    if TYPE_CHECKING:
        given: tuple[Tensor, ...] | None

    def __init__(
        self,
        model: SigmaGPT,
        tokens: Int64[Tensor, "R T"],
        order: Int64[Tensor, "R T"],
        first: Int64[Tensor, " R"],
    ):
        self.lean, self.vocabulary, self.length = Lean(model), model.vocabulary, order.shape[1]
        self.memory = memory(
            self.lean, len(order), self.length + 1
        )  # one place more than there are steps: padding is written there
        self.room = self.memory.new_empty(0)
        self.known = torch.zeros_like(first)
        self.token, self.position = (
            torch.zeros_like(first),
            torch.full_like(first, -1),
        )  # the last accepted one; the start
        self.given = None
        if len(first) and first.max() > 0:
            order = order[:, : int(first.max())]
            self.given = (tokens.gather(1, order), order, first)

    @torch.inference_mode()
    def ask(
        self,
        bursts: Int64[Tensor, "R P"] | None = None,
        orders: Int64[Tensor, "R N K"] | None = None,
        drafts: Int64[Tensor, "R N K"] | None = None,
    ) -> tuple[Float[Tensor, "R P V"] | None, Float[Tensor, "R N K V"] | None]:
        """One pass: logits at every position of `bursts` given the accepted tokens, and at every
        step of the chains, each given also the drafts before it. Drafts may be left out of
        chains of one step."""
        parts: list[Any]
        parts, widths = [], []
        if self.given is not None:
            tokens, order, first = self.given
            parts.append(self._chained(tokens, order))
            last = (first - 1).clamp(min=0)[:, None]
            self.known = first
            self.token = torch.where(first > 0, tokens.gather(1, last)[:, 0], self.token)
            self.position = torch.where(first > 0, order.gather(1, last)[:, 0], self.position)
        widths.append(parts[0][0].shape[1] if parts else 0)
        if bursts is not None:
            parts.append(
                (
                    self.token[:, None].expand_as(bursts),
                    self.position[:, None].expand_as(bursts),
                    bursts,
                )
            )
        widths.append(0 if bursts is None else bursts.shape[1])
        if orders is not None:
            parts.append(
                [
                    part.flatten(1)
                    for part in self._chained(orders if drafts is None else drafts, orders)
                ]
            )
        widths.append(0 if orders is None else orders.shape[1] * orders.shape[2])
        pass_ = _Pass(self, widths, 1 if orders is None else orders.shape[1])
        read = [
            torch.cat(part, 1) if len(part) > 1 else part[0] for part in zip(*parts, strict=True)
        ]
        seen, own, target = read
        x = self.lean.run(
            seen.flatten(), self.lean.places(own, target).flatten(0, 1), pass_.mix
        ).view(*seen.shape, -1)
        logits = self.lean.answer(x[:, widths[0] :].flatten(0, 1)).unflatten(
            0, (len(seen), -1)
        )  # of the prompt nothing is asked
        self.given, self.last = None, (orders, pass_.fresh)
        burst, chain = logits.split(widths[1:], 1)
        return None if bursts is None else burst, None if orders is None else chain.unflatten(
            1, orders.shape[1:]
        )

    def keep(
        self, choice: Int64[Tensor, " R"], count: Int64[Tensor, " R"], tokens: Int64[Tensor, "R K"]
    ) -> None:
        """Accept the first `count` >= 1 steps of the chosen chain of the last pass; `tokens` along
        it. The drafts of all but the last of them must have been those tokens; the last may be
        another one."""
        orders, fresh = self.last
        row = torch.arange(len(choice), device=choice.device)
        if orders.shape[1] > 1:
            place = (
                self.known[:, None] + torch.arange(orders.shape[2], device=choice.device)
            ).clamp(max=self.length)
            for kept, made in zip(self.memory, fresh, strict=True):
                kept[row[:, None], :, :, place] = made[row, choice]
        self.known = self.known + count
        self.token = tokens.gather(1, count[:, None] - 1)[:, 0]
        self.position = orders[row, choice, count - 1]

    def retain(self, rows: Int64[Tensor, " M"]) -> None:
        """Row i is now what row rows[i] was; rows that stay where they are cost nothing."""
        moved = (rows != torch.arange(len(rows), device=rows.device)).nonzero()[:, 0]
        if len(moved):
            self.memory[:, moved] = self.memory[:, rows[moved]]
        self.memory = self.memory[:, : len(rows)]
        self.known, self.token, self.position = (
            self.known[rows],
            self.token[rows],
            self.position[rows],
        )
        if self.given is not None:
            self.given = tuple(part[rows] for part in self.given)

    def _chained(self, tokens: Tensor, order: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What each step of chains (R, [N,] K) reads: the token and the position before it, and
        the position asked for."""

        def before(value: Tensor, start: Tensor) -> Tensor:
            first = start.view(-1, *[1] * (value.dim() - 1)).expand(*value.shape[:-1], 1)
            return torch.cat((first, value[..., :-1]), -1)

        return before(tokens, self.token), before(order, self.position), order


class _Pass:
    """The attention of one pass: masks are made once for all blocks."""

    def __init__(self, cache: Cache, widths: list[int], chains: int):
        self.cache, self.widths, self.chains = cache, widths, chains
        self.fresh: list[
            Tensor
        ] = []  # keys and values (R, N, K, 2, H, L) of several chains, block by block
        known, steps = cache.known, widths[2] // chains
        self.deepest, self.steps = int(known.max()), steps
        self.even = self.deepest == int(known.min())
        self.row, step = (
            torch.arange(len(known), device=known.device)[:, None],
            torch.arange(steps, device=known.device),
        )
        self.place = (known[:, None] + step).clamp(
            max=cache.length
        )  # R K: where a single chain is written
        past = torch.arange(self.deepest, device=known.device) < known[:, None]  # R S: remembered
        self.hole = None if self.even else ~past
        if chains > 1 and self.deepest:
            inside = (step <= step[:, None]).expand(len(known), -1, -1)
            self.seen = torch.cat(
                (past[:, None].expand(-1, steps, -1), inside), 2
            ).repeat_interleave(chains, 0)[:, None]  # RN 1 K S+K
        elif chains == 1 and (steps > 1 or not self.even):
            span = torch.arange(min(self.deepest + steps, cache.length + 1), device=known.device)
            self.seen = (span <= self.place[:, :, None])[:, None]  # R 1 K S+K
        else:
            self.seen = None

    def mix(self, index: int, parts: Tensor) -> Tensor:
        """(R (prompt + bursts + chains), 3, H, L) -> (R, prompt + bursts + chains, H, L)."""
        memory, mixed, parts = self.cache.memory[index], [], parts.unflatten(0, (len(self.row), -1))
        prompt, burst, chain = parts.split(self.widths, 1)
        if self.widths[0]:
            memory[..., : self.widths[0], :] = prompt[:, :, 1:].permute(0, 2, 3, 1, 4)
            mixed.append(self._attend(*prompt.unbind(2)))
        if self.widths[1]:
            mixed.append(self._burst(burst, memory[..., : self.deepest, :]))
        if self.widths[2]:
            mixed.append((self._single if self.chains == 1 else self._several)(chain, memory))
        return torch.cat(mixed, 1) if len(mixed) > 1 else mixed[0]

    def _burst(self, parts: Tensor, memory: Tensor) -> Tensor:
        query, key, value = parts.unbind(2)
        own = (query * key).sum(3, keepdim=True).transpose(1, 2)  # R H P 1
        score = query.transpose(1, 2) @ memory[:, 0].transpose(2, 3)  # R H P S
        if self.hole is not None:
            score = score.masked_fill(self.hole[:, None, None], -torch.inf)
        weight = torch.cat((score, own), 3).mul_(self.cache.lean.scale).softmax(3)
        found = weight[..., :-1] @ memory[:, 1] + weight[..., -1:] * value.transpose(1, 2)
        return found.transpose(1, 2)

    def _single(self, parts: Tensor, memory: Tensor) -> Tensor:
        end = self.deepest + self.steps
        if self.even:
            memory[..., self.deepest : end, :] = parts[:, :, 1:].permute(0, 2, 3, 1, 4)
        else:
            memory[self.row, :, :, self.place] = parts[:, :, 1:]
        if not self.deepest:
            return self._attend(*parts.unbind(2))
        return attend(
            parts[:, :, 0].transpose(1, 2),
            memory[:, 0, :, :end],
            memory[:, 1, :, :end],
            self.cache.lean.scale,
            self.seen,
        )

    def _several(self, parts: Tensor, memory: Tensor) -> Tensor:
        parts = parts.unflatten(1, (self.chains, -1))
        self.fresh.append(parts[:, :, :, 1:])
        query = parts[:, :, :, 0].transpose(2, 3).flatten(0, 1)  # RN H K L
        fresh: Any = parts[:, :, :, 1:].permute(0, 1, 3, 4, 2, 5)  # R N 2 H K L
        if not self.deepest:
            found = attend(
                query, *fresh.flatten(0, 1).unbind(1), self.cache.lean.scale, causal=True
            )
        else:
            longer: Any = self._room(*fresh.shape[:4], self.deepest + self.steps, fresh.shape[5])
            longer[..., : self.deepest, :] = memory[:, None, ..., : self.deepest, :]
            longer[..., self.deepest :, :] = fresh
            found = attend(query, *longer.flatten(0, 1).unbind(1), self.cache.lean.scale, self.seen)
        return found.reshape(len(parts), -1, *found.shape[2:])

    def _room(self, *shape: int) -> Tensor:
        """A buffer that all blocks and passes share: new memory costs more than what is written
        there."""
        cache, size = self.cache, math.prod(shape)
        if cache.room.numel() < size:
            cache.room = cache.memory.new_empty(size)
        return cache.room[:size].view(shape)

    def _attend(self, query: Any, key: Any, value: Any) -> Tensor:
        """A chain with nothing before it, (R, K, H, L) -> alike."""
        return attend(
            *(part.transpose(1, 2) for part in (query, key, value)),
            self.cache.lean.scale,
            causal=True,
        )


def memory(lean: Lean, rows: int, length: int) -> Tensor:
    """Room for keys and values, (blocks, R, 2, H, T, L): heads before steps, so that products
    over rows and heads copy nothing."""
    return lean.layers[0].inward.new_zeros(
        len(lean.layers), rows, 2, lean.heads, length, lean.lanes
    )


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    mask: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    """Attention, (R, H, K, L) with keys and values (R, H, S, L) -> (R, K, H, L)."""
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=causal, scale=scale
    ).transpose(1, 2)


class Column:
    """Rows that march in step, a token a pass: step s of every row lies at place s of the memory.
    `order` (R, T) with rows that start first in front; a row joins when its prompt ends. What a
    step needs is laid out beforehand: at batch 1 even views cost time."""

    @torch.inference_mode()
    def __init__(self, model: SigmaGPT, order: Int64[Tensor, "R T"]):
        self.lean = Lean(model)
        self.places = self.lean.places(
            functional.pad(order[:, :-1], (1, 0), value=-1).T, order.T
        )  # T R W
        self.memory = memory(self.lean, *order.shape).movedim(
            2, 0
        )  # keys and values (blocks, R, H, T, L)
        self.layers = list(zip(*(part.unbind(0) for part in self.memory), strict=True))
        self.rows, self.steps = len(order), self.places.unbind(0)

    @torch.inference_mode()
    def open(self, along: Int64[Tensor, "T R"], first: Int64[Tensor, " R"]) -> Float[Tensor, "R V"]:
        """Read the prompts, `along` the orders, and answer the step after each, all in one pass."""
        steps = int(first.max()) + 1
        seen = functional.pad(along[: steps - 1], (0, 0, 1, 0))

        def mix(index: int, parts: Tensor) -> Tensor:
            query, key, value = parts.unflatten(0, (steps, -1)).permute(
                2, 1, 3, 0, 4
            )  # R H Q L each
            for kept, made in zip(self.layers[index], (key, value), strict=True):
                kept[:, :, :steps] = made
            return attend(query, key, value, self.lean.scale, causal=True).transpose(0, 1)

        x = self.lean.run(seen.flatten(), self.places[:steps].flatten(0, 1), mix).view(
            steps, self.rows, -1
        )
        return self.lean.answer(x[first, torch.arange(self.rows, device=first.device)])

    @torch.inference_mode()
    def step(self, seen: Int64[Tensor, " M"], step: int) -> Float[Tensor, "M V"]:
        """Logits at a step of the first M rows, which read the token before it."""
        rows, lean, places = len(seen), self.lean, self.steps[step]

        def mix(index: int, parts: Tensor) -> Tensor:
            query, key, value = parts.unsqueeze(3).unbind(1)
            keys, values = self.layers[index]
            if rows < self.rows:
                keys, values = keys[:rows], values[:rows]
            keys.narrow(2, step, 1).copy_(key)
            values.narrow(2, step, 1).copy_(value)
            return functional.scaled_dot_product_attention(
                query, keys.narrow(2, 0, step + 1), values.narrow(2, 0, step + 1), scale=lean.scale
            )

        return lean.answer(lean.run(seen, places if rows == self.rows else places[:rows], mix))
