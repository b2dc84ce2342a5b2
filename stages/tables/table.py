"""A table as titles and rows of text, and numbers as text: what table.md and the pages show alike.

A cell is one trained model, an arm the same model over its seeds. `summary` is a number over seeds
as gather.py writes it: mean, std (several seeds), low and high (90 %).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NONE = "–"  # where there is no number


@dataclass(frozen=True)
class Table:
    """Titles and rows of text; `words` are the columns that hold words (to the left), `best` the
    row to mark."""

    name: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: frozenset[int] = frozenset({0})
    best: int | None = None

    def markdown(self) -> list[str]:
        """The lines of a Markdown table, with an empty one after it."""
        rule = tuple("---" if place in self.words else "---:" for place in range(len(self.titles)))
        return [*("| " + " | ".join(row) + " |" for row in (self.titles, rule, *self.rows)), ""]


def arm_of(cell: str) -> str:
    """'msa-shared-5k-s0' -> 'msa-shared-5k'; baselines have one cell and the same name."""
    return re.sub(r"-s\d+$", "", cell)


def label(arm: str) -> str:
    """An arm or a cell as people read it: 'gka_tnn-cached-none' -> 'gka_tnn-cached'."""
    return re.sub(r"-none(?=-s\d+$|$)", "", arm)


def against(mean: float, base: float | None) -> str:
    """How far a mean lies from the baseline's: '-57 %'; '–' without a baseline."""
    return f"{round(100 * (mean / base - 1)) or 0:+d} %" if base else "–"


def datasets_of(arms: dict[str, Any]) -> list[str]:
    """The data sets that arms (or cells) speak of."""
    return sorted({name.split("/")[0] for name in arms})


def digits(value: float) -> str:
    """Three significant digits: 0.00712, 7.98, 1,234."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")


def fixed(value: float) -> str:
    """Two digits behind the point: 7.42."""
    return f"{value:.2f}"


def rough(value: float) -> str:
    """Two significant digits: 0.0003."""
    return f"{value:.2g}"


def number(
    summary: dict[str, Any] | None,
    interval: bool = False,
    scale: float = 1,
    form: Callable[[float], str] = digits,
    spread: Callable[[float], str] = rough,
) -> str:
    """'7.42 ± 0.05 [6.9, 8.0]': mean, spread over seeds where there are several, 90 % interval if
    asked; each times `scale`. `form` and `spread` write a number and a spread."""
    if summary is None:
        return NONE
    text = form(scale * summary["mean"])
    if "std" in summary:
        text += f" ± {spread(scale * summary['std'])}"
    if interval and "low" in summary:
        text += f" [{form(scale * summary['low'])}, {form(scale * summary['high'])}]"
    return text


def cells_of(cells: dict[str, Any], dataset: str) -> list[str]:
    """The names of a data set's cells, without the data set's."""
    return sorted(name.partition("/")[2] for name in cells if name.startswith(f"{dataset}/"))


def addresses(
    experiment: str, profile: str, cells: dict[str, Any], dataset: str, metric: str, also: str = ""
) -> str:
    """How to audit a number of a data set: its cells' names whole, as `tradewind audit` wants
    them."""
    mine = ", ".join(f"`{name}`" for name in cells_of(cells, dataset))
    return (
        f"Audit a number: `tradewind audit {experiment}/{profile}/{dataset}/CELL/{metric}`, "
        f"with CELL one of {mine}{also}."
    )
