"""From points to tokens: the two encoding schemes of thesis section 3.3.2, equations 3.1-3.4.

Traditional: context varphi(x, y), target psi(x). Shared: context phi(x) + nu(y), target phi(x),
with one phi for both. Every map has two hidden ReLU layers. Shapes: B batch, C context, T target, X
positions, I values, H width.

The shared scheme also adds a learned embedding of the token's kind, Linear(one-hot of context |
target). The thesis does not write it; we inferred it from the parameter counts asked of the shared
scheme (see fields/models/msa.py). It costs 3H parameters. `kind=False` leaves it out: for models
that never mix the two kinds of tokens, and whose counts have no room for it.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from stages.layers.mlp import mlp


class Shared(nn.Module):
    """Equations 3.3 and 3.4, plus the embedding of the token's kind."""

    def __init__(self, x_dim: int, i_dim: int, width: int, kind: bool = True):
        super().__init__()
        self.position = mlp(x_dim, width, width, width)  # phi
        self.value = mlp(i_dim, width, width, width)  # nu
        self.kind = nn.Linear(2, width) if kind else None

    def forward(
        self,
        context_x: Float[Tensor, "B C X"],
        context_y: Float[Tensor, "B C I"],
        target_x: Float[Tensor, "B T X"],
    ) -> Float[Tensor, "B C+T H"]:
        """Tokens, context first."""
        positions = self.position(torch.cat((context_x, target_x), 1))
        count = context_x.shape[1]
        if self.kind is None:
            return torch.cat(
                (positions[:, :count] + self.value(context_y), positions[:, count:]), 1
            )
        context, target = (
            self.kind.weight.T + self.kind.bias
        )  # each (H,): the map of a one-hot kind
        return torch.cat(
            (positions[:, :count] + self.value(context_y) + context, positions[:, count:] + target),
            1,
        )


class Traditional(nn.Module):
    """Equations 3.1 and 3.2; two maps tell the kinds apart, so `kind` changes nothing."""

    def __init__(self, x_dim: int, i_dim: int, width: int, kind: bool = True):
        super().__init__()
        self.context = mlp(x_dim + i_dim, width, width, width)  # varphi
        self.target = mlp(x_dim, width, width, width)  # psi

    def forward(
        self,
        context_x: Float[Tensor, "B C X"],
        context_y: Float[Tensor, "B C I"],
        target_x: Float[Tensor, "B T X"],
    ) -> Float[Tensor, "B C+T H"]:
        """Tokens, context first."""
        return torch.cat(
            (self.context(torch.cat((context_x, context_y), -1)), self.target(target_x)), 1
        )


ENCODERS = {"shared": Shared, "traditional": Traditional}
