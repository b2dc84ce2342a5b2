"""Linear transformer: attention without softmax, phi = elu + 1 (thesis section 2.5.2)."""

from stages.tokens.contract import TokenModel
from stages.tokens.parts import attending
from stages.tokens.parts.frame import Frame


class LinearAttention(TokenModel):
    """heads: each with its own sums."""

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
    ):
        frame = Frame(task, vocabulary, outputs, longest, width, layers, feed, layout)
        super().__init__(frame, lambda: attending.LinearAttention(width, heads))
