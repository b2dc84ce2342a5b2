"""Token-based rejection sampling (thesis algorithm 3), as printed, and what its printed form costs
in truth.

A round is two passes: draft every remaining token independently, p(. | accepted); evaluate the
drafts along N_o random orders, q(. | accepted, drafts before); a draft passes if u < q/p, one u a
position for all orders. The order with the most passes before its first failure is kept. A rejected
token is dropped, not drawn from the residual max(0, q - p), and the order is chosen after the
draws: neither is exact (errata; evaluation/bias.py measures by how much). exact.py samples
the law itself. Unlike the public code's, a row advances by its own prefix, not by the batch's
shortest.
Shapes: B batch, T length, V vocabulary, R rows at work, N orders, K steps left.
"""

from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from stages.sequences import permutations
from stages.sequences.sampling import Rows, Sample, gumbel


@torch.inference_mode()
def burst(
    law: Any,
    tokens: Int64[Tensor, "B T"],
    generator: torch.Generator,
    orders: int = 5,
    first: int | Tensor = 0,
    order: Int64[Tensor, "B T"] | None = None,
    bounded: bool = False,
) -> Sample:
    """Algorithm 3 with `orders` random orders (N_o) a round. The given tokens are those of the
    first `first` steps of `order` (left to right if None). Every round accepts at least one token,
    because an order's first step asks what the burst has answered.

    Rounds never outnumber tokens; passes are twice the rounds (one for a last token). `bounded`: a
    round that accepted a single token also draws the next one from its causal law, which the check
    has computed, so that passes do not outnumber tokens either.
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
        shuffle = torch.rand(
            len(rows), orders, real.shape[1], generator=generator, device=generator.device
        )
        shuffle = shuffle.masked_fill(~real[:, None], 2).argsort(2)  # padding last

        def along(value: Tensor, shuffle: Tensor = shuffle) -> Tensor:
            return value[:, None].expand(-1, shuffle.shape[1], -1).gather(2, shuffle)

        orders_here, drafts = along(remaining), along(draft)
        law_q = rows.reader.ask(orders=orders_here, drafts=drafts)[1]
        q = law_q.log_softmax(3).gather(3, drafts[..., None])[..., 0]
        u = torch.rand(
            real.shape, generator=generator, device=generator.device, dtype=p.dtype
        ).log()
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
