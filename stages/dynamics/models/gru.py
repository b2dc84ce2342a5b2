"""The GRU with its update gate as one that can be swapped (document R, equations 6 to 8).

By default the gate is coupled. The reset gate joins nothing and stays; it comes after the product
with the weights, as in cuDNN's and torch's GRU, or before it, as equation 7 prints. Maps in the
order candidate, reset gate, gate.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from stages.dynamics.parts.stack import Cell, Held, Recurrent


class GRUCell(Cell):
    """h <- G(tanh(candidate), h); its state is (h,)."""

    def __init__(self, inputs: int, width: int, gate: str, reset: str):
        super().__init__(inputs, width, gate, own=2)
        self.before = reset == "before"
        self.shift = nn.Parameter(torch.zeros(width))  # of the candidate, under the reset gate
        nn.init.uniform_(self.shift, -(width**-0.5), width**-0.5)

    def step(self, entered: Float[Tensor, "B P"], state: Held) -> Held:
        """The state one time on."""
        hidden, weight, h = state[0], self.across.weight, self.width
        maps = torch.addmm(entered[:, h:], hidden, weight[h:].T)
        reset, drive = maps[:, :h].sigmoid(), maps[:, h:]
        if self.before:
            inner = torch.addmm(self.shift, reset * hidden, weight[:h].T)
        else:
            inner = reset * torch.addmm(self.shift, hidden, weight[:h].T)
        return (self.gate((entered[:, :h] + inner).tanh(), hidden, drive),)


class GRU(Recurrent):
    """A stack of GRU layers."""

    def __init__(
        self, observed: int, scale: float, width: int = 64, layers: int = 1,
        gate: str = "coupled", reset: str = "after", attention: str = "none", heads: int = 4,
        span: int = 16, bias: str = "none", output: str = "next", dropout: float = 0.0,
    ):  # fmt: skip
        self.made = (width, gate, reset)
        super().__init__(
            observed, scale, width, output, layers, attention, heads, span, bias, dropout
        )

    def cell(self, inputs: int) -> Cell:
        """A new GRU cell."""
        return GRUCell(inputs, *self.made)
