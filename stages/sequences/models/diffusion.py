"""Discrete uniform diffusion (thesis section 4.2.6; Austin et al. 2021): tokens are replaced at
random, a network tells what they were.

The noise at time t in [0, 1] keeps a token with probability a(t) = cos(pi t / 2)^2 and otherwise
draws one of all V, each as likely: q(x_t | x_0) = a(t) [x_t = x_0] + (1 - a(t)) / V. The network
sees x_t and t and predicts x_0. The thesis prints no equation and says that only the objective
differs from sigma-GPT; here it is Austin's cross-entropy, E_t -log p(x_0 | x_t), the second term of
their equation 5 (`loss`). Their variational term is `bound`, an upper bound on -log p(x_0). A
sample takes K passes whatever the data. Given tokens are never noised, bear a mark, and are not
predicted. The network is sigma-GPT's, backbone.py, not causal: each step carries the token of a
position and is asked for the same position. To it diffusion adds two rows that mark what is given,
and a clock: sines of t, mixed by one layer. Shapes: B batch, T length, V vocabulary, W width.
Losses in nats per token that is not given.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional

from stages.layers.kernels import tiles
from stages.sequences.backbone import BASE, Backbone


def keep(time: Tensor) -> Tensor:
    """a(t): the probability that a token is still itself at time t; 1 at 0 and 0 at 1."""
    return torch.cos(time.clamp(0.0, 1.0) * (math.pi / 2)).square() * (time < 1)


def noised(
    tokens: Int64[Tensor, "B T"],
    time: Float[Tensor, " B"],
    vocabulary: int,
    generator: torch.Generator,
    given: Bool[Tensor, "B T"] | None = None,
) -> Int64[Tensor, "B T"]:
    """A draw of q(x_t | x_0), each sequence at its own time; given tokens stay."""
    kept = torch.rand(tokens.shape, generator=generator, device=tokens.device) < keep(time)[:, None]
    if given is not None:
        kept = kept | given
    return torch.where(
        kept,
        tokens,
        torch.randint(vocabulary, tokens.shape, generator=generator, device=tokens.device),
    )


def earlier(
    noisy: Int64[Tensor, "B T"],
    clean: Float[Tensor, "B T V"],
    time: Float[Tensor, " B"],
    before: Float[Tensor, " B"],
) -> Float[Tensor, "B T V"]:
    """p(x_s | x_t) for s = before < t = time, where x_0 has the probabilities `clean`: sum over x_0
    of q(x_s | x_t, x_0) p(x_0).

    By Bayes q(x_s | x_t, x_0) = q(x_t | x_s) q(x_s | x_0) / q(x_t | x_0), so the sum needs V terms,
    not V^2.
    """
    count = clean.shape[-1]
    now, then = keep(time)[:, None, None], keep(before)[:, None, None]
    ratio = now / then
    same = functional.one_hot(noisy, count).to(clean.dtype)
    weight = clean / (now * same + (1 - now) / count)
    return (ratio * same + (1 - ratio) / count) * (
        then * weight + (1 - then) / count * weight.sum(-1, keepdim=True)
    )


def everyone(packed: Tensor, heads: int, keys: int) -> Tensor:
    """Attention to all positions."""
    return tiles.attend(packed, heads, keys, causal=False)


def more_given(
    given: Bool[Tensor, "B T"], share: float, generator: torch.Generator
) -> Bool[Tensor, "B T"]:
    """What is given, and in a `share` of the sequences a random part of the rest too: scattered
    in half of them, else a beginning."""
    chosen, part, scattered = torch.rand(3, len(given), 1, generator=generator, device=given.device)
    place = torch.arange(given.shape[1], device=given.device) / given.shape[1]
    at = torch.where(
        scattered < 0.5, torch.rand(given.shape, generator=generator, device=given.device), place
    )
    return given | ((at < part) & (chosen < share))


class Diffusion(Backbone):
    """The backbone, each step seeing all.

    `scale`: what tokens, positions and marks are multiplied by; `loudness`: what the clock is;
    `fastest`: radians of its fastest sine from t = 0 to 1. `prompts`: share of the sequences that
    are given more than the data set's prompt while the model is trained, so that it can go on from
    any; the thesis' was trained without and took none (its table D.1): 0.
    """

    if TYPE_CHECKING:
        frequency: Tensor

    ordered = False

    def __init__(
        self,
        vocabulary: int,
        length: int,
        width: int = 32,
        keys: int = 32,
        hidden: int = 32,
        heads: int = 2,
        blocks: int = 2,
        positions: str = "sinusoidal",
        style: str = "plain",
        dropout: float = 0.1,
        axes: Any = None,
        scale: float = 1.0,
        loudness: float = 1.0,
        fastest: float = 1000.0,
        prompts: float = 0.5,
    ):
        super().__init__(
            vocabulary, length, width, keys, hidden, heads, blocks, positions, style, dropout, axes
        )
        self.prompts, self.scale, self.loudness = prompts, scale, loudness
        self.mark, self.clock = nn.Embedding(2, width), nn.Linear(width, width)
        frequency = BASE ** (
            -torch.arange(width // 2, dtype=torch.float64) / max(width // 2 - 1, 1)
        )
        self.register_buffer("frequency", (fastest * frequency).float(), persistent=False)
        nn.init.normal_(self.mark.weight, std=0.02)  # as the tokens

    @classmethod
    def problems(cls, given: Mapping[str, Any]) -> list[str]:
        """The share of sequences that are given more is one; the others are numbers above 0."""
        found, share = super().problems(given), given.get("prompts", 0)
        if not (type(share) in (int, float) and 0 <= share <= 1):
            found.append(f"prompts must be a number from 0 to 1, not {share!r}")
        return found + [
            f"{key} must be a number above 0, not {given[key]!r}"
            for key in ("scale", "loudness", "fastest")
            if key in given
            and not (type(given[key]) in (int, float) and 0 < given[key] < float("inf"))
        ]

    def forward(
        self,
        noisy: Int64[Tensor, "B T"],
        time: Float[Tensor, " B"],
        given: Bool[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Logits of x_0 at every position, from x_t and t."""
        angle = time[:, None] * self.frequency
        clock = self.clock(torch.cat((angle.sin(), angle.cos()), 1))[:, None]
        marked = torch.zeros_like(noisy) if given is None else given.long()
        place = torch.arange(noisy.shape[1], device=noisy.device).expand_as(noisy)
        beside = self.scale * self.mark(marked) + self.loudness * clock
        return self.run(noisy, place, place, everyone, beside, self.scale)

    def loss(
        self,
        tokens: Int64[Tensor, "B T"],
        generator: torch.Generator,
        given: Bool[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, ""]:
        """Mean of -log p(x_0 | x_t) over the tokens that are not given, t uniform on (0, 1),
        stratified over the batch; 0 where all are."""
        if self.training and self.prompts:
            given = more_given(
                torch.zeros_like(tokens, dtype=torch.bool) if given is None else given,
                self.prompts,
                generator,
            )
        time = self._times(len(tokens), generator, tokens.device)
        logits = self(noised(tokens, time, self.vocabulary, generator, given), time, given)
        nats = functional.cross_entropy(logits.transpose(1, 2), tokens, reduction="none")
        free = torch.ones_like(nats) if given is None else (~given).to(nats.dtype)
        return (nats * free).sum() / free.sum().clamp(min=1)

    def bound(
        self,
        tokens: Int64[Tensor, "B T"],
        generator: torch.Generator,
        steps: int,
        given: Bool[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, " B"]:
        """Unbiased draws of each sequence's variational bound for a model of `steps` steps: steps *
        KL(q(x_s | x_t, x_0) || p(x_s | x_t)) at one random step, a mean over what is not given.
        The prior's term is 0, for nothing is kept at time 1."""
        last = (
            (self._times(len(tokens), generator, tokens.device) * steps)
            .floor()
            .clamp(max=steps - 1)
        )
        time, before = (last + 1) / steps, last / steps
        noisy = noised(tokens, time, self.vocabulary, generator, given)
        true = earlier(noisy, functional.one_hot(tokens, self.vocabulary).float(), time, before)
        guess = earlier(noisy, self(noisy, time, given).softmax(-1), time, before)
        divergence = (torch.xlogy(true, true) - torch.xlogy(true, guess.clamp(min=1e-30))).sum(-1)
        free = torch.ones_like(divergence) if given is None else (~given).to(divergence.dtype)
        return steps * (divergence * free).sum(1) / free.sum(1).clamp(min=1)

    @torch.no_grad()
    def sample(
        self,
        tokens: Int64[Tensor, "B T"],
        given: Bool[Tensor, "B T"],
        steps: int,
        generator: torch.Generator,
    ) -> Int64[Tensor, "B T"]:
        """Sequences that agree with `tokens` where `given`, in `steps` >= 1 passes from pure
        noise; put the model in eval mode before."""
        x = torch.where(
            given,
            tokens,
            torch.randint(self.vocabulary, tokens.shape, generator=generator, device=tokens.device),
        )
        for step in range(steps, 0, -1):
            time, before = (
                torch.full((len(x),), k / steps, device=x.device) for k in (step, step - 1)
            )
            law = earlier(x, self(x, time, given).softmax(-1), time, before)
            drawn = torch.multinomial(law.flatten(0, 1), 1, generator=generator).view_as(x)
            x = torch.where(given, tokens, drawn)
        return x

    def _times(self, count: int, generator: torch.Generator, device: torch.device) -> Tensor:
        """(count,) uniform on (0, 1), one in each of `count` equal parts, in random order of the
        sequences."""
        part = torch.randperm(count, generator=generator, device=device)
        return (part + torch.rand(count, generator=generator, device=device)) / count
