"""How every figure is drawn and kept: PNGs with fixed metadata, so that the same numbers give the
same bytes; plain numbers on logarithmic axes."""

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from PIL import Image

from stages.files import atomic_file

MARKS = "osD^vPX*<>phd8"  # in turn: arms of one colour differ by them

plt.rcParams.update(
    {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "figure.facecolor": "white",
        "legend.frameon": False,
        "axes.titlesize": 11,
    }
)


def save(figure: Figure, path: Path, shaded: bool = False, dpi: int = 110) -> None:
    """Write a PNG without the date and the software's name, of 256 colours (a third of the bytes)
    or, `shaded`, of 64 steps a channel.

    256 colours show as bands in a map and its colour bar; 64 steps of red, green and blue do not,
    and take two thirds of the bytes of 256.
    """
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=dpi, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
    picture = Image.open(drawn).convert("RGB")
    steps = [round(round(value * 63 / 255) * 255 / 63) for value in range(256)]
    picture = (
        picture.point(steps * 3)
        if shaded
        else picture.quantize(256, dither=Image.Dither.NONE, method=Image.Quantize.MAXCOVERAGE)
    )
    with atomic_file(path) as stream:  # an earlier picture stays where the disk is full
        picture.save(stream, format="PNG", optimize=True)


class Plain(LogLocator):
    """Ticks at 1, 2 and 5 of each power of ten; where more than two powers are seen, at the
    powers alone: more would run into each other."""

    def tick_values(self, low: float, high: float) -> Sequence[float]:
        """The places of ticks from `low` to `high`."""
        self.set_params(subs=(1.0, 2.0, 5.0) if high <= 100 * low else (1.0,))
        return super().tick_values(low, high)


def numbered(axis: Axis) -> None:
    """Plain numbers on a logarithmic axis."""
    axis.set_major_locator(Plain())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
