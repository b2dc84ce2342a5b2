"""The recurrent transformer: a memory of N vectors that goes from one chunk of S observations to
the next (document R, section 2.3.3, after the temporal latent bottleneck of Didolkar et al. 2022).

The last block alone is recurrent: its tokens read the memory that the chunks before have written,
and at a chunk's end the memory reads the tokens, each joined by the block's gate.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from stages.dynamics.contract import Batch, Forecast, Forecaster
from stages.dynamics.parts.attention import Cross
from stages.dynamics.parts.blocks import Block, Branch, Perceptron


@dataclass(frozen=True)
class Carried:
    """The memory (B, N, H) that whole chunks have left, and the observations of the chunk that is
    not whole yet (B, below S, O)."""

    memory: Tensor
    chunk: Tensor


class RecurrentTransformer(Forecaster):
    """layers: blocks, the recurrent one among them; memory: N; span: S, a chunk's length."""

    def __init__(
        self, observed: int, scale: float, width: int = 64, layers: int = 2, heads: int = 4,
        span: int = 8, memory: int = 4, order: str = "pre", gate: str = "additive",
        bias: str = "distance", output: str = "next", dropout: float = 0.0,
    ):  # fmt: skip
        super().__init__(observed, scale, width, output)
        self.span = span
        self.lift = nn.Linear(observed, width)
        self.blocks = nn.ModuleList(
            Block(width, heads, span, order, gate, bias, dropout) for _ in range(layers)
        )
        self.first = nn.Parameter(torch.randn(memory, width) * width**-0.5)
        self.read, self.write = (Cross(width, heads, dropout) for _ in range(2))
        self.keep = Perceptron(width, dropout)
        self.reading, self.writing, self.keeping = (Branch(width, order, gate) for _ in range(3))
        self.last = nn.LayerNorm(width) if order == "pre" else nn.Identity()

    def chunk(
        self, values: Float[Tensor, "B T O"], memory: Float[Tensor, "B N H"]
    ) -> tuple[Float[Tensor, "B T O"], Float[Tensor, "B N H"]]:
        """What comes next at each time of a chunk, and the memory after it."""
        tokens = self.lift(values).relu()
        for block in self.blocks[:-1]:
            tokens = block(tokens)
        tokens = self.reading(tokens, lambda x: self.read(x, memory))
        tokens = self.blocks[-1](tokens)
        memory = self.writing(memory, lambda m: self.write(m, tokens))
        return self.said(self.last(tokens), values), self.keeping(memory, self.keep)

    def forward(self, batch: Batch) -> Forecast:
        """The forecasts that count. Back-propagation reaches one chunk further than the window: the
        memory that its first chunk reads was written there, and of windows of one chunk nothing
        else would learn to write."""
        cut, state = max(0, batch.warm - self.span), None
        if cut:
            with torch.no_grad():
                _, state = self.run(batch.inputs[:, :cut])
        said, _ = self.run(batch.inputs[:, cut:], state)
        return Forecast(said[:, -batch.targets.shape[1] :])

    def run(
        self, values: Float[Tensor, "B T O"], state: Carried | None = None
    ) -> tuple[Float[Tensor, "B T O"], Carried]:
        """What comes next at each time, chunk by chunk, and what is carried on."""
        if state is None:
            state = Carried(self.first.expand(len(values), -1, -1), values[:, :0])
        known, memory, found = state.chunk.shape[1], state.memory, []
        whole = torch.cat((state.chunk, values), 1)
        for part in whole.split(self.span, 1):
            said, after = self.chunk(part, memory)
            found.append(said)
            memory = after if part.shape[1] == self.span else memory
        rest = whole.shape[1] % self.span
        return torch.cat(found, 1)[:, known:], Carried(memory, whole[:, whole.shape[1] - rest :])
