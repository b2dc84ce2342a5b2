"""Token-based rejection sampling (thesis algorithm 3), as printed, and what its printed form costs in truth.

A round is two passes: draft every remaining token independently, p(. | accepted); evaluate the drafts along N_o random orders,
q(. | accepted, drafts before); a draft passes if u < q/p, one u a position for all orders. The order with the most passes before its first failure is
kept. A rejected token is dropped, not drawn from the residual max(0, q - p), and the order is chosen after the draws: neither is
exact (errata). `bias` measures by how much on laws that can be listed; exact.py samples the law itself.
Unlike the public code's, a row advances by its own prefix, not by the batch's shortest.
Shapes: B batch, T length, V vocabulary, R rows at work, N orders, K steps left, S sequences of a listed law.
"""

import math

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from stages.models.orders import permutations
from stages.models.orders.sampling import Rows, Sample, gumbel


@torch.inference_mode()
def burst(law, tokens: Int64[Tensor, "B T"], generator: torch.Generator, orders: int = 5, first: int | Tensor = 0,
          order: Int64[Tensor, "B T"] | None = None, bounded: bool = False) -> Sample:
    """Algorithm 3 with `orders` random orders (N_o) a round. The given tokens are those of the first `first` steps of `order` (left to right
    if None). Every round accepts at least one token, because an order's first step asks what the burst has answered.

    Rounds never outnumber tokens; passes are twice the rounds (one for a last token). `bounded`: a round that accepted a single token also
    draws the next one from its causal law, which the check has computed, so that passes do not outnumber tokens either.
    """
    plain = permutations.left_to_right(*tokens.shape).to(tokens.device)
    rows = Rows(law, tokens, plain if order is None else order, first)
    while len(rows):
        remaining, real = rows.remaining()
        law_p = rows.reader.ask(bursts=remaining)[0]
        draft = (law_p + gumbel(tuple(law_p.shape), generator, law_p.dtype)).argmax(2)
        p = law_p.log_softmax(2).gather(2, draft[..., None])[..., 0]
        rows.count(1, real.sum(1))
        stay = rows.draft(remaining, draft)
        if not len(rows):
            break
        draft, p = draft[stay], p[stay]
        remaining, real = rows.remaining()
        shuffle = torch.rand(len(rows), orders, real.shape[1], generator=generator, device=generator.device)
        shuffle = shuffle.masked_fill(~real[:, None], 2).argsort(2)  # padding last
        along = lambda value, shuffle=shuffle: value[:, None].expand(-1, shuffle.shape[1], -1).gather(2, shuffle)  # noqa: E731
        orders_here, drafts = along(remaining), along(draft)
        law_q = rows.reader.ask(orders=orders_here, drafts=drafts)[1]
        q = law_q.log_softmax(3).gather(3, drafts[..., None])[..., 0]
        u = torch.rand(real.shape, generator=generator, device=generator.device, dtype=p.dtype).log()
        passed = (along(u + p) < q) & along(real)
        passed[..., 0] = True
        count, choice = passed.long().cumprod(2).sum(2).max(1)
        row = torch.arange(len(rows), device=choice.device)
        chosen = drafts[row, choice]
        if bounded:
            more = (count == 1) & (real.sum(1) > 1)
            if more.any():
                free = law_q[row, choice][:, 1]
                free = (free + gumbel(tuple(free.shape), generator, free.dtype)).argmax(1)
                chosen[:, 1] = torch.where(more, free, chosen[:, 1])
                count = count + more
        rows.count(1, orders * real.sum(1))
        rows.accept(choice, count, orders_here[row, choice], chosen)
    return rows.sample


def bias(law, sequences: Int64[Tensor, "S T"], probabilities: Float[Tensor, " S"], orders: int, samples: int,
         generator: torch.Generator, batch: int = 10_000) -> dict[str, int | float]:
    """How far Algorithm 3 with `orders` orders is from a law whose sequences are listed: the total variation over `samples` draws, `floor`,
    what an exact sampler of as many draws would show on average (normal approximation), and the mean rounds and passes."""
    found, rounds, passes = [], 0, 0
    for start in range(0, samples, batch):
        sample = burst(law, torch.zeros(min(batch, samples - start), sequences.shape[1], dtype=torch.int64, device=sequences.device),
                       generator, orders)
        found.append(sample.tokens)
        rounds, passes = rounds + int(sample.rounds.sum()), passes + int(sample.passes.sum())
    share = frequencies(torch.cat(found), sequences)
    exact = probabilities.double() / probabilities.double().sum()
    return {"orders": orders, "samples": samples, "total_variation": float((share[:-1] - exact).abs().sum() + share[-1]) / 2,
            "floor": float((exact * (1 - exact) * 2 / (math.pi * samples)).sqrt().sum()) / 2,
            "rounds": rounds / samples, "passes": passes / samples}


def frequencies(tokens: Int64[Tensor, "N T"], sequences: Int64[Tensor, "S T"]) -> Float[Tensor, " S+1"]:
    """The share of each listed sequence among the sampled ones; last, the share of all that are not listed."""
    together = torch.cat((sequences, tokens))
    base = int(together.max()) + 1
    if base ** together.shape[1] < 2 ** 62:  # one number a sequence is far faster to sort
        together = (together * base ** torch.arange(together.shape[1], device=tokens.device)).sum(1, keepdim=True)
    kinds, which = together.unique(dim=0, return_inverse=True) if together.shape[1] > 1 else together[:, 0].unique(return_inverse=True)
    count = torch.bincount(which[len(sequences):], minlength=len(kinds)).double() / max(len(tokens), 1)
    listed = count[which[:len(sequences)]]
    return torch.cat((listed, (count.sum() - listed.sum()).clamp(min=0)[None]))
