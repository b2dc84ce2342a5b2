"""What every network of the family reads and returns.

Values are observations of a system at equal times, standardised. Shapes: B windows, W times of
warming up, S of a window, S' of them that count in the loss (document R, section 2.4.1), T times,
O observed, H width.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from stages.contracts import Model


@dataclass(frozen=True)
class Batch:
    """Windows of observations, of which the first W only warm up a state; what comes next at the
    last S' times of each."""

    inputs: Float[Tensor, "B W+S O"]
    targets: Float[Tensor, "B L O"]
    warm: int


@dataclass(frozen=True)
class Forecast:
    """What was said of the next observation at the last S' times."""

    mean: Float[Tensor, "B L O"]


class Forecaster(Model):
    """A network that says the next observation at every time, from those up to it.

    observed: O; scale: the standard deviation of an observation's change in a step, in standardised
    units; span: S, the times that it looks back to; output: "next" says the observation itself (R,
    equations 13 and 18), "change" how far it moves, in units of `scale`. stateful: it carries more
    than a window's values, so that a run in pieces is a run in one.
    """

    stateful: bool = True
    span: int
    limits: ClassVar[Mapping[str, int]] = {
        "width": 4096, "layers": 64, "heads": 64, "span": 4096, "depth": 64, "memory": 4096,
        "observed": 100_000,
    }  # fmt: skip
    words: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "gate": ("additive", "rate", "coupled", "dependent"),
        "attention": ("none", "self", "input", "previous"),
        "bias": ("none", "distance", "content"),
        "order": ("pre", "post"),
        "output": ("next", "change"),
        "reset": ("after", "before"),
    }

    @classmethod
    def problems(cls, given: Mapping[str, Any]) -> list[str]:
        """Dropout is a share, the scale of a change a size."""
        found, dropout = [], given.get("dropout", 0.0)
        if not (type(dropout) in (int, float) and 0 <= dropout < 1):
            found.append(f"dropout must be a number from 0 to below 1, not {dropout!r}")
        scale = given.get("scale", 1.0)
        if not (type(scale) is float and 0 < scale < float("inf")):
            found.append(f"scale must be a number above 0, not {scale!r}")
        return found

    @classmethod
    def misfits(cls, whole: Mapping[str, Any]) -> list[str]:
        """The width is a multiple of the heads."""
        width, heads = whole["width"], whole.get("heads", 1)
        return [f"width {width} is not a multiple of heads {heads}"] if width % heads else []

    def __init__(self, observed: int, scale: float, width: int, output: str):
        super().__init__()
        self.change, self.scale = output == "change", scale
        self.outward = nn.Linear(width, observed)

    def said(
        self, hidden: Float[Tensor, "B T H"], values: Float[Tensor, "B T O"]
    ) -> Float[Tensor, "B T O"]:
        """The next observations, from hidden states and the observations there (R, equation 13)."""
        out = self.outward(hidden)
        return values + self.scale * out if self.change else out

    def run(self, values: Float[Tensor, "B T O"], state: Any = None) -> tuple[Tensor, Any]:
        """What comes next at each of these times (B, T, O), and the state to go on from; `state`
        is that of the times before, None at the beginning."""
        raise TypeError(f"{type(self).__name__} does not say how it runs")

    def forward(self, batch: Batch) -> Forecast:
        """The forecasts that count. A state is warmed up without gradient: back-propagation is
        truncated at the window (R, section 2.4.1)."""
        state = None
        if self.stateful and batch.warm:
            with torch.no_grad():
                _, state = self.run(batch.inputs[:, : batch.warm])
        said, _ = self.run(batch.inputs[:, batch.warm :], state)
        return Forecast(said[:, -batch.targets.shape[1] :])
