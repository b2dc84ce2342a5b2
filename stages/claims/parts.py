"""A claim of a document as a set of parts, each of which holds, fails or stays undecided.

One failed part fails the claim; otherwise one that is undecided leaves it undecided. A part holds
or fails only when its 90 % interval leaves out its bar. Nothing is trained here.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from stages.spreads import NOWHERE, Spreads

RESAMPLES = 2000
UNDECIDED = "undecided"


@dataclass(frozen=True)
class Part:
    """One comparison of a claim: its verdict, what was compared, and a sentence that tells both."""

    name: str
    verdict: str
    numbers: dict[Any, Any] = field(default_factory=dict)
    why: str = ""

    @property
    def interval(self) -> list[float] | None:
        """The 90 % interval of what was compared, where there is one."""
        return self.numbers.get("interval")


class DataSet(Protocol):
    """What a claim is about: anything that names its data set."""

    @property
    def dataset(self) -> str:
        """The data set's name."""


class Evaluation:
    """One data set's cells, as evaluation wrote them, and the spreads of training.

    `plainest`: how the variant that stands for a model begins; `narrowest`: the least variance that
    an interval tells (above zero, an interval of no width is one, too).
    """

    plainest = ""
    narrowest = 0.0

    def __init__(self, dataset: str, cells: dict[str, dict[Any, Any]], spreads: Spreads = NOWHERE):
        self.dataset, self.cells, self.spreads = dataset, cells, spreads

    def arm(self, name: str) -> list[str]:
        """The cells of an arm, one a seed; [] if it was not run."""
        return sorted(cell for cell in self.cells if re.sub(r"-s\d+$", "", cell) == name)

    def spread_kind(self, cell: str) -> str:
        """The kind whose spread of training is a cell's."""
        return self.spreads.kind(cell, self.dataset)

    def model(self, name: str) -> list[str]:
        """Arms of a model in this evaluation, its plainest first, then by name."""
        arms = {
            re.sub(r"-s\d+$", "", cell)
            for cell in self.cells
            if cell == name or cell.startswith(name + "-")
        }
        return sorted(arms, key=lambda arm: (not arm.startswith(f"{name}-{self.plainest}"), arm))


def verdict_of(low: float, high: float, bar: float, above: bool = True) -> str:
    """holds where the whole interval lies on the side of the bar that is claimed, fails where it
    lies on the other, else undecided."""
    return UNDECIDED if low <= bar <= high else "holds" if (low > bar) == above else "fails"


def unmeasured(name: str, why: str) -> Part:
    """A part about which nothing was measured."""
    return Part(name, UNDECIDED, {"verdict": UNDECIDED}, why)


def sureness(part: Part) -> float:
    """How far a part's interval lies off its bar (0 of one that names none), in halves of the
    interval: 1 where one of its ends touches the bar."""
    low, high = part.interval or (math.nan, math.nan)
    off = abs((low + high) / 2 - part.numbers.get("bar", 0.0))
    return off / (high - low) * 2 if high > low else math.inf if off else 0.0


def conclude(
    measured: DataSet, name: str, text: str, source: str, parts: list[Part], note: str = ""
) -> dict[str, Any]:
    """A ledger entry from its parts; `interval` is that of the part that decides: of those that
    failed the surest, else the least sure."""
    verdicts = {p.verdict for p in parts}
    verdict = (
        "fails"
        if "fails" in verdicts
        else UNDECIDED
        if UNDECIDED in verdicts or not parts
        else "holds"
    )
    known = [p for p in parts if p.interval]
    deciding = (max if verdict == "fails" else min)(
        [p for p in known if p.verdict == verdict] or known, key=sureness, default=None
    )
    shown = [p for p in parts if p.verdict == verdict] + [p for p in parts if p.verdict != verdict]
    return {
        "id": name,
        "dataset": measured.dataset,
        "text": text,
        "source": source,
        "verdict": verdict,
        "compared": {
            p.name: {
                key: value for key, value in p.numbers.items() if key not in ("seeds", "slices")
            }
            for p in parts
        },
        "seeds": max((p.numbers.get("seeds", 0) for p in parts), default=0),
        "slices": max((p.numbers.get("slices", 0) for p in parts), default=0),
        "interval": deciding.interval if deciding else None,
        "why": "; ".join([p.why for p in shown] + ([note] if note else [])),
    }
