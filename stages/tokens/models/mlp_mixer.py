"""MLPMixer: token mixing by an MLP with a learned row a place (thesis section 2.3.2)."""

from stages.tokens.contract import TokenModel
from stages.tokens.parts.fixed import TokenMLP
from stages.tokens.parts.frame import Frame


class MLPMixer(TokenModel):
    """hidden: of the token mixing."""

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
        hidden: int = 192,
    ):
        frame = Frame(task, vocabulary, outputs, longest, width, layers, feed, layout)
        super().__init__(frame, lambda: TokenMLP(width, longest, hidden))
