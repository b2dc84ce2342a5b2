"""SigmaGPT's arithmetic for reading alone: no gradient, no dropout, few small operations (thesis
section D.3 decodes a token a pass).

At batch 1 a pass is dozens of tiny operations whose start costs more than their sums. So queries,
keys and values of all heads come out of one product at the width that kernels want (zeros fill the
narrower up), a branch is added by the product that makes it, and activations overwrite what they
read. On a CPU wide branches go slab by slab: what lies between two products stays in its cache.
Equal to `SigmaGPT.run` to rounding: tests hold every reader against the training forward.
Shapes: N steps of all rows, R rows, Q steps of each, W width, H heads, L lanes (columns of a head),
V vocabulary.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.layers.kernels.strip import Mix
from stages.sequences.backbone import Block
from stages.sequences.models.sigma_gpt import SigmaGPT

SLAB = 1 << 15  # numbers between the products of a branch that are worked on together


class Norm(NamedTuple):
    """Arguments of layer_norm after the first."""

    shape: tuple[int, ...]
    weight: Tensor
    bias: Tensor | None
    eps: float

    @classmethod
    def of(cls, norm: nn.LayerNorm) -> "Norm":
        """What a module holds."""
        return cls(tuple(norm.normalized_shape), norm.weight, norm.bias, norm.eps)


class Layer(NamedTuple):
    """A block's weights as they are used: `inward` (W, 3 H L), `outward` (H L, W), `widen` (W,
    hidden), `narrow` (hidden, W)."""

    before: Norm
    inward: Tensor
    outward: Tensor
    between: Norm
    widen: Tensor
    wide_bias: Tensor | None
    narrow: Tensor
    narrow_bias: Tensor | None
    activation: Callable[[Tensor], Tensor]

    @classmethod
    def of(cls, block: Block) -> "Layer":
        """Copies weights only where the heads' queries and values differ in width."""
        inward = block.inward.weight
        outward = block.outward.weight
        heads = block.heads
        lanes = block.lanes
        if not block.keys == block.values == lanes:
            parts = inward.split([heads * size for size in (block.keys, block.keys, block.values)])
            inward = torch.cat(
                [
                    functional.pad(
                        part.unflatten(0, (heads, -1)), (0, 0, 0, lanes - len(part) // heads)
                    ).flatten(0, 1)
                    for part in parts
                ]
            )
            outward = functional.pad(
                outward.unflatten(1, (heads, -1)), (0, lanes - block.values)
            ).flatten(1)
        activation = torch.relu_ if block.activation is functional.relu else block.activation
        return cls(
            Norm.of(block.attention_norm),
            inward.T,
            outward.T,
            Norm.of(block.feed_norm),
            block.widen.weight.T,
            block.widen.bias,
            block.narrow.weight.T,
            block.narrow.bias,
            activation,
        )


class Lean:
    """embed, then run, then answer: SigmaGPT.run. `heads`, `lanes` and `scale` are what an
    attention must know."""

    if TYPE_CHECKING:
        scale: float

    @torch.inference_mode()
    def __init__(self, model: SigmaGPT):
        block, head = model.blocks[0], model.readout
        self.heads, self.lanes, self.scale = block.heads, block.lanes, block.keys**-0.5
        self.tokens, self.positions = model.embedding.weight, model.positions
        self.layers = [Layer.of(block) for block in model.blocks]
        # a norm, where texts are read
        self.norm = Norm.of(model.norm) if model.text else None  # type: ignore[arg-type]
        self.readout, self.bias = (
            (self.tokens.T, None) if head is None else (head.weight.T, head.bias)
        )
        self.slab = (
            max(1, SLAB // block.widen.out_features)
            if self.tokens.device.type == "cpu"
            else 1 << 62
        )

    def places(self, own: Tensor, target: Tensor) -> Tensor:
        """What both positions of steps (...) add to their tokens, (..., W)."""
        return self.positions(torch.stack((own, target), -1)).flatten(-2)

    def run(self, seen: Tensor, places: Tensor, mix: Mix) -> Tensor:
        """Steps (N,) that carry the tokens `seen` at `places` (N, W) -> what the head reads, (N,
        W)."""
        x = functional.embedding(seen, self.tokens) + places
        for index, layer in enumerate(self.layers):
            parts = torch.mm(functional.layer_norm(x, *layer.before), layer.inward).view(
                len(x), 3, self.heads, self.lanes
            )
            x = torch.addmm(x, mix(index, parts).reshape(len(x), -1), layer.outward)
            for some in x.split(self.slab) if len(x) > self.slab else (x,):
                self._feed(some, layer)
        return x

    def answer(self, x: Tensor) -> Tensor:
        """(N, W) -> logits (N, V)."""
        return _product(
            x if self.norm is None else functional.layer_norm(x, *self.norm),
            self.readout,
            self.bias,
        )

    @staticmethod
    def _feed(x: Tensor, layer: Layer) -> None:
        """Add the second branch in place."""
        wide = layer.activation(
            _product(functional.layer_norm(x, *layer.between), layer.widen, layer.wide_bias)
        )
        if layer.narrow_bias is not None:
            x.add_(layer.narrow_bias)
        x.addmm_(wide, layer.narrow)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.mm(x, weight) if bias is None else torch.addmm(bias, x, weight)
