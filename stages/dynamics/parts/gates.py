"""Gates that join two vectors, as one module that every cell and every residual takes (document R,
section 2.3.1, equations 19 and 22 to 25).

G(update, state) = g1 * update + g2 * state. additive: both 1. rate: g1 = sigmoid(b), learned, g2 =
1 - g1. coupled: g1 = sigmoid(W s + b), g2 = 1 - g1. dependent: each a sigmoid of its own. The maps
W s + b belong to the owner, which makes all of its maps of s at once; `maps` says how many a gate
takes. Shapes: ... any, H width.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

MAPS = {"additive": 0, "rate": 0, "coupled": 1, "dependent": 2}


class Gate(nn.Module):
    """kind: of MAPS; width H. A learned rate begins at `rate`, the share of the update."""

    def __init__(self, kind: str, width: int, rate: float = 0.5):
        super().__init__()
        self.kind, self.maps = kind, MAPS[kind]
        start = torch.full((width,), rate).logit()
        self.rate = nn.Parameter(start) if kind == "rate" else None

    def forward(
        self,
        update: Float[Tensor, "*B H"],
        state: Float[Tensor, "*B H"],
        drive: Float[Tensor, "*B M"],
    ) -> Float[Tensor, "*B H"]:
        """The two joined; `drive` holds the gate's maps W s + b side by side (M = maps * H)."""
        if self.kind == "additive":
            return update + state
        if self.rate is not None:
            return torch.lerp(state, update, self.rate.sigmoid())
        if self.kind == "coupled":
            return torch.lerp(state, update, drive.sigmoid())
        first, second = drive.sigmoid().chunk(2, -1)
        return first * update + second * state


class Residual(nn.Module):
    """A transformer's residual connection as a gate: s is the concatenation of both vectors (R,
    after equation 25)."""

    def __init__(self, kind: str, width: int):
        super().__init__()
        self.gate = Gate(kind, width)
        maps = self.gate.maps
        self.drive = nn.Linear(2 * width, maps * width) if maps else None

    def forward(
        self, update: Float[Tensor, "*B H"], state: Float[Tensor, "*B H"]
    ) -> Float[Tensor, "*B H"]:
        """The residual stream after an update."""
        if self.drive is None:
            return self.gate(update, state, update[..., :0])
        return self.gate(update, state, self.drive(torch.cat((update, state), -1)))
