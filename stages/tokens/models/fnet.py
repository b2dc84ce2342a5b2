"""FNet: a Fourier transform mixes tokens, without parameters (thesis section 2.5.2)."""

from stages.tokens.contract import TokenModel
from stages.tokens.parts.fixed import Fourier
from stages.tokens.parts.frame import Frame


class FNet(TokenModel):
    """It refuses padded batches."""

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
        super().__init__(frame, lambda: Fourier())
