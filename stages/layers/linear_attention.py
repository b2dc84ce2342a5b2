"""Attention that is linear in the points (Katharopoulos et al. 2020; document N, equation 7.3.1).

H_q = phi(q) sum_n phi(k_n) v_n' / phi(q) sum_n phi(k_n), phi(x) = elu(x) + 1: above 0, so that
nothing divides by 0 (N prints elu alone, whose sum can vanish). Nothing of queries x keys is made.
Shapes: B sets, Q queries, N keys, A heads, h numbers a head, H = A h.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional


class LinearAttention(nn.Module):
    """With projections in (no biases) and out."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.outward = nn.Linear(width, width)

    def read(
        self,
        queries: Float[Tensor, "B Q H"],
        memory: Float[Tensor, "B N H"],
        real: Bool[Tensor, "B N"],
    ) -> Float[Tensor, "B Q H"]:
        """What queries read from the `real` tokens of a memory; the bias where none is real."""
        query = functional.elu(self.query(queries).unflatten(2, (self.heads, -1))) + 1
        kept = self.key_value(memory).unflatten(2, (2, self.heads, -1))
        key = (functional.elu(kept[:, :, 0]) + 1) * real[:, :, None, None]
        told = torch.einsum("bnah,bnag->bahg", key, kept[:, :, 1])
        mass = torch.einsum("bqah,bah->bqa", query, key.sum(1))
        mixed = torch.einsum("bqah,bahg->bqag", query, told)
        # no key at all: 0 / 1
        mass = mass.masked_fill(~real.any(1)[:, None, None], 1)
        return self.outward((mixed / mass[..., None]).flatten(2))
