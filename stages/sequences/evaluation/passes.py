"""Samples of a trained model of sequences and what they cost (thesis 4.3.8, figure 4.6): every
sampler that suits it, passes and positions.

One token a pass from left to right and in the order it was trained in (`own`), and where a prompt
asks for an answer the likeliest token of each such step instead of a draw (`greedy`, in the own
order; no sample of the law); Algorithm 3 with N_o orders (`burst_N`), where any order was trained;
`exact` bursts in the own order, and by windows of K steps (`window_K`); diffusion in K steps
(`diffusion_K`). `rounds` are what the thesis counts as passes of a burst: draft and check. Trivial
samplers stand beside, without a pass. Known tokens are the first of each sequence, as many as a
prompt gives; samplers never see the others.
Shapes: B batch, N sequences, T tokens, V vocabulary.
"""

# mypy: disable-error-code="arg-type"
# what is drawn is tensors until it is taken to NumPy

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stages.contracts import SequenceModel
from stages.sequences import permutations
from stages.sequences.evaluation.judges import Metrics, mean
from stages.sequences.sampling.burst import burst
from stages.sequences.sampling.exact import exact
from stages.sequences.sampling.sequential import density, sequential
from stages.sequences.sampling.window import windowed

MOST = 1 << 26  # numbers of the logits of one pass
ANY = ("random", "curriculum")  # orders after which a model answers in any order
ANSWERED = ("maze", "climb")  # kinds whose prompt asks for an answer
WINDOWS = (2, 16)  # steps: what suits a batch, and a sequence alone
VALID = (
    "valid",
    "correct",
    "mse_levels",
)  # what a kind's samples are judged by first, of those that its judge gives


QUALITY = {
    "value": "quality",
    "low": "quality_low",
    "high": "quality_high",
    "unit": "quality_unit",
}  # of a row


@dataclass(frozen=True)
class Drawn:
    """Sampled tokens (N, T); of each sequence the order (N, T) in which they came, rounds, passes
    and computed positions (N,); `when` (N, T): the round that accepted each step of the order, 0
    for what was given, where the sampler has rounds."""

    tokens: np.ndarray
    order: np.ndarray
    rounds: np.ndarray
    passes: np.ndarray
    positions: np.ndarray
    when: np.ndarray | None = None


@dataclass(frozen=True)
class Sampler:
    """draw(tokens (B, T), known (B,), generator) -> an object with Drawn's fields as tensors;
    `chains` are computed a sequence."""

    draw: Callable[..., Any]
    chains: int = 1


def own(kind: str) -> str:
    """The kind of orders that a trained model is sampled and scored in: a curriculum's is where
    it ended."""
    return "random" if kind in ANY else kind


def ordered(
    kind: str, batch: int, length: int, known: int | Tensor, generator: torch.Generator
) -> Tensor:
    """Orders (B, T) of a kind; positions below `known` (of all rows, or (B,)) in front, from
    left to right."""
    order = permutations.draw(own(kind), batch, length, generator)
    limit = torch.as_tensor(known, device=order.device).expand(batch)[:, None]
    steps = torch.arange(length, device=order.device) + length
    return torch.take_along_dim(order, torch.where(order < limit, order, steps).argsort(1), 1)


def samplers(
    model: SequenceModel,
    kind: str,
    orders: tuple[int, ...],
    steps: tuple[int, ...],
    answered: bool = False,
) -> dict[str, Sampler]:
    """The samplers of a model trained in orders of `kind`: of bursts one for each number of orders,
    of diffusion one for each of steps; `answered`: the greedy one too."""
    if not model.ordered:
        return {f"diffusion_{count}": Sampler(partial(_denoised, model, count)) for count in steps}

    def along(sampler: Callable[..., Any], kind: str) -> Callable[..., Any]:
        return lambda tokens, known, generator: sampler(
            model, ordered(kind, *tokens.shape, known, generator), tokens, generator, known
        )

    found = {"left_to_right": Sampler(along(sequential, "left_to_right"))}
    if own(kind) != "left_to_right":
        found["own"] = Sampler(along(sequential, kind))
    if answered:
        found["greedy"] = Sampler(along(_likeliest, kind))
    if kind in ANY:
        found |= {
            f"burst_{count}": Sampler(partial(_burst, model, count), count) for count in orders
        }
    return found | {"exact": Sampler(along(exact, kind), 3)} | windows(model, kind, WINDOWS)


def windows(model: Any, kind: str, sizes: tuple[int, ...]) -> dict[str, Sampler]:
    """Exact samplers by windows of these sizes, in orders of `kind`; first drafts from the
    model's own law of every position given nothing."""
    blank = torch.zeros(1, model.length, dtype=torch.int64, device=model.embedding.weight.device)
    prior = density(model, blank, blank > 0)[0].log()

    def draw(window: int, tokens: Tensor, known: Tensor, generator: torch.Generator):
        return windowed(
            model,
            ordered(kind, *tokens.shape, known, generator),
            tokens,
            generator,
            known,
            window,
            prior,
        )

    return {
        f"window_{size}": Sampler(partial(draw, size), 4) for size in sizes
    }  # the noise of all steps, in doubles at first


def _likeliest(
    model: SequenceModel, order: Tensor, tokens: Tensor, generator: torch.Generator, known: Tensor
):
    """Without noise the drawn token is the likeliest."""
    return sequential(
        model,
        order,
        tokens,
        generator,
        known,
        noise=torch.zeros(1, 1, 1, device=order.device).expand(*order.shape, model.vocabulary),
    )


def _burst(
    model: SequenceModel, orders: int, tokens: Tensor, known: Tensor, generator: torch.Generator
):
    return burst(model, tokens, generator, orders, first=known)


def _denoised(
    model: SequenceModel, steps: int, tokens: Tensor, known: Tensor, generator: torch.Generator
) -> Drawn:
    """Diffusion makes all tokens together: each pass computes every position."""
    given = torch.arange(tokens.shape[1], device=tokens.device) < known[:, None]
    passes = torch.full_like(known, steps)
    plain = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
    return Drawn(
        model.sample(tokens, given, steps, generator),
        plain,
        passes,
        passes,
        passes * tokens.shape[1],
    )


def trivial(law: np.ndarray) -> Sampler:
    """Tokens drawn place by place from a law (T, V), without a pass."""
    cumulated = torch.from_numpy(law.cumsum(1) / law.sum(1, keepdims=True))

    def draw(tokens: Tensor, known: Tensor, generator: torch.Generator) -> Drawn:
        chance = torch.rand(
            tokens.shape, generator=generator, device=generator.device, dtype=torch.float64
        )
        made = torch.searchsorted(cumulated.to(chance.device), chance.T.contiguous()).T.clamp(
            max=law.shape[1] - 1
        )
        given = torch.arange(tokens.shape[1], device=tokens.device) < known[:, None]
        none = torch.zeros_like(known)
        return Drawn(
            torch.where(given, tokens, made),
            torch.arange(tokens.shape[1]).expand_as(tokens),
            none,
            none,
            none,
        )

    return Sampler(draw)


def fixed(forecast: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Sampler:
    """What a rule says: (tokens (N, T), known (N,)) -> (N, T), without a pass."""

    def draw(tokens: Tensor, known: Tensor, generator: torch.Generator) -> Drawn:
        none = torch.zeros_like(known)
        made = torch.from_numpy(forecast(tokens.cpu().numpy(), known.cpu().numpy()))
        return Drawn(made, torch.arange(tokens.shape[1]).expand_as(tokens), none, none, none)

    return Sampler(draw)


def drawn(
    sampler: Sampler,
    tokens: np.ndarray,
    known: np.ndarray,
    vocabulary: int,
    batch: int,
    generator: torch.Generator,
) -> Drawn:
    """One sample for each prompt, the first `known` (N,) of tokens (N, T), at most `batch` at a
    time; others are not handed over."""
    length, place = tokens.shape[1], generator.device
    size = min(batch, max(1, MOST // (length * vocabulary * sampler.chains)))
    shown = (
        torch.from_numpy(np.where(np.arange(length) < known[:, None], tokens, 0)).long().to(place)
    )
    limit, parts = torch.from_numpy(known).long().to(place), []
    for some, first in zip(shown.split(size), limit.split(size), strict=True):
        with torch.inference_mode():
            parts.append(sampler.draw(some, first, generator))
    names = [
        name for name in Drawn.__dataclass_fields__ if getattr(parts[0], name, None) is not None
    ]
    return Drawn(
        **{
            name: np.concatenate([getattr(part, name).cpu().numpy() for part in parts])
            for name in names
        }
    )


def costs(found: Drawn, each: int = 1) -> Metrics:
    """Rounds, passes and positions a sequence: mean with its 90 % interval, and the standard
    deviation over sequences; `each` in a row are samples of one prompt, and no more independent
    than that."""
    told = {
        "rounds": (found.rounds, "rounds"),
        "passes": (found.passes, "passes"),
        "positions": (found.positions, "positions"),
    }
    return {
        name: mean(values.astype(np.float64).reshape(-1, each).mean(1), unit)
        | {"sd": float(values.std())}
        for name, (values, unit) in told.items()
    }


def table(cells: dict[str, dict[Any, Any]]) -> list[dict[Any, Any]]:
    """Passes beside validity, a row for each cell, sampler and prompt of metrics.json's `cells`:
    what figure 4.6 plots."""
    rows = []
    for cell, entry in sorted(cells.items()):
        for sampler, prompts in entry["samplers"].items():
            for prompt, one in prompts.items():
                metrics = one["metrics"]
                name = next((name for name in VALID if name in metrics), None)
                row = {"cell": cell, "sampler": sampler, "prompt": prompt, "metric": name or "none"}
                for key, named in QUALITY.items():
                    row |= {named: metrics[name][key]} if name and key in metrics[name] else {}
                rows.append(
                    row
                    | {
                        f"{key}{suffix}": metrics[key][part]
                        for key in ("rounds", "passes", "positions")
                        for suffix, part in (("", "value"), ("_sd", "sd"))
                        if key in metrics
                    }
                )
    return rows
