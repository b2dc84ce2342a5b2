"""The decoder-only transformer without positions, but with a relative bias, its residuals gates
that can be swapped (document R, section 2.2).

It keeps no state but the S last observations, first in, first out: in a free run each forecast is
made anew from them.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from stages.dynamics.contract import Forecaster
from stages.dynamics.parts.blocks import Block


class Transformer(Forecaster):
    """layers: blocks; span: S; order: norms before (pre) or after (post) the branches."""

    stateful = False

    def __init__(
        self, observed: int, scale: float, width: int = 64, layers: int = 2, heads: int = 4,
        span: int = 16, order: str = "pre", gate: str = "additive", bias: str = "distance",
        output: str = "next", dropout: float = 0.0,
    ):  # fmt: skip
        super().__init__(observed, scale, width, output)
        self.span = span
        self.lift = nn.Linear(observed, width)
        self.blocks = nn.ModuleList(
            Block(width, heads, span, order, gate, bias, dropout) for _ in range(layers)
        )
        self.last = nn.LayerNorm(width) if order == "pre" else nn.Identity()

    def window(self, values: Float[Tensor, "B T O"]) -> Float[Tensor, "B T O"]:
        """What comes next at each time of one window, which knows nothing of before it."""
        tokens = self.lift(values).relu_()
        for block in self.blocks:
            tokens = block(tokens)
        return self.said(self.last(tokens), values)

    def newest(self, values: Float[Tensor, "B T O"]) -> Float[Tensor, "B 1 O"]:
        """What comes next after one window: the last of `window`."""
        tokens = self.lift(values).relu_()
        *blocks, last = self.blocks
        for block in blocks:
            tokens = block(tokens)
        return self.said(
            self.last(last.newest(tokens)),  # type: ignore[operator]  # a ModuleList tells no types
            values[:, -1:],
        )

    def run(
        self, values: Float[Tensor, "B T O"], state: Tensor | None = None
    ) -> tuple[Float[Tensor, "B T O"], Tensor]:
        """What comes next at each time: of the first S within one window, later from the S last
        ones each. The state: the S last observations."""
        found: list[Tensor] = []
        if state is None:
            state, values = values[:, : self.span], values[:, self.span :]
            found.append(self.window(state))
        for one in values.unbind(1):
            state = torch.cat((state, one[:, None]), 1)[:, -self.span :]
            found.append(self.newest(state))
        return torch.cat(found, 1), state
