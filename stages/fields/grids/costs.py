"""The multiplications of one forward pass of the grid model, counted (document G, table 4.2, tells
steps a second on a card; a stage tells no times, so what does not depend on a machine is told). The
seconds that one processor took stand beside mini's results, in BENCHMARKS: `python -m
tests.benchmarks.bench_grids full` writes them.

A linear map of n tokens from a to b numbers takes n a b; attention of n queries to k keys of width
H takes 2 n k H. Norms, sums and softmax are not counted. MHCA encodes; cells attend to all cells or
in two windowings a layer; targets read K cells. `tests/grids/test_costs.py` counts the model's own.
"""

import itertools
from dataclasses import dataclass

BENCHMARKS = "benchmarks.json"  # of mini: seconds of a processor, at these sizes


@dataclass(frozen=True)
class Size:
    """A grid of `cells` along two axes, coarsened by the encoder by `patch`; `window` 1: all cells
    attend to all. `inputs`: numbers of a token before it is embedded."""

    cells: tuple[int, int] = (120, 240)
    patch: int = 1
    window: int = 1
    points: int = 1500
    targets: int = 3000
    width: int = 128
    layers: int = 5
    nearest: int = 9
    inputs: int = 7
    outputs: int = 2

    @property
    def fine(self) -> int:
        """Cells of the grid that is given."""
        return self.cells[0] * self.cells[1]

    @property
    def coarse(self) -> int:
        """Cells that the layers see."""
        return self.fine // self.patch**2

    @property
    def heard(self) -> int:
        """Tokens that cells hear beside their own: the encoder that coarsens reads fine cells."""
        return self.points + (self.fine if self.patch > 1 else 0)

    @property
    def attending(self) -> int:
        """Places in a layer's attention: all cells, or those of two windowings, of which the
        shifted one begins before the first row and may end after the last."""
        if self.window == 1:
            return self.coarse
        rows, columns = (count // self.patch for count in self.cells)
        shifted = rows + self.window - self.window // 2
        return (rows + -(-shifted // self.window) * self.window) * columns


def mlp(count: int, *sizes: int) -> int:
    """Of `count` tokens through linear maps of these sizes."""
    return count * sum(a * b for a, b in itertools.pairwise(sizes))


def maps(size: Size) -> int:
    """Of linear maps: tokens of cells, points and targets, then layers, then what is answered."""
    wide, every, coarsened = size.width, size.coarse, size.patch > 1
    # a coarsened grid has tokens of its own beside those of the cells that it is given
    tokens = size.fine + size.points + size.targets + (every if coarsened else 0)
    encoded = mlp(tokens, size.inputs, wide, wide, wide)
    encoded += 4 * every * wide**2 + 2 * size.heard * wide**2
    among = 4 * size.attending * wide**2
    reading = 2 * size.targets * wide**2 + 2 * every * wide**2
    feeding = 2 * (every + size.targets) * wide**2
    answered = mlp(size.targets, wide, wide, wide, size.outputs)
    return encoded + size.layers * (among + reading + feeding) + answered


def attention(size: Size) -> int:
    """Of queries with keys and of weights with values."""
    keys = size.coarse if size.window == 1 else size.window**2
    read = size.attending * keys + size.targets * size.nearest
    return 2 * size.width * (size.heard + size.coarse + size.layers * read)


def forward(size: Size) -> int:
    """All of it."""
    return maps(size) + attention(size)


def full_over_coarse(rows: int = 120) -> float:
    """What the TNP on the full grid, of so many rows, takes over Swin in windows of 5 on one of a
    quarter of them."""
    cells = (rows, 2 * rows)
    return forward(Size(cells)) / forward(Size(cells, patch=4, window=5))
