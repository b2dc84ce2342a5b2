"""Causal multi-head attention over the last S times, with a relative bias: none, data-independent
(document R, equation 33) or data-dependent (equation 34).

As errata have it: the mask is added (0 on past and present, minus infinity on the future),
products are scaled by 1 / sqrt(d), the data-independent bias is added after that. Shapes: B batch,
Q queries, N keys, whose last Q times are the queries' own, C heads, d their width, S span.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Attention(nn.Module):
    """width H of queries and outputs, source: width of what is attended to, span S. `bias`: none,
    distance (a number a distance and head) or content (vectors u, v and one a distance)."""

    def __init__(
        self, width: int, source: int, heads: int, span: int, bias: str, dropout: float = 0.0
    ):
        super().__init__()
        self.heads, self.span, self.bias = heads, span, bias
        head = width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.pair = nn.Linear(source, 2 * width, bias=False)
        self.outward = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        if bias == "distance":
            self.by_distance = nn.Parameter(torch.zeros(heads, span))
        if bias == "content":
            self.vectors = nn.Parameter(torch.randn(heads, span, head) * head**-0.5)
            self.of_key = nn.Parameter(torch.zeros(heads, 1, head))
            self.of_place = nn.Parameter(torch.zeros(heads, 1, head))

    def forward(
        self, queries: Float[Tensor, "B Q H"], keys: Float[Tensor, "B N I"]
    ) -> Float[Tensor, "B Q H"]:
        """What each query reads from the keys at its own time and the S - 1 before it."""
        count, known = queries.shape[1], keys.shape[1]
        times = torch.arange(known, device=keys.device)
        distance = times[known - count :, None] - times
        logits, values = self._logits(queries, keys, distance.clamp(0, self.span - 1))
        if count > 1 or known > self.span:  # else the one query sees all
            logits.masked_fill_((distance < 0) | (distance >= self.span), -torch.inf)
        weights = self.dropout(logits.softmax(-1))
        read = (weights @ values).transpose(1, 2).flatten(2)
        return self.outward(read)

    def _logits(self, queries: Tensor, keys: Tensor, distance: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, C, Q, N) and values (B, C, N, d)."""
        q = self._split(self.query(queries))
        k, v = (self._split(part) for part in self.pair(keys).chunk(2, -1))
        scale = q.shape[-1] ** -0.5
        if self.bias == "none":
            return (q * scale) @ k.transpose(-1, -2), v
        if self.bias == "distance":
            logits = (q * scale) @ k.transpose(-1, -2)
            return logits.add_(self.by_distance[:, distance]), v
        content = (q + self.of_key) @ k.transpose(-1, -2)
        place = (q + self.of_place) @ self.vectors.transpose(-1, -2)  # B C Q S
        place = place.gather(-1, distance.expand(*place.shape[:2], *distance.shape))
        return (content + place) * scale, v

    def _split(self, joined: Tensor) -> Tensor:
        """(B, N, H) -> (B, C, N, d)."""
        return joined.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class Cross(nn.Module):
    """Multi-head attention to all of another sequence, of the same width H."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.pair = nn.Linear(width, 2 * width, bias=False)
        self.outward = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Float[Tensor, "B Q H"], keys: Float[Tensor, "B N H"]
    ) -> Float[Tensor, "B Q H"]:
        """What each query reads (R, equations 26 to 28)."""
        q = self.query(queries).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.pair(keys).chunk(2, -1)
        )
        logits = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
        read = self.dropout(logits.softmax(-1)) @ v
        return self.outward(read.transpose(1, 2).flatten(2))
