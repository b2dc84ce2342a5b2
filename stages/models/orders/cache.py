"""Keys and values of the accepted tokens, rows of a batch each as far as it has come (thesis section D.3, equation D.11 as corrected).

A pass may hold three kinds of steps at once. The prompt, in the first pass: causal, and remembered. Bursts: from the last accepted
token to any position asked for; each sees the memory and itself, softmax([Q K1^T, diag(q k)] / sqrt(d)), and is forgotten (the print has q v
and no root). Chains: drafts along an order, causal; the accepted steps of one chain are then kept. So a draft and the check
of the last one can share a pass, and a burst's logits are those of the position asked next.
Memory is one buffer made once. A single chain is written into it in place; a finished row's place is taken by the last row (one row copied).
Shapes: R rows at work, S steps remembered, P bursts, N chains, K steps of a chain, T length, V vocabulary, H heads.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from stages.models.orders.sigma_gpt import SigmaGPT, causal


class Cache:
    """A SigmaGPT as a reader (sampling/__init__.py). `order[:, :first]` are the given positions, `tokens` (R, T) by position."""

    def __init__(self, model: SigmaGPT, tokens: Int64[Tensor, "R T"], order: Int64[Tensor, "R T"], first: Int64[Tensor, " R"]):
        self.model, self.vocabulary, self.length = model, model.vocabulary, order.shape[1]
        block, (rows, length) = model.blocks[0], order.shape
        weight = model.embedding.weight
        # one place more than there are steps: padding is written there
        self.memory = weight.new_zeros(len(model.blocks), 2, rows, length + 1, block.heads, block.lanes)
        self.known = torch.zeros_like(first)
        self.token, self.position = torch.zeros_like(first), torch.full_like(first, -1)  # the last accepted one; the start
        self.given = None
        if len(first) and first.max() > 0:
            order = order[:, :int(first.max())]
            self.given = (tokens.gather(1, order), order, first)

    @torch.inference_mode()
    def ask(self, bursts: Int64[Tensor, "R P"] | None = None, orders: Int64[Tensor, "R N K"] | None = None,
            drafts: Int64[Tensor, "R N K"] | None = None) -> tuple[Float[Tensor, "R P V"] | None, Float[Tensor, "R N K V"] | None]:
        """One pass: logits at every position of `bursts` given the accepted tokens, and at every step of the chains, each
        given also the drafts before it. Drafts may be left out of chains of one step."""
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
            parts.append((self.token[:, None].expand_as(bursts), self.position[:, None].expand_as(bursts), bursts))
        widths.append(0 if bursts is None else bursts.shape[1])
        if orders is not None:
            parts.append([part.flatten(1) for part in self._chained(orders if drafts is None else drafts, orders)])
        widths.append(0 if orders is None else orders.shape[1] * orders.shape[2])
        pass_ = _Pass(self, widths, 1 if orders is None else orders.shape[1])
        read = [torch.cat(part, 1) if len(part) > 1 else part[0] for part in zip(*parts, strict=True)]
        logits = self.model.run(*read, pass_.mix)
        self.given, self.last = None, (orders, pass_.fresh)
        _, burst, chain = logits.split(widths, 1)
        return None if bursts is None else burst, None if orders is None else chain.unflatten(1, orders.shape[1:])

    def keep(self, choice: Int64[Tensor, " R"], count: Int64[Tensor, " R"], tokens: Int64[Tensor, "R K"]) -> None:
        """Accept the first `count` >= 1 steps of the chosen chain of the last pass; `tokens` along it. The drafts of all but the last of them
        must have been those tokens; the last may be another one."""
        orders, fresh = self.last
        row = torch.arange(len(choice), device=choice.device)
        if orders.shape[1] > 1:
            place = (self.known[:, None] + torch.arange(orders.shape[2], device=choice.device)).clamp(max=self.length)
            for memory, (key, value) in zip(self.memory, fresh, strict=True):
                memory[0][row[:, None], place], memory[1][row[:, None], place] = key[row, choice], value[row, choice]
        self.known = self.known + count
        self.token = tokens.gather(1, count[:, None] - 1)[:, 0]
        self.position = orders[row, choice, count - 1]

    def retain(self, rows: Int64[Tensor, " M"]) -> None:
        """Row i is now what row rows[i] was; rows that stay where they are cost nothing."""
        moved = (rows != torch.arange(len(rows), device=rows.device)).nonzero()[:, 0]
        if len(moved):
            self.memory[:, :, moved] = self.memory[:, :, rows[moved]]
        self.memory = self.memory[:, :, :len(rows)]
        self.known, self.token, self.position = self.known[rows], self.token[rows], self.position[rows]
        if self.given is not None:
            self.given = tuple(part[rows] for part in self.given)

    def _chained(self, tokens: Tensor, order: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What each step of chains (R, [N,] K) reads: the token and the position before it, and the position asked for."""
        before = lambda value, start: torch.cat(  # noqa: E731
            (start.view(-1, *[1] * (value.dim() - 1)).expand(*value.shape[:-1], 1), value[..., :-1]), -1)
        return before(tokens, self.token), before(order, self.position), order


class _Pass:
    """The attention of one pass: masks are made once for all blocks."""

    def __init__(self, cache: Cache, widths: list[int], chains: int):
        self.cache, self.widths, self.chains = cache, widths, chains
        self.fresh: list[tuple[Tensor, Tensor]] = []  # keys and values of several chains, block by block
        known, steps = cache.known, widths[2] // chains
        self.deepest, self.steps = int(known.max()), steps
        self.even = self.deepest == int(known.min())
        self.row, step = torch.arange(len(known), device=known.device)[:, None], torch.arange(steps, device=known.device)
        self.place = (known[:, None] + step).clamp(max=cache.length)  # R K: where a single chain is written
        past = torch.arange(self.deepest, device=known.device) < known[:, None]  # R S: remembered
        self.hole = None if self.even else ~past
        if chains > 1:
            inside = (step <= step[:, None]).expand(len(known), -1, -1)
            self.seen = torch.cat((past[:, None].expand(-1, steps, -1), inside), 2).repeat_interleave(chains, 0)[:, None]  # RN 1 K S+K
        elif steps > 1 or not self.even:
            span = torch.arange(min(self.deepest + steps, cache.length + 1), device=known.device)
            self.seen = (span <= self.place[:, :, None])[:, None]  # R 1 K S+K
        else:
            self.seen = None

    def mix(self, index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """(R, prompt + bursts + chains, H, lanes) -> alike."""
        keys, values = self.cache.memory[index]
        parts = list(zip(*(part.split(self.widths, 1) for part in (query, key, value)), strict=True))
        prompt, mixed = self.widths[0], []
        if prompt:
            keys[:, :prompt], values[:, :prompt] = parts[0][1], parts[0][2]
            mixed.append(causal(index, *parts[0]))
        if self.widths[1]:
            mixed.append(self._burst(*parts[1], keys[:, :self.deepest], values[:, :self.deepest]))
        if self.widths[2]:
            mixed.append((self._single if self.chains == 1 else self._several)(*parts[2], keys, values))
        return torch.cat(mixed, 1) if len(mixed) > 1 else mixed[0]

    def _burst(self, query: Tensor, key: Tensor, value: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        own = (query * key).sum(3, keepdim=True).transpose(1, 2)  # R H P 1
        score = query.transpose(1, 2) @ keys.permute(0, 2, 3, 1)  # R H P S
        if self.hole is not None:
            score = score.masked_fill(self.hole[:, None, None], -torch.inf)
        weight = torch.cat((score, own), 3).softmax(3)
        found = weight[..., :-1] @ values.transpose(1, 2) + weight[..., -1:] * value.transpose(1, 2)
        return found.transpose(1, 2)

    def _single(self, query: Tensor, key: Tensor, value: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        end = self.deepest + self.steps
        if self.even:
            keys[:, self.deepest:end], values[:, self.deepest:end] = key, value
        else:
            keys[self.row, self.place], values[self.row, self.place] = key, value
        return self._attend(query, keys[:, :end], values[:, :end], self.seen) if self.deepest else causal(0, query, key, value)

    def _several(self, query: Tensor, key: Tensor, value: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        query, key, value = (part.unflatten(1, (self.chains, -1)) for part in (query, key, value))
        self.fresh.append((key, value))
        longer = lambda old, new: torch.cat(  # noqa: E731
            (old[:, None, :self.deepest].expand(-1, self.chains, -1, -1, -1), new), 2).flatten(0, 1)
        return self._attend(query.flatten(0, 1), longer(keys, key), longer(values, value), self.seen).view(len(query), -1, *query.shape[3:])

    @staticmethod
    def _attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        found = functional.scaled_dot_product_attention(query.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2),
                                                        attn_mask=mask, scale=1.0)
        return found.transpose(1, 2)
