"""The transformer encoder's self-attention; causal where the next token is asked for."""

from stages.tokens.contract import TokenModel
from stages.tokens.parts import attending
from stages.tokens.parts.frame import Frame


class SelfAttention(TokenModel):
    """heads: of the softmax; scaled 0: logits are not divided by the root of a head's width."""

    causal = True

    def __init__(
        self,
        task: str,
        vocabulary: int,
        outputs: int,
        longest: int,
        width: int = 48,
        layers: int = 2,
        feed: int = 96,
        layout: str = "serialized",
        heads: int = 4,
        scaled: int = 1,
    ):
        frame = Frame(task, vocabulary, outputs, longest, width, layers, feed, layout)
        super().__init__(
            frame, lambda: attending.SelfAttention(width, heads, task == "next", bool(scaled))
        )
