"""One weight vector shared by all tokens in the place of a hypernetwork (thesis B.3.2)."""

from stages.tokens.contract import TokenModel
from stages.tokens.parts import hyper
from stages.tokens.parts.frame import Frame


class WeightVector(TokenModel):
    """hidden: F."""

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
        hidden: int = 144,
    ):
        frame = Frame(task, vocabulary, outputs, longest, width, layers, feed, layout)
        super().__init__(frame, lambda: hyper.WeightVector(width, hidden))
