"""Samples that continue test prompts, of every sampler, judged by the rules of their kind (thesis
4.3: judges.py; climbs: vertical.py; texts and grammars: generations.py).

Shapes: N sequences, K samples of each, T tokens.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stages.errors import DataError
from stages.sequences.evaluation import generations, judges, passes, stands, vertical
from stages.sequences.evaluation.data import EvaluationData

SHOWN = 8  # samples of each sampler in samples.safetensors
# ends the names of all samples of texts and grammars, which are read together and not kept
EVERY = "/every"


def strict(found: dict[Any, Any]) -> dict[Any, Any]:
    """{"metrics", "undefined"}: metrics without what is null, and why a metric is missing."""
    metrics = {
        name: {key: value for key, value in one.items() if value is not None}
        for name, one in found.items()
        if one["value"] is not None and np.isfinite(one["value"])
    }
    return {
        "metrics": metrics,
        "undefined": {name: "no sample to measure it on" for name in found if name not in metrics},
    }


def judged(
    data: EvaluationData, numbers: np.ndarray, known: np.ndarray, samples: np.ndarray
) -> dict[Any, Any]:
    """Metrics of samples (N, T), of flights (N K, T), that continue the first `known` (N,) tokens
    of the sequences `numbers`; of text only those of generations.py."""
    kind, law = data.meta["kind"], data.meta["law"]
    if kind == "climb":
        return vertical.judge(
            samples.reshape(len(numbers), -1, samples.shape[1]),
            data.tokens[numbers],
            known,
            law,
            data.group[numbers],
            data.rng("bootstrap"),
            data.settings.plan.bootstrap,
        )
    found = (
        judges.judge(kind, samples, data.tokens[numbers, : known[0]], law)
        if kind in judges.JUDGES
        else {}
    )
    return found | (
        data.reader.compare(samples, data.rng("generations")) if kind in generations.KINDS else {}
    )


def times(data: EvaluationData, cell: str, sampler: str, draws: Mapping[str, Any]) -> int:
    """How many samples of a prompt are drawn: of flights several by the sampler that stands for a
    model, whose error one sample would leave to chance; else one."""
    alone = data.meta["kind"] != "climb" or sampler != stands(cell, draws)
    return 1 if alone else data.settings.plan.each


def sampled(
    data: EvaluationData, draws: dict[str, passes.Sampler], name: str
) -> tuple[dict[Any, Any], dict[str, np.ndarray]]:
    """sampler -> prompt -> {metrics, undefined}, and the shown samples by
    SAMPLER/PROMPT/{tokens,order}."""
    numbers, vocabulary, entries, shown = data.sampled(), data.meta["vocabulary"], {}, {}
    for sampler, one in draws.items():
        entries[sampler], each = {}, times(data, name, sampler, draws)
        for prompt, known in data.prompts(numbers).items():
            stream = data.stream("sample", sampler, prompt)
            asked = data.tokens[numbers.repeat(each)], known.repeat(each)
            made = passes.drawn(one, *asked, vocabulary, data.settings.plan.batch, stream)
            if made.tokens.min() < 0 or made.tokens.max() >= vocabulary:
                raise DataError(
                    "a sample holds tokens that there are not",
                    where=f"{name}, {sampler}",
                    expected=f"0 to {vocabulary - 1}",
                    found=f"{made.tokens.min()} to {made.tokens.max()}",
                )
            entries[sampler][prompt] = strict(
                judged(data, numbers, known, made.tokens) | passes.costs(made, each)
            )
            parts = {"tokens": made.tokens, "order": made.order} | (
                {} if made.when is None else {"round": made.when}
            )
            shown |= {
                f"{sampler}/{prompt}/{part}": array[::each][:SHOWN].astype(np.int32)
                for part, array in parts.items()
            }
            shown |= (
                {f"{sampler}{EVERY}": made.tokens} if data.meta["kind"] in generations.KINDS else {}
            )
    return entries, shown
