"""Feature mixing alone (thesis B.3.2); of shapes a net of convolutions alone."""

from stages.tokens.contract import TokenModel
from stages.tokens.parts import fixed
from stages.tokens.parts.frame import Frame


class Unmixed(TokenModel):
    """Nothing mixes tokens but the mean, or the convolutions."""

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
    ):
        frame = Frame(task, vocabulary, outputs, longest, width, layers, feed, layout)
        super().__init__(frame, lambda: fixed.Unmixed())
