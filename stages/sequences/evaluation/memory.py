"""What a model of sequences remembers of those it was trained on (thesis 4.3.6, figure 4.5):
samples that continue training prompts.

They are drawn by the sampler that stands for the cell (its own order; from left to right for GPT;
diffusion's most steps) and judged as the test ones are, so accuracy on training sequences can be
set against that on test ones. Beside it: `repeated`, the share of samples that are the training
sequence itself, token by token, and nats a token of as many training sequences as there are
validation ones. `held_out` names the validation and test sequences by their digest: data sets with
one digest differ in their training sequences alone.
Shapes: N sequences, T tokens, P prompt.
"""

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stages.fields import scores as set_scores
from stages.sequences.evaluation import judges, passes, spread

if TYPE_CHECKING:
    from stages.sequences.evaluate import Held

Losses = Callable[
    [torch.Tensor, torch.Tensor, int], np.ndarray
]  # tokens (N, T), orders (N, T), P -> nats (N, T - P)


def asked(held: "Held") -> bool:
    """Whether this data set's training prompts are continued: it has few enough training
    sequences, and a kind that is judged here."""
    return (
        held.meta["kind"] in judges.JUDGES and len(held.split("train")) <= held.settings.plan.memory
    )


def standing(samplers: dict[str, passes.Sampler]) -> str:
    """The sampler that stands for a cell: the own order's, GPT's, of diffusion that of most
    steps."""
    return next((name for name in ("own", "left_to_right") if name in samplers), list(samplers)[-1])


def remembered(
    held: "Held", samplers: dict[str, passes.Sampler], kind: str, losses: Losses | None
) -> dict[str, dict[str, Any]]:
    """Metrics of training prompts continued by a cell trained in orders of `kind`: those of its
    judge, `repeated`, and `nats` where the model tells them (`losses`; None: it has a bound
    only). What could not be measured is left out."""
    prompt, plan, train = held.meta["prompt"], held.settings.plan, held.split("train")
    numbers = spread(train, plan.samples)
    given = held.tokens[numbers]
    made = passes.drawn(
        samplers[standing(samplers)],
        given,
        np.full(len(given), prompt),
        held.meta["vocabulary"],
        plan.batch,
        held.stream("memory", "sample"),
    ).tokens
    found = judges.judge(held.meta["kind"], made, given[:, :prompt], held.meta["law"]) | {
        "repeated": judges.share((made == given).all(1))
    }
    if losses is not None:
        found["nats"] = nats(held, spread(train, len(held.split("val"))), kind, losses)
    known = {name: one for name, one in found.items() if one["value"] is not None}
    return {
        name: {key: value for key, value in one.items() if value is not None}
        for name, one in known.items()
    }


def nats(held: "Held", numbers: np.ndarray, kind: str, losses: Losses) -> dict[str, Any]:
    """Nats a token after the prompt of some sequences, in the orders of `kind`, with their
    bootstrap interval."""
    plan, first = held.settings.plan, held.meta["prompt"]
    tokens = torch.from_numpy(held.tokens[numbers]).to(held.settings.device)
    values = losses(
        tokens, passes.ordered(kind, *tokens.shape, first, held.stream("orders", "train")), first
    )
    return set_scores.mean_of(
        values.sum(1),
        held.group[numbers],
        "nats/token",
        plan.bootstrap,
        held.rng("bootstrap"),
        np.full(len(values), values.shape[1]),
    )


def held_out(held: "Held") -> str:
    """SHA-256 of the validation and test sequences, in their order, with their prompt and law:
    equal for data sets that differ in their training sequences alone."""
    told = hashlib.sha256(
        repr((held.meta["kind"], held.meta["prompt"], sorted(held.meta["law"].items()))).encode()
    )
    for split in ("val", "test"):
        tokens = held.tokens[held.split(split)]
        told.update(repr(tokens.shape).encode() + np.ascontiguousarray(tokens, "<i8").tobytes())
    return told.hexdigest()


def named(held: "Held") -> dict[str, str]:
    """{"held_out": its digest} of a data set that is asked; {} of others."""
    return {"held_out": held_out(held)} if asked(held) else {}
