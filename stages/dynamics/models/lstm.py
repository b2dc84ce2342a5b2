"""The LSTM with its two joining gates as one that can be swapped (document R, equations 2 to 5).

By default the gate is dependent: input and forget gates, each of its own. The output gate joins
nothing and stays (R, after equation 21). Maps in the order candidate, output gate, gate.
"""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from stages.dynamics.parts.stack import Cell, Held, Recurrent


class LSTMCell(Cell):
    """c <- G(tanh(candidate), c), h = sigmoid(output) tanh(c); its state is (h, c)."""

    held: ClassVar[int] = 2

    def __init__(self, inputs: int, width: int, gate: str):
        super().__init__(inputs, width, gate, own=2)

    def step(self, entered: Float[Tensor, "B P"], state: Held) -> Held:
        """The state one time on."""
        hidden, memory = state
        maps = torch.addmm(entered, hidden, self.across.weight.T)
        h = self.width
        memory = self.gate(maps[:, :h].tanh(), memory, maps[:, 2 * h :])
        return maps[:, h : 2 * h].sigmoid() * memory.tanh(), memory


class LSTM(Recurrent):
    """A stack of LSTM layers."""

    def __init__(
        self, observed: int, scale: float, width: int = 64, layers: int = 1,
        gate: str = "dependent", attention: str = "none", heads: int = 4, span: int = 16,
        bias: str = "none", output: str = "next", dropout: float = 0.0,
    ):  # fmt: skip
        self.made = (width, gate)
        super().__init__(
            observed, scale, width, output, layers, attention, heads, span, bias, dropout
        )

    def cell(self, inputs: int) -> Cell:
        """A new LSTM cell."""
        return LSTMCell(inputs, *self.made)
