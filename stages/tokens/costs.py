"""What a layer of token mixing costs by formula (thesis B.4 with its errata; figure 2.2a without
the clock): products of matrices of one layer on one example, at the thesis' sizes; from which
length on it has fewer than attention; and what a whole network has of one example, the E of the
cost E D H (Schwartz et al. 2020; thesis section 2.2).

H = 256, F = 512, four heads, MLPMixer's length 250 and gMLP's 100 (settings 1.5) where a sequence
is no longer; HyperMLP, which the thesis does not know, has as many weights as attention, but for
its places. A product of N x K and K x M counts 2 N K M. Times are in tests/benchmarks.
"""

import bisect
from typing import Any

from torch import nn

from stages.tokens.parts.attending import LinearAttention, SelfAttention
from stages.tokens.parts.dynamic import DynamicMLP
from stages.tokens.parts.fixed import SpatialGating, TokenMLP
from stages.tokens.parts.frame import Labels
from stages.tokens.parts.hyper import HyperMix

WIDTH, HIDDEN, HEADS = 256, 512, 4
ROUTE, READ, RANK = 128, 208, 2  # of HyperMLP, over its two heads
LENGTHS = tuple(2**power for power in range(5, 17))  # 32 to 65,536


def mixers() -> dict[str, tuple[Any, int]]:
    """Each mixer at the thesis' sizes, and the longest sequence that it can take."""
    longest = LENGTHS[-1]
    found: dict[str, tuple[nn.Module, int]] = {
        "hypermixing": (HyperMix(WIDTH, HIDDEN, 1, True, "layer", False), longest),
        "hypermixing, untied": (HyperMix(WIDTH, HIDDEN, 1, False, "layer", False), longest),
        "hypermixing, 8 heads": (HyperMix(WIDTH, HIDDEN, 8, True, "layer", False), longest),
        "self_attention": (SelfAttention(WIDTH, HEADS, False), longest),
        "linear_attention": (LinearAttention(WIDTH, HEADS), longest),
        "hyper_mlp": (DynamicMLP(WIDTH, longest, 2, ROUTE, READ, RANK, False), longest),
        "mlp_mixer": (TokenMLP(WIDTH, 250, HIDDEN), 250),
        "gmlp": (SpatialGating(WIDTH, 100, HIDDEN), 100),
    }
    return found


def crossings() -> dict[str, int]:
    """The length from which each mixer has fewer FLOPs than attention, up to the longest; 1 where
    it always has. What ends at a length, or has more at the longest, has none."""
    found, longest = {}, LENGTHS[-1]
    attention = mixers()["self_attention"][0]
    for name, (mixer, most) in mixers().items():
        if most < longest or mixer.flops(longest) >= attention.flops(longest):
            continue
        lengths = range(1, longest + 1)
        found[name] = bisect.bisect_left(
            lengths, True, key=lambda count: mixer.flops(count) < attention.flops(count)
        ) + 1  # fmt: skip
    return found


def example(network: Labels, count: int) -> int:
    """FLOPs of a network that labels a sequence of so many tokens: its mixers', and two a weight
    and token of its feature mixers, two a weight of its classes."""
    layers: list[Any] = [*network.layers]
    mixed = sum(layer.mix.flops(count) for layer in layers)
    parts = (one for layer in layers for one in layer.feed.modules())
    featured = sum(one.weight.numel() for one in parts if isinstance(one, nn.Linear))
    return int(mixed + 2 * count * featured + 2 * network.outward.weight.numel())


def curves() -> dict[str, dict[str, int]]:
    """FLOPs by mixer and length."""
    return {
        name: {str(count): mixer.flops(count) for count in LENGTHS if count <= most}
        for name, (mixer, most) in mixers().items()
    }
