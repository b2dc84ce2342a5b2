"""Exact sampling in bursts: the law of the model for an order fixed beforehand, with one pass a
round (in place of thesis algorithm 3).

The sample is a function of noise drawn once, the one that sequential sampling with this noise would
make; drafts only serve to find it in few passes, so they cost no truth and may come from anywhere.
The proof stands in `exact`. Kin of predictive sampling (Wiggers and Hoogeboom 2020), which iterates
one chain in one order. Residual resampling (Chen et al. 2023) would be exact too, but redraws with
fresh noise what was settled already. Memory: B T V numbers of noise.
Shapes: B batch, T length, V vocabulary, R rows at work, N drafts, K steps left.
"""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from stages.errors import InputError
from stages.sequences.sampling import Rows, Sample, gumbel

DRAFTS = ("chain", "burst", "both")


@torch.inference_mode()
def exact(
    law: Any,
    order: Int64[Tensor, "B T"],
    tokens: Int64[Tensor, "B T"],
    generator: torch.Generator,
    first: int | Tensor = 0,
    drafts: str = "both",
    noise: Float[Tensor, "B T V"] | None = None,
) -> Sample:
    """Draw the tokens after the first `first` steps of each order; those before are read from
    `tokens` (by position).

    Proof. Let g_i be independent Gumbel noise of every position and F_i(x) = argmax(logits_i(x
    before i) + g_i) along the order. The sample is the sequence with x_i = F_i(x) for every i: by
    induction there is one and only one, and since F_i draws from softmax(logits_i), its law is that
    of sequential sampling. A pass computes F along a draft x'. Where x'_j = F_j(x') for all j < i,
    x' is the sample before i, hence F_i(x') is the sample's token i. So a pass accepts the drafts
    before the first disagreement AND what replaces that one. The first pass drafts by a burst,
    whose answer for the first step is final: K tokens take at most K passes, for any model, order
    and prompt.
    `drafts`: "chain", F of the last pass (what was settled stays, because the noise stays);
    "burst", argmax of burst logits + g given the tokens accepted one pass ago, which nothing
    incoherent has touched; "both" checks the two and takes what goes further. `noise` (Gumbel, by
    position) makes the sample the very one of `sequential` with that noise. InputError for other
    drafts.
    """
    if drafts not in DRAFTS:
        raise InputError("no such drafts", found=repr(drafts), expected=", ".join(DRAFTS))
    rows = Rows(law, tokens, order, first)
    if noise is None:
        noise = gumbel((*order.shape, rows.reader.vocabulary), generator)
    suggested = _open(rows, noise)
    again = False  # the first check has nothing but the first burst to check
    while len(rows):
        remaining, real = rows.remaining()
        here, left = noise[rows.ids[:, None], remaining], real.sum(1)
        tried: Any = [rows.tokens.gather(1, remaining), suggested[rows.ids[:, None], remaining]]
        tried = torch.stack(
            tried if drafts == "both" and again else tried[drafts == "burst" :][:1], 1
        )
        asked = remaining if again and drafts != "chain" else None
        law_p, law_q = rows.reader.ask(asked, remaining[:, None].expand_as(tried), tried)
        rows.count(1, left * (tried.shape[1] + (asked is not None)))
        truth = (law_q + here[:, None]).argmax(3)
        if not again:
            truth[:, :, 0] = tried[:, :, 0]  # known from the burst; rounding must not cost a pass
        settled, choice = ((truth == tried) & real[:, None]).long().cumprod(2).sum(2).max(1)
        if asked is not None:
            suggested[rows.ids[:, None], remaining] = (law_p + here).argmax(2)
        rows.accept(
            choice,
            torch.minimum(settled + 1, left),
            remaining,
            truth[torch.arange(len(rows), device=order.device), choice],
        )
        again = True
    return rows.sample


def _open(rows: Rows, noise: Tensor) -> Tensor:
    """The first pass: drafts by a burst, in the rows and by position (B, T)."""
    suggested = rows.sample.tokens.clone()
    if len(rows):
        remaining, real = rows.remaining()
        drafts = (rows.reader.ask(remaining)[0] + noise[rows.ids[:, None], remaining]).argmax(2)
        suggested[rows.ids[:, None], remaining] = drafts
        rows.count(1, real.sum(1))
        rows.draft(remaining, drafts)
    return suggested
