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

from stages.scores import groups
from stages.sequences.evaluation import judges, passes, spread

if TYPE_CHECKING:
    from stages.sequences.evaluation.data import EvaluationData

Losses = Callable[
    [torch.Tensor, torch.Tensor, int], np.ndarray
]  # tokens (N, T), orders (N, T), P -> nats (N, T - P)


def asked(data: "EvaluationData") -> bool:
    """Whether this data set's training prompts are continued: it has few enough training
    sequences, and a kind that is judged here."""
    return (
        data.meta["kind"] in judges.JUDGES and len(data.split("train")) <= data.settings.plan.memory
    )


def standing(samplers: dict[str, passes.Sampler]) -> str:
    """The sampler that stands for a cell: the own order's, GPT's, of diffusion that of most
    steps."""
    return next((name for name in ("own", "left_to_right") if name in samplers), list(samplers)[-1])


def remembered(
    data: "EvaluationData", samplers: dict[str, passes.Sampler], kind: str, losses: Losses | None
) -> dict[str, dict[str, Any]]:
    """Metrics of training prompts continued by a cell trained in orders of `kind`: those of its
    judge, `repeated`, and `nats` where the model tells them (`losses`; None: it has a bound
    only). What could not be measured is left out."""
    prompt, plan, train = data.meta["prompt"], data.settings.plan, data.split("train")
    numbers = spread(train, plan.samples)
    given = data.tokens[numbers]
    made = passes.drawn(
        samplers[standing(samplers)],
        given,
        np.full(len(given), prompt),
        data.meta["vocabulary"],
        plan.batch,
        data.stream("memory", "sample"),
    ).tokens
    found = judges.judge(data.meta["kind"], made, given[:, :prompt], data.meta["law"]) | {
        "repeated": judges.share((made == given).all(1))
    }
    if losses is not None:
        found["nats"] = nats(data, spread(train, len(data.split("val"))), kind, losses)
    known = {name: one for name, one in found.items() if one["value"] is not None}
    return {
        name: {key: value for key, value in one.items() if value is not None}
        for name, one in known.items()
    }


def nats(data: "EvaluationData", numbers: np.ndarray, kind: str, losses: Losses) -> dict[str, Any]:
    """Nats a token after the prompt of some sequences, in the orders of `kind`, with their
    bootstrap interval."""
    plan, first = data.settings.plan, data.meta["prompt"]
    tokens = torch.from_numpy(data.tokens[numbers]).to(data.settings.device)
    values = losses(
        tokens, passes.ordered(kind, *tokens.shape, first, data.stream("orders", "train")), first
    )
    return groups.mean_of(
        values.sum(1),
        data.group[numbers],
        "nats/token",
        plan.bootstrap,
        data.rng("bootstrap"),
        np.full(len(values), values.shape[1]),
    )


def held_out(data: "EvaluationData") -> str:
    """SHA-256 of the validation and test sequences, in their order, with their prompt and law:
    equal for data sets that differ in their training sequences alone."""
    told = hashlib.sha256(
        repr((data.meta["kind"], data.meta["prompt"], sorted(data.meta["law"].items()))).encode()
    )
    for split in ("val", "test"):
        tokens = data.tokens[data.split(split)]
        told.update(repr(tokens.shape).encode() + np.ascontiguousarray(tokens, "<i8").tobytes())
    return told.hexdigest()


def named(data: "EvaluationData") -> dict[str, str]:
    """{"held_out": its digest} of a data set that is asked; {} of others."""
    return {"held_out": held_out(data)} if asked(data) else {}
