"""sigma-GPT: one causal transformer whose order of production is an argument (thesis sections
4.2.1-4.2.2; figure 4.1).

Step i reads the token made at step i-1, that token's position and the position asked for, and
predicts the token there. Position -1 with token 0 stands before the first step, so every token is
predicted. With the identity order it is a plain GPT. The network is backbone.py's.
Shapes: B batch, T length, V vocabulary, H heads, Q steps asked.
"""

from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from stages.layers.kernels import tiles
from stages.sequences.backbone import Backbone


def causal(packed: Tensor, heads: int, keys: int) -> Tensor:
    """Attention to oneself and to what came before."""
    return tiles.attend(packed, heads, keys, causal=True)


class SigmaGPT(Backbone):
    """The backbone, each step seeing what came before it."""

    def forward(
        self, tokens: Int64[Tensor, "B T"], order: Int64[Tensor, "B Q"]
    ) -> Float[Tensor, "B Q V"]:
        """logits[:, i] are for the token at position order[:, i], given tokens at order[:, :i];
        `tokens` are by position, an order may stop early. The token of the last step is not
        read."""
        own = functional.pad(order[:, :-1], (1, 0), value=-1)
        seen = tokens.gather(1, own.clamp(min=0)).masked_fill(own < 0, 0)
        return self.run(seen, own, order, causal)
