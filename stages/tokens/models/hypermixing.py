"""HyperMixer: token mixing by an MLP that the tokens generate (thesis section 2.3.3)."""

from stages.tokens.contract import TokenModel
from stages.tokens.parts.frame import Frame
from stages.tokens.parts.hyper import HyperMix


class Hypermixing(TokenModel):
    """hidden: F, over all heads; tied, norm, placed: parts/hyper.py; features 0: token mixing alone
    (B.3.2)."""

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
        heads: int = 1,
        tied: int = 1,
        norm: str = "layer",
        placed: int = 0,
        features: int = 1,
    ):
        frame = Frame(
            task, vocabulary, outputs, longest, width, layers, feed, layout, bool(features)
        )
        super().__init__(
            frame, lambda: HyperMix(width, hidden, heads, bool(tied), norm, bool(placed))
        )
