"""HyperMLP and HyperGLU: attention as an MLP that the sequence makes (Lu and Yang 2026)."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.tokens.contract import TokenModel
from stages.tokens.parts.dynamic import DynamicMLP
from stages.tokens.parts.frame import Frame


class HyperMLP(TokenModel):
    """heads, route, read, rank, glu: parts/dynamic.py."""

    limits: ClassVar[Mapping[str, int]] = {
        **TokenModel.limits, "route": 4096, "read": 4096, "rank": 4096,
    }  # fmt: skip
    words: ClassVar[Mapping[str, tuple[Any, ...]]] = {**TokenModel.words, "glu": (0, 1)}

    @classmethod
    def misfits(cls, whole: Mapping[str, Any]) -> list[str]:
        """Queries part into heads (and two layers of `glu`), values into heads."""
        parts = {"route": whole["heads"] * (1 + whole["glu"]), "read": whole["heads"]}
        return super().misfits({**whole, "heads": 1}) + [
            f"{name} {whole[name]} is not a multiple of {count}, its parts"
            for name, count in parts.items()
            if whole[name] % count
        ]

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
        heads: int = 2,
        route: int = 24,
        read: int = 32,
        rank: int = 2,
        glu: int = 0,
    ):
        frame = Frame(task, vocabulary, outputs, longest, width, layers, feed, layout)
        super().__init__(
            frame, lambda: DynamicMLP(width, longest, heads, route, read, rank, bool(glu))
        )
