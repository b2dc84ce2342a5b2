"""Neural processes as one writes them from the equations: every pair's numbers made at once, layers
of torch's own. What ours are raced against, with our weights where both have the same.

Shapes: B sets, Q queries, N keys, X axes, A heads, H width.
"""

import torch
from torch import Tensor, nn

from stages.batches import Batch
from stages.layers.mlp import mlp
from stages.layers.processes import asked, context_features
from stages.layers.relative import RelativeAttention


def attention(layer: RelativeAttention, queries, memory, query_x, memory_x) -> Tensor:
    """Document N, equation 6.2.3: [Delta, D] of all pairs, an MLP, a softmax."""
    query = layer.query(queries).unflatten(2, (layer.heads, -1)).transpose(1, 2)
    key, value = (part.unflatten(2, (layer.heads, -1)).transpose(1, 2)
                  for part in layer.key_value(memory).chunk(2, -1))  # fmt: skip
    dots = (query @ key.transpose(2, 3) * query.shape[-1] ** -0.5).permute(0, 2, 3, 1)
    delta = query_x[:, :, None] - memory_x[:, None]
    logits = layer.logits.network(torch.cat((dots, delta), -1)).permute(0, 3, 1, 2)
    return layer.outward((logits.softmax(-1) @ value).transpose(1, 2).flatten(2))


class PlainTETNP(nn.Module):
    """TETNP of a model of ours, all pairs at once."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, batch: Batch):
        model = self.model
        context, target = (
            model.encoder(context_features(batch.context_y)),
            model.encoder(asked(batch.target_x, model.i_dim)),
        )
        x, t = batch.context_x, batch.target_x
        for layer in model.layers:
            context = self.layer(layer, context, context, x, x)
            target = self.layer(layer, target, context, t, x)
        return model.law.predict(model.readout(target))

    @staticmethod
    def layer(layer, tokens, memory, x, memory_x):
        norm = layer.mixing_norm
        tokens = tokens + attention(layer.mixing, norm(tokens), norm(memory), x, memory_x)
        return tokens + layer.feed(layer.feed_norm(tokens))


class PlainTNP(nn.Module):
    """TNP on nn.TransformerEncoder: context and targets in one sequence, all attend to the
    context alone by a mask (Nguyen and Grover 2022)."""

    def __init__(self, model: nn.Module, width: int, heads: int, layers: int):
        super().__init__()
        self.encoder, self.readout, self.law = model.encoder, model.readout, model.law
        layer = nn.TransformerEncoderLayer(
            width, heads, width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.heads, self.i_dim = heads, model.i_dim

    def forward(self, batch: Batch):
        contexts, targets = batch.context_x.shape[1], batch.target_x.shape[1]
        tokens = self.encoder(
            torch.cat((context_features(batch.context_y, batch.context_x),
                       asked(batch.target_x, self.i_dim, batch.target_x)), 1)
        )  # fmt: skip
        hidden = torch.zeros(contexts + targets, contexts + targets, dtype=torch.bool)
        hidden[:, contexts:] = True
        read = self.layers(tokens, mask=hidden)
        return self.law.predict(self.readout(read[:, contexts:]))


class PlainReading(nn.Module):
    """A pre-norm layer on nn.MultiheadAttention, queries reading a memory."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = mlp(width, width, width)

    def forward(self, tokens: Tensor, memory: Tensor) -> Tensor:
        kept = self.norm(memory)
        read, _ = self.attention(self.norm(tokens), kept, kept, need_weights=False)
        tokens = tokens + read
        return tokens + self.feed(self.feed_norm(tokens))


class PlainLBANP(nn.Module):
    """LBANP on nn.MultiheadAttention."""

    def __init__(self, model: nn.Module, width: int, heads: int, layers: int):
        super().__init__()
        self.encoder, self.readout, self.law = model.encoder, model.readout, model.law
        self.latents, self.i_dim = model.latents, model.i_dim
        self.stacks = nn.ModuleList(
            nn.ModuleList(PlainReading(width, heads) for _ in range(3)) for _ in range(layers)
        )

    def forward(self, batch: Batch):
        context = self.encoder(context_features(batch.context_y, batch.context_x))
        target = self.encoder(asked(batch.target_x, self.i_dim, batch.target_x))
        latents = self.latents.expand(len(context), -1, -1)
        for gather, mix, read in self.stacks:
            latents = gather(latents, context)
            latents = mix(latents, latents)
            target = read(target, latents)
        return self.law.predict(self.readout(target))
