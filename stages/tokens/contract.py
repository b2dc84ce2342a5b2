"""What every model of the family reads and returns.

Shapes: B batch, N tokens, V classes or words. A task: "label" (logits of a sequence's classes),
"value" (a number a place), "next" (logits of the token after each place).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from stages.contracts import Model
from stages.tokens.parts.frame import LAYOUTS, Frame, Mixer


@dataclass(frozen=True)
class Batch:
    """inputs (B, N): words, or numbers; real (B, N); targets (B,) or (B, N); counted (B, N): the
    places whose next token counts."""

    inputs: Tensor
    real: Tensor
    targets: Tensor
    counted: Tensor


@dataclass(frozen=True)
class Said:
    """Logits (B, V) or (B, N, V), or values (B, N)."""

    values: Tensor


class TokenModel(Model):
    """A token mixer in the frame. What the data say: task, vocabulary, outputs, longest."""

    causal: bool = False  # whether the mixer can say the next token
    limits: ClassVar[Mapping[str, int]] = {
        "width": 4096, "layers": 64, "feed": 16384, "hidden": 16384, "heads": 64,
        "vocabulary": 1_000_000, "outputs": 1_000_000, "longest": 1_000_000,
    }  # fmt: skip
    words: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "task": ("label", "value", "next"),
        "layout": LAYOUTS,
        "norm": ("none", "length", "layer"),
        "tied": (0, 1),
        "placed": (0, 1),
        "scaled": (0, 1),
        "features": (0, 1),
    }

    @classmethod
    def misfits(cls, whole: Mapping[str, Any]) -> list[str]:
        """Widths are multiples of the heads; only a causal mixer says the next token."""
        heads = whole.get("heads", 1)
        found = [
            f"{key} {whole[key]} is not a multiple of heads {heads}"
            for key in ("width", "hidden")
            if key in whole and whole[key] % heads
        ]
        if whole["task"] == "next" and not cls.causal:
            found.append("this mixer hears of tokens to come: it cannot say the next one")
        return found

    def __init__(self, frame: Frame, mixer: Mixer):
        super().__init__()
        self.network = frame.network(mixer)

    def forward(self, batch: Batch) -> Said:
        """What is said of a batch."""
        return Said(self.network(batch.inputs, batch.real))
