"""How targets read a context that was encoded without them (thesis equations 3.8 and C.4):
cross-attention, or distance.

DecoderLayer is torch's nn.TransformerDecoderLayer (post-norm, ReLU, hidden layer 2H, no dropout)
without a causal mask: targets attend to all targets, then to the context. Distance learns one
number, beta: z = sum_c r_c l_c, r = softmax_c(-beta |x_t - x_c|^2). The thesis writes r(dist); that
its distance is squared is the reference's reading, as for GEN. Both read nothing from an empty
context.
Shapes: B batch, C context, T target, X positions, H width.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from stages.layers.attention import Attention, usable

CONDITIONINGS = ("attention", "distance")


class DecoderLayer(nn.Module):
    """x <- norm(x + attention(x)); x <- norm(x + attention(x, memory)); x <- norm(x + W2 relu(W1
    x))."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention = Attention(width, heads)
        self.attention_norm = nn.LayerNorm(width)
        self.cross = Attention(width, heads)
        self.cross_norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.feed_norm = nn.LayerNorm(width)

    def forward(
        self,
        tokens: Float[Tensor, "B T H"],
        mask: Bool[Tensor, "B 1 1 T"] | None,
        memory: Float[Tensor, "B C H"],
        real: Bool[Tensor, "B C"],
    ) -> Float[Tensor, "B T H"]:
        """New target tokens; `mask` is `usable` of the real targets, `real` marks the memory's
        real tokens."""
        tokens = self.attention_norm(tokens + self.attention(tokens, mask, tokens.shape[1]))
        tokens = self.cross_norm(tokens + self.cross.read(tokens, memory, real))
        return self.feed_norm(tokens + self.narrow(torch.relu(self.widen(tokens))))


class Distance(nn.Module):
    """beta = exp(log_beta), 1 at the start: positions are standardised or of order one."""

    def __init__(self) -> None:
        super().__init__()
        self.log_beta = nn.Parameter(torch.zeros(1))

    def forward(
        self,
        target_x: Float[Tensor, "B T X"],
        context_x: Float[Tensor, "B C X"],
        memory: Float[Tensor, "B C H"],
        real: Bool[Tensor, "B C"],
    ) -> Float[Tensor, "B T H"]:
        """Mean of the memory's real tokens, near ones weighing most; 0 where none is real."""
        if not memory.shape[1]:
            return memory.new_zeros(*target_x.shape[:2], memory.shape[2])
        context_x, mask = context_x.masked_fill(~real[:, :, None], 0), usable(real)
        with torch.autocast(
            memory.device.type, enabled=False
        ):  # 8 bits of mantissa do not hold a squared distance
            beta = self.log_beta.exp()
            # the softmax forgets |x_t|^2, which is left out
            exponent = beta * (2 * target_x @ context_x.mT - context_x.square().sum(2)[:, None])
            if mask is None:
                return exponent.softmax(2) @ memory.to(exponent.dtype)
            mean = exponent.masked_fill(~mask[:, 0], -torch.inf).softmax(2) @ memory.to(
                exponent.dtype
            )
            return mean.masked_fill(~real.any(1)[:, None, None], 0)
