"""A stack of recurrent layers, each of which may be followed by attention to the last S hidden
states of its own, of the layer below, or to the inputs (document R, section 2.3.2, equation 36).

A cell maps a layer's inputs of all times at once (`enter`) and then goes from time to time
(`step`). The state is carried whole: each cell's, and what its attention may still look at, so that
a run in pieces is a run in one. Shapes: B batch, T times, I a layer's inputs, H width, P a cell's
maps.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from stages.dynamics.contract import Forecaster
from stages.dynamics.parts.attention import Attention
from stages.dynamics.parts.gates import Gate

Held = tuple[Tensor, ...]  # of a cell, each (B, H), the hidden state first


class Cell(nn.Module):
    """A recurrent cell: P maps of inputs and of the hidden state, and a gate that joins update
    and state. held: how many vectors its state has."""

    held: ClassVar[int] = 1

    def __init__(self, inputs: int, width: int, gate: str, own: int):
        super().__init__()
        self.width, self.gate = width, Gate(gate, width)
        maps = (own + self.gate.maps) * width
        self.inward = nn.Linear(inputs, maps)
        self.across = nn.Linear(width, maps, bias=False)
        for parameter in (self.inward.weight, self.inward.bias, self.across.weight):
            nn.init.uniform_(parameter, -(width**-0.5), width**-0.5)

    def enter(self, values: Float[Tensor, "B T I"]) -> Float[Tensor, "B T P"]:
        """What the inputs of all times bring."""
        return self.inward(values)

    def step(self, entered: Float[Tensor, "B P"], state: Held) -> Held:
        """The state one time on."""
        raise TypeError(f"{type(self).__name__} does not say how it goes on")

    def still(self, values: Float[Tensor, "B T I"]) -> Held:
        """The state before anything was seen."""
        return (values.new_zeros(len(values), self.width),) * self.held


@dataclass(frozen=True)
class Carried:
    """What a layer carries: its cell's state and, of what its attention looks at, the last S - 1
    times (B, at most S - 1, I); None without attention."""

    cell: Held
    past: Tensor | None


class Layer(nn.Module):
    """A cell and, unless `attention` is none, attention after it."""

    def __init__(
        self, cell: Cell, inputs: int, observed: int, attention: str, heads: int, span: int,
        bias: str, dropout: float,
    ):  # fmt: skip
        super().__init__()
        self.cell, self.looks, self.span = cell, attention, span
        source = {"self": cell.width, "input": observed, "previous": inputs}.get(attention)
        self.attention = (
            Attention(cell.width, source, heads, span, bias, dropout) if source else None
        )

    def forward(
        self, values: Tensor, inputs: Tensor, state: Carried | None
    ) -> tuple[Tensor, Carried]:
        """Hidden states (B, T, H) of the layer's values (B, T, I) and the stack's inputs (B, T,
        O), and what it carries on."""
        entered = self.cell.enter(values)
        held = self.cell.still(values) if state is None else state.cell
        passed = []
        for one in entered.unbind(1):
            held = self.cell.step(one, held)
            passed.append(held[0])
        hidden = torch.stack(passed, 1)
        if self.attention is None:
            return hidden, Carried(held, None)
        seen = {"self": hidden, "input": inputs, "previous": values}[self.looks]
        if state is not None and state.past is not None:
            seen = torch.cat((state.past, seen), 1)
        past = seen[:, max(0, seen.shape[1] - self.span + 1) :]
        return self.attention(hidden, seen), Carried(held, past)


class Recurrent(Forecaster):
    """A stack of `layers` layers between the observations and the output map (R, equation 13)."""

    def __init__(
        self, observed: int, scale: float, width: int, output: str, layers: int, attention: str,
        heads: int, span: int, bias: str, dropout: float,
    ):  # fmt: skip
        super().__init__(observed, scale, width, output)
        self.span = span
        places = [observed, *[width] * (layers - 1)]
        self.layers = nn.ModuleList(
            Layer(self.cell(inputs), inputs, observed, attention, heads, span, bias, dropout)
            for inputs in places
        )

    def cell(self, inputs: int) -> Cell:
        """A new cell of the model's kind."""
        raise TypeError(f"{type(self).__name__} does not say which cell it has")

    def run(
        self, values: Float[Tensor, "B T O"], state: tuple[Carried, ...] | None = None
    ) -> tuple[Float[Tensor, "B T O"], tuple[Carried, ...]]:
        """What comes next at each time, and what is carried on."""
        hidden, carried = values, []
        for place, layer in enumerate(self.layers):
            hidden, one = layer(hidden, values, None if state is None else state[place])
            carried.append(one)
        return self.said(hidden, values), tuple(carried)
