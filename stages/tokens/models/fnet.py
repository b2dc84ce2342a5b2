"""FNet: a Fourier transform mixes tokens, without parameters (thesis section 2.5.2)."""

import torch

from stages.tokens.contract import Batch, Said, TokenModel
from stages.tokens.parts.fixed import Fourier
from stages.tokens.parts.frame import Frame


class FNet(TokenModel):
    """The transform refuses padding: rows of one length go through the network together."""

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

    def forward(self, batch: Batch) -> Said:
        """What is said of a batch, from each row's own tokens. InputError for padding between
        them."""
        lengths = batch.real.sum(1)
        if batch.real.all():
            return super().forward(batch)
        said = torch.empty(0)
        for length in lengths.unique().tolist():
            rows = lengths == length
            values = self.network(batch.inputs[rows, :length], batch.real[rows, :length])
            if not len(said):
                said = values.new_empty(len(lengths), *values.shape[1:])
            said[rows] = values
        return Said(said)
