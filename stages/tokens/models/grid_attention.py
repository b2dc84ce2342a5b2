"""Causal self-attention that draws on a grid: a token knows the row and the column of the cell that
it asks for (slides, PicoCLVR; places and look back are ours)."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.tokens.contract import TokenModel
from stages.tokens.parts.grid import Grid, LookBack


class GridAttention(TokenModel):
    """rows, columns: of the picture that ends a sequence; placed: whether its cells know theirs;
    back: how many tokens are read together; told: whether each cell is given the sum of what was
    read of the statements; tally: whether it knows what was drawn, and where; ground: the
    word that this leaves out (13 is PicoCLVR's white)."""

    causal = True
    words: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **TokenModel.words,
        "told": (0, 1),
        "tally": (0, 1),
    }
    limits: ClassVar[Mapping[str, int]] = {
        **TokenModel.limits, "rows": 64, "columns": 64, "back": 64, "ground": 1_000_000
    }  # fmt: skip

    @classmethod
    def misfits(cls, whole: Mapping[str, Any]) -> list[str]:
        """It says the next token alone; statements stand before the picture."""
        found = super().misfits(whole)
        if whole["task"] != "next":
            found.append("this network draws: it says the next token, no label and no value")
        cells = whole["rows"] * whole["columns"]
        if min(whole["rows"], whole["columns"]) < 2 or cells > whole["longest"] - 2:
            found.append(
                f"{whole['rows']} rows and {whole['columns']} columns are no picture behind a "
                f"statement in a sequence of {whole['longest']} tokens"
            )
        return found

    def __init__(
        self,
        task: str,
        vocabulary: int,
        outputs: int,
        longest: int,
        width: int = 48,
        layers: int = 2,
        feed: int = 96,
        layout: str = "pre_norm",
        heads: int = 3,
        rows: int = 4,
        columns: int = 4,
        placed: int = 1,
        back: int = 4,
        told: int = 1,
        tally: int = 1,
        ground: int = 13,
    ):
        frame = Grid(
            *(task, vocabulary, outputs, longest, width, layers, feed, layout),
            rows=rows,
            columns=columns,
            placed=bool(placed),
            back=back,
            told=bool(told),
            tally=bool(tally),
            ground=ground,
        )
        super().__init__(frame, lambda: LookBack(width, heads, back))
