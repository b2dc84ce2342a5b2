"""Autoregression in any order, a token a pass (thesis section 4.2.1), and the conditional density at every position (section 4.2.3).

Shapes: B batch, T length, V vocabulary.
"""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional

from stages.models.orders import permutations
from stages.models.orders.sampling import Rows, Sample, gumbel


@torch.inference_mode()
def sequential(law, order: Int64[Tensor, "B T"], tokens: Int64[Tensor, "B T"], generator: torch.Generator, first: int | Tensor = 0,
               cache: bool = True, noise: Float[Tensor, "B T V"] | None = None) -> Sample:
    """Draw the tokens after the first `first` steps of each order, one a pass; those before are read from `tokens` (by position).

    Without `cache` a network computes the whole prefix at every pass. `noise` (Gumbel, by position) makes the sample a function of it.
    """
    rows = Rows(law, tokens, order, first)
    while len(rows):
        remaining, _ = rows.remaining()
        position = remaining[:, :1]
        if cache:
            logits = rows.reader.ask(orders=position[:, None])[1][:, 0, 0]
            rows.count(1, 1)
        else:
            logits = law(rows.tokens, rows.order[:, :int(rows.known.max()) + 1])
            logits = logits[torch.arange(len(rows), device=order.device), rows.known]
            rows.count(1, rows.known + 1)
        if noise is None:
            drawn = gumbel(tuple(logits.shape), generator, logits.dtype)
        else:
            drawn = noise[rows.ids, position[:, 0]]
        token = (logits + drawn).argmax(1, keepdim=True)
        one = torch.ones_like(rows.known)
        rows.accept(one - 1, one, position, token, remember=cache)
    return rows.sample


@torch.inference_mode()
def density(law, tokens: Int64[Tensor, "B T"], given: Bool[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
    """The law of the token at every position, conditioned on the given ones and nothing else, in one pass; certainty at the given ones."""
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
