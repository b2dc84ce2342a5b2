"""The recurrent highway network: `depth` transitions within a time, each joined with its state by a
gate that can be swapped (document R, equations 9 to 12).

By default the gate is coupled, which R takes as canonical. As printed, the first transition begins
with h0 = tanh(W0 (o, h) + b0), so that the observation enters twice. Maps of the observation in the
order h0, then candidate and gate of the first transition.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from stages.dynamics.parts.gates import Gate
from stages.dynamics.parts.stack import Cell, Held, Recurrent


class RHNCell(Cell):
    """h <- G(tanh(candidate), h), `depth` times from h0; its state is (h,)."""

    def __init__(self, inputs: int, width: int, gate: str, depth: int):
        super().__init__(inputs, width, gate, own=2)
        self.across = nn.Linear(width, width, bias=False)  # of h0 alone
        maps = (1 + self.gate.maps) * width
        self.inner = nn.ModuleList(nn.Linear(width, maps) for _ in range(depth))
        self.deeper = nn.ModuleList(Gate(gate, width) for _ in range(depth - 1))

    def step(self, entered: Float[Tensor, "B P"], state: Held) -> Held:
        """The state one time on."""
        h, gates = self.width, (self.gate, *self.deeper)
        hidden = torch.addmm(entered[:, :h], state[0], self.across.weight.T).tanh()
        for place, (inner, gate) in enumerate(zip(self.inner, gates, strict=True)):
            maps = inner(hidden) if place else inner(hidden) + entered[:, h:]
            hidden = gate(maps[:, :h].tanh(), hidden, maps[:, h:])
        return (hidden,)


class RHN(Recurrent):
    """A stack of layers of recurrent highway cells."""

    def __init__(
        self, observed: int, scale: float, width: int = 64, layers: int = 1, depth: int = 2,
        gate: str = "coupled", attention: str = "none", heads: int = 4, span: int = 16,
        bias: str = "none", output: str = "next", dropout: float = 0.0,
    ):  # fmt: skip
        self.made = (width, gate, depth)
        super().__init__(
            observed, scale, width, output, layers, attention, heads, span, bias, dropout
        )

    def cell(self, inputs: int) -> Cell:
        """A new cell."""
        return RHNCell(inputs, *self.made)
