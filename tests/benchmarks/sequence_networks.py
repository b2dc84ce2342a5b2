"""The networks of bench_sequences: a sigma-GPT of a size of params.yaml, and yardsticks of its
widths from left to right, with their training steps.

Shapes: B sequences, T tokens, V vocabulary, W width, H heads.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from stages import params, seeds
from stages.sequences import permutations
from stages.sequences.models import build
from tests.benchmarks import scaling

ARM, RATE = "random", 3e-3  # of sigma_gpt; learning rate


class PlainBlock(nn.Module):
    """Attention and a network of two layers, each after a norm and added to what came in;
    parameters as in our blocks."""

    def __init__(self, width: int, keys: int, hidden: int, heads: int, dropout: float):
        super().__init__()
        self.heads, self.split = heads, [heads * keys, heads * keys, width]
        self.attention_norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inward, self.outward = (
            nn.Linear(width, sum(self.split), bias=False),
            nn.Linear(width, width, bias=False),
        )
        self.widen, self.narrow, self.dropout = (
            nn.Linear(width, hidden),
            nn.Linear(hidden, width),
            nn.Dropout(dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, W) -> (B, T, W)."""
        parts = [
            part.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for part in self.inward(self.attention_norm(x)).split(self.split, 2)
        ]
        keys, values = parts[1].shape[3], parts[2].shape[3]
        query, key, value = (
            functional.pad(part, (0, max(keys, values) - part.shape[3])) for part in parts
        )  # fused: one width
        mixed = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=keys**-0.5
        )[..., :values]
        x = x + self.dropout(self.outward(mixed.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.narrow(self.widen(self.feed_norm(x)).relu()))


class Plain(nn.Module):
    """A plain causal transformer from left to right: of PlainBlocks, or (`encoder`) torch's own
    nn.TransformerEncoder, whose heads have width/heads columns for queries, keys and values."""

    def __init__(
        self,
        encoder: bool,
        vocabulary: int,
        length: int,
        width: int,
        keys: int,
        hidden: int,
        heads: int,
        blocks: int,
        dropout: float,
    ):
        super().__init__()
        self.embedding, self.positions = (
            nn.Embedding(vocabulary, width),
            nn.Embedding(length, width),
        )
        if encoder:
            layer = nn.TransformerEncoderLayer(
                width, heads, hidden, dropout, batch_first=True, norm_first=True
            )
            layer.self_attn.dropout = (
                0.0  # dropout of weights would forbid the fused kernels, which are the yardstick
            )
            self.blocks = nn.TransformerEncoder(layer, blocks, enable_nested_tensor=False)
        else:
            self.blocks = nn.Sequential(
                *(PlainBlock(width, keys, hidden, heads, dropout) for _ in range(blocks))
            )
        self.register_buffer(
            "mask",
            nn.Transformer.generate_square_subsequent_mask(length) if encoder else None,
            persistent=False,
        )
        self.readout = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) -> (B, T, V): logits[:, i] for the token i given those before it."""
        x = self.embedding(functional.pad(tokens[:, :-1], (1, 0))) + self.positions.weight
        causal = (
            {} if self.mask is None else {"mask": self.mask, "is_causal": True}
        )  # torch then hands its kernels the word, no mask
        return self.readout(self.blocks(x, **causal))


YARDSTICKS = {
    "torch encoder": True,
    "torch attention": False,
}  # name -> whether of torch's own encoder


def made(
    models: dict[str, params.Model],
    size: str,
    vocabulary: int,
    length: int,
    yardstick: str | None = None,
) -> nn.Module:
    """A new sigma-GPT of a size of params.yaml, or a yardstick of its widths, with the dropout
    of the lab's arm."""
    seeds.everything(0)
    arm, sizes = models["sigma_gpt"].arms[ARM], models["sigma_gpt"].sizes[size]
    if yardstick:
        return Plain(YARDSTICKS[yardstick], vocabulary, length, **sizes, dropout=arm["dropout"])
    return build(
        "sigma_gpt",
        {key: value for key, value in arm.items() if key not in ("order", "curriculum")},
        sizes,
        vocabulary,
        length,
    )


def counted(model: nn.Module) -> int:
    """How many parameters a model has."""
    return sum(p.numel() for p in model.parameters())


def step(
    model: nn.Module,
    kind: str | None,
    batch: Callable[[], Tensor],
    generator: torch.Generator,
    rate: float = RATE,
) -> scaling.Call:
    """A training step on `batch()` (B, T): of sigma-GPT in orders of a kind, of a yardstick
    (None) as it is. Returns nats a token."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    model.train()

    def call() -> float:
        tokens = asked = batch()
        if kind is None:
            logits = model(tokens)
        else:
            order = permutations.draw(kind, *tokens.shape, generator)
            logits, asked = model(tokens, order), tokens.gather(1, order)
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(logits.transpose(1, 2), asked)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return call
