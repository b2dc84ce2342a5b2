"""Exact sampling of a few steps ahead at a time: exact.py's sample of the same noise, with less
arithmetic where arithmetic decides.

exact.py checks all that remains at every pass, 4 to 11 times the positions of sequential decoding;
on a batch those cost more than passes saved. Here a pass checks the next `window` steps alone, of
one chain, whose drafts are F of the pass before, and those of the first pass come from a law that
needs no pass. exact.py's proof holds for any drafts and any window: noise is drawn once, so the law
is that of sequential sampling. A network is read by a Strip.
Shapes: B batch, R rows, T length, V vocabulary, N steps of a pass.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from stages.errors import InputError
from stages.sequences.sampling import Law, Sample, gumbel, prompts
from stages.sequences.sampling.strip import Steps, Strip

# steps: suits most of the laboratory's tasks at batch 1; at batch 25, where arithmetic decides, 2
# to 4 do
WINDOW = 16


@torch.inference_mode()
def windowed(
    law: Any,
    order: Int64[Tensor, "B T"],
    tokens: Int64[Tensor, "B T"],
    generator: torch.Generator,
    first: int | Tensor = 0,
    window: int = WINDOW,
    prior: Tensor | None = None,
    noise: Float[Tensor, "B T V"] | None = None,
) -> Sample:
    """`exact` with drafts "chain", at most `window` steps a pass. A row's passes, like its sample,
    do not depend on its batch.

    First drafts: argmax(prior + noise), checked in the pass that reads the prompt; `prior` (T, V),
    logits by position, may come from anywhere (None: uniform), and the better it foretells the
    tokens, the fewer the passes: the logarithm of `density` with nothing given is one, made once a
    model. K tokens take at most K passes, and one alone where the prior is the law. InputError for
    a window below 1 or a prior that does not fit.
    """
    if window < 1:
        raise InputError("no such window", found=repr(window), expected="at least one step")
    if prior is not None and prior.shape != (order.shape[1], law.vocabulary):
        raise InputError(
            "the prior does not fit",
            found=str(tuple(prior.shape)),
            expected=str((order.shape[1], law.vocabulary)),
        )
    from stages.layers.kernels.strip_code import settle, spans  # numba takes a third of a second

    first, length = prompts(tokens, order, first), order.shape[1]
    known = first.cpu().numpy().copy()
    along, noise = _drafted(law, order, tokens, generator, first, prior, noise)
    reader = (_Opened if isinstance(law, Law) else Strip)(law, order, along)
    when, passes, positions = np.zeros(order.shape, np.int64), np.zeros_like(known), known.copy()
    prompt = spans(np.zeros_like(known), np.where(known < length, known, 0), length)
    steps = spans(known, np.minimum(known + window, length), length)
    skip = prompt.shape[1]
    while steps.size:
        logits = reader.ask(np.concatenate((prompt, steps), 1) if skip else steps, skip)
        at = torch.from_numpy(steps[2]).to(noise.device)
        truth = (logits + noise.index_select(0, at)).argmax(1).cpu().numpy()
        steps, skip = settle(truth, steps, along, known, when, passes, positions, window), 0
    found, *told = (
        torch.from_numpy(part).to(order.device)
        for part in (along[:, 1:], passes, passes, positions, when)
    )
    return Sample(torch.empty_like(order).scatter(1, order, found), order.clone(), *told)


def _drafted(
    law,
    order: Tensor,
    tokens: Tensor,
    generator: torch.Generator,
    first: Tensor,
    prior: Tensor | None,
    noise: Tensor | None,
) -> tuple[np.ndarray, Tensor]:
    """What a Strip reads, along (B, T+1) the orders, prompts and after them first drafts; the
    noise of every step, (B T, V)."""
    (rows, length), kinds = order.shape, law.vocabulary
    low = int(first.min()) if rows else length
    ahead, steps = order[:, low:], torch.arange(low, length, device=order.device)
    noise = (
        gumbel((*ahead.shape, kinds), generator)
        if noise is None
        else noise.gather(1, ahead[..., None].expand(-1, -1, kinds))
    )
    drafts = (noise if prior is None else functional.embedding(ahead, prior).add_(noise)).argmax(2)
    given = tokens.gather(1, order)
    along = torch.cat(
        (
            given.new_zeros(rows, 1),
            given[:, :low],
            torch.where(steps < first[:, None], given[:, low:], drafts),
        ),
        1,
    )
    return along.cpu().numpy(), functional.pad(noise, (0, 0, low, 0)).flatten(0, 1)


class _Opened:
    """The same of a law that opens its own reader (sampling/__init__.py), anew for every pass:
    `along` holds what is settled."""

    def __init__(self, law, order: Int64[Tensor, "R T"], along: Int64[np.ndarray, "R T1"]):
        self.law, self.order, self.along = law, order, along

    def ask(self, steps: Steps, skip: int = 0) -> Tensor:
        """Logits of all but the first `skip` steps, each row's one after the other."""
        rows, begin, row = np.unique(steps[0, skip:], return_index=True, return_inverse=True)
        known = torch.from_numpy(steps[1, skip:][begin])
        order, along = self.order[rows], torch.from_numpy(self.along[rows, 1:])
        reader = self.law.open(torch.empty_like(order).scatter(1, order, along), order, known)
        slot = torch.from_numpy(steps[1, skip:]) - known[row]
        at = (known[:, None] + torch.arange(int(slot.max()) + 1)).clamp(max=order.shape[1] - 1)
        logits = reader.ask(
            orders=order.gather(1, at)[:, None], drafts=along.gather(1, at)[:, None]
        )[1]
        return logits[torch.from_numpy(row), 0, slot]
