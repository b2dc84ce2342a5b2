"""A text of its own scored with a trained cell: nats, perplexity and bits per character of its
windows, in the cell's own order and from left to right.

The text is read as a data set's files are (data/text.py), its tokens are those of the cell's
vocabulary, and losses and metrics are the evaluation's. Shapes: N windows, T tokens.
"""

from typing import Any

import numpy as np
import torch

from stages import files
from stages.errors import DataError
from stages.scores import lone
from stages.sequences.data import lone_text
from stages.sequences.evaluation import passes
from stages.sequences.evaluation.checkpoint import load
from stages.sequences.evaluation.data import EvaluationData, Settings
from stages.sequences.evaluation.likelihood import bound, losses, token_metrics
from stages.splits import SPLITS

OWN = ("perplexity", "perplexity_per_word", "bits_per_character", "nats")
LEFT = "_left_to_right"
BOUND = "nats_bound"


def score(asked: lone.Asked) -> lone.Scored:
    """Likelihood of the text's windows. InputError for a cell of other sequences than texts, for a
    file that is no text, one without two windows, or one that the cell was trained on."""
    meta, machine = files.read_json(asked.prepared / "sequences.json"), asked.machine
    if meta["kind"] != "text":
        raise asked.refuse(
            "a lone file of these sequences cannot be read",
            "a cell of texts",
            f"a cell of {meta['kind']}",
            "name another cell",
        )
    model, trained = load(asked.run)
    for key in ("vocabulary", "length"):
        if trained[key] != meta[key]:
            raise DataError(
                "a cell was trained on other sequences",
                where=str(asked.run),
                expected=f"{key} {meta[key]}",
                found=str(trained[key]),
                remedy="run `dvc repro`, which trains it again",
            )
    made = lone_text.read(asked, meta)
    settings = Settings(asked.profile.orders, machine.seed, machine.threads, machine.device)
    held = EvaluationData.open(asked.prepared, settings)
    fitted = held.tokens[held.placed < SPLITS.index("test")]
    seen = lone_text.trained_on(made.stream, fitted)
    asked.refuse_seen(seen, f"{seen:,} of the {len(fitted):,} windows that the cell was fitted to")
    told = meta | {"law": meta["law"] | {"per": {"test": made.counts}}}
    count = len(made.windows)
    data = EvaluationData(
        made.windows, np.full(count, SPLITS.index("test")), np.arange(count), told, settings
    )
    found = window_metrics(model.to(machine.device).eval(), trained["order"], data)
    own = passes.own(trained["order"]) if model.ordered else ""
    order = f"own order: {own}" if own else "no order: a bound of the likelihood"
    counts = {name: made.counts[name] for name in ("characters", "words", "tokens")}
    return lone.Scored(
        metrics=found,
        shown=tuple(name for name in (*OWN, *(one + LEFT for one in OWN), BOUND) if name in found),
        counts=counts
        | {"windows": count, "unknown characters, scored as <unk>": made.counts["unknown"]}
        | ({lone.TRAINED_ON: seen} if seen else {}),
        dropped={"tokens after the last whole window": made.left},
        notes=(f"windows of {meta['length']} tokens, each a context of its own; {order}",),
    )


def window_metrics(model: Any, order: str, data: EvaluationData) -> dict[Any, Any]:
    """The evaluation's metrics of windows that all are to be tested: as of a test split
    (likelihood.py)."""
    first, plan = data.meta["prompt"], data.settings.plan
    tokens = torch.from_numpy(data.tokens).to(data.settings.device)
    if not model.ordered:
        values = bound(model, tokens, first, max(plan.diffusion), data.stream("bound", "test"))
        return {
            name: one
            for name, one in token_metrics(data, "test", values, "_bound").items()
            if name.startswith("nats")
        }
    found: dict[Any, Any] = {}
    for suffix, kind in {"": passes.own(order), LEFT: "left_to_right"}.items():
        steps = passes.ordered(kind, *tokens.shape, first, data.stream("orders", "test"))
        values = losses(model, tokens, steps, first, plan.batch)
        found |= token_metrics(data, "test", values, suffix)
    return found
