"""The losses of sequence models (thesis 4.2.1): cross-entropy of every token given those before it
in the order.

Step i of an order predicts the token at position order[i] from the tokens at order[:i]. The first
`first` steps are given to the model (the prompt) and do not count. Shapes: B batch, T tokens, V
vocabulary. Losses are in nats a token.
"""

import torch
from torch import Tensor
from torch.nn import functional


def nats(logits: Tensor, tokens: Tensor, order: Tensor, first: int = 0) -> Tensor:
    """Nats of each counted step (B, T - first), in the order's steps; logits (B, T, V), tokens
    and order (B, T)."""
    asked = torch.take_along_dim(tokens, order, 1)[:, first:]
    return functional.cross_entropy(
        logits[:, first:].float().transpose(1, 2), asked, reduction="none"
    )


def cross_entropy(logits: Tensor, tokens: Tensor, order: Tensor, first: int = 0) -> Tensor:
    """The mean of `nats` over sequences and counted steps."""
    return nats(logits, tokens, order, first).mean()
