"""gMLP: a gate that mixes places, between two feature maps (thesis section 2.5.2)."""

from stages.tokens.contract import TokenModel
from stages.tokens.parts.fixed import SpatialGating
from stages.tokens.parts.frame import Frame


class GMLP(TokenModel):
    """hidden: of the gate."""

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
        hidden: int = 64,
    ):
        frame = Frame(task, vocabulary, outputs, longest, width, layers, feed, layout)
        super().__init__(frame, lambda: SpatialGating(width, longest, hidden))
