"""The frame that all mixers share: layers in five layouts (thesis B.6), and a network a task.

label: embeddings and places, layers, the mean over real tokens, classes (section 2.5.1). value: two
convolutions of 5, one mixing with a residual, two convolutions (section B.2.4; the slides have no
residual, with which attention learns in half of the steps); without mixing a further convolution
stands there. next: a causal stack that says the next token.
Shapes: B batch, N tokens, H width, V classes or words.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from stages.tokens.parts.fixed import Unmixed
from stages.tokens.parts.places import sinusoid

LAYOUTS = ("serialized", "post_norm", "pre_norm", "rezero", "parallel")
KERNEL = 5
Mixer = Callable[[], nn.Module]  # makes a new one


@dataclass(frozen=True)
class Frame:
    """What surrounds the mixers: the task, its words (0 is padding) and classes, the longest
    sequence, sizes, layout; whether features are mixed at all."""

    task: str
    vocabulary: int
    outputs: int
    longest: int
    width: int
    layers: int
    feed: int
    layout: str
    features: bool = True

    def network(self, mixer: Mixer) -> nn.Module:
        """The task's network."""
        return {"label": Labels, "value": Values, "next": Next}[self.task](self, mixer)


class Layer(nn.Module):
    """A token mixing and a feature mixing W2 gelu(W1 x), laid out as equations B.3 to B.11 say."""

    def __init__(self, frame: Frame, mixer: Mixer):
        super().__init__()
        width, self.layout = frame.width, frame.layout
        self.mix = mixer()
        self.feed: nn.Module = nn.Identity()
        if frame.features:
            wide = nn.Linear(width, frame.feed), nn.GELU(), nn.Linear(frame.feed, width)
            self.feed = nn.Sequential(*wide)
        if self.layout == "rezero":
            self.share = nn.Parameter(torch.zeros(2))
        else:
            self.norms = nn.ModuleList(
                nn.LayerNorm(width) for _ in range(1 if self.layout == "parallel" else 2)
            )

    def forward(
        self, tokens: Float[Tensor, "B N H"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N H"]:
        """New tokens."""
        if self.layout == "rezero":  # B.7, B.8
            kept = tokens + self.share[0] * self.mix(tokens, real)
            return kept + self.share[1] * self.feed(kept)
        if self.layout == "post_norm":  # B.3, B.4
            kept = self.norms[0](tokens + self.mix(tokens, real))
            return self.norms[1](kept + self.feed(kept))
        given = self.norms[0](tokens)
        if self.layout == "parallel":  # B.9
            return tokens + self.mix(given, real) + self.feed(given)
        kept = tokens + self.mix(given, real)
        rest = tokens if self.layout == "serialized" else kept  # B.10, B.11; B.5, B.6
        return rest + self.feed(self.norms[1](kept))


class Labels(nn.Module):
    """A label of a sequence."""

    def __init__(self, frame: Frame, mixer: Mixer):
        super().__init__()
        self.embedding = nn.Embedding(frame.vocabulary, frame.width)
        nn.init.normal_(self.embedding.weight, std=0.5)
        self.layers = nn.ModuleList(Layer(frame, mixer) for _ in range(frame.layers))
        self.norm, self.outward = (nn.LayerNorm(frame.width), nn.Linear(frame.width, frame.outputs))

    def forward(
        self, inputs: Int[Tensor, "B N"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B V"]:
        """Logits of the classes."""
        tokens = self.embedding(inputs)
        tokens = tokens + sinusoid(tokens.shape[1], tokens.shape[2]).to(tokens)
        for layer in self.layers:
            tokens = layer(tokens, real)
        known = self.norm(tokens) * real[..., None]
        return self.outward(known.sum(1) / real.sum(1, keepdim=True))


class Values(nn.Module):
    """A value a place of a sequence of numbers."""

    def __init__(self, frame: Frame, mixer: Mixer):
        super().__init__()
        width = frame.width
        self.mix = mixer()
        self.convolves = isinstance(self.mix, Unmixed)  # a further convolution in its place
        sizes = [1, width, width] + [width] * self.convolves + [width, 1]
        self.convolutions = nn.ModuleList(
            nn.Conv1d(one, other, KERNEL, padding=KERNEL // 2)
            for one, other in itertools.pairwise(sizes)
        )

    def forward(
        self, inputs: Float[Tensor, "B N"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N"]:
        """A value a place."""
        tokens = inputs[:, None]
        for place, convolution in enumerate(self.convolutions):
            tokens = convolution(tokens)
            if place + 1 < len(self.convolutions):
                tokens = functional.relu(tokens)
            if place == 1 and not self.convolves:
                tokens = tokens + self.mix(tokens.mT, real).mT
        return tokens[:, 0]


class Next(nn.Module):
    """The next token at every place of a sequence, from the tokens up to it."""

    def __init__(self, frame: Frame, mixer: Mixer):
        super().__init__()
        self.embedding = nn.Embedding(frame.vocabulary, frame.width)
        self.places = nn.Embedding(frame.longest, frame.width)
        for table in (self.embedding, self.places):
            nn.init.normal_(table.weight, std=0.5)
        self.layers = nn.ModuleList(Layer(frame, mixer) for _ in range(frame.layers))
        self.norm, self.outward = (
            nn.LayerNorm(frame.width),
            nn.Linear(frame.width, frame.vocabulary),
        )

    def forward(
        self, inputs: Int[Tensor, "B N"], real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N V"]:
        """Logits of the token after each."""
        tokens = self.embedding(inputs) + self.places.weight[: inputs.shape[1]]
        for layer in self.layers:
            tokens = layer(tokens, real)
        return self.outward(self.norm(tokens))
