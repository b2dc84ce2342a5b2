"""Flow through a porous medium of two phases: the Darcy problem of the thesis (C.1.4, equation C.3)
after Li et al. 2021.

-div(a grad u) = 1 in the unit square, u = 0 on its border; a takes one of two values by the sign of
a Gaussian field N(0, (-lap + t^2)^-s) with zero slope across the border and no mean, s =
`smoothness`, t = `inverse_length` (2 and 3 there). The field and the equation live on lattice *
refinement cells a side (fields/elliptic.py); of its nodes i/lattice, i from 0 to lattice - 1, are
kept, as in the published files: their first row and column lie on the border (the real ones 0.001
beside it), the last one step before it.
Files: darcy_train_G.pt and darcy_test_G.pt, the zip archives that PyTorch writes: x bool (N, G, G),
true where the field is positive, and y float32 (N, G, G), the solution. Shapes: N samples, G points
a side. Units: none.
"""

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.fft import dctn

from stages.fields import elliptic
from stages.files import atomic_file
from stages.params import Darcy
from stages.seeds import stream

VALUES_AT_ONCE = 2**19  # nodes of the samples that are solved together
MOMENT = (1980, 1, 1, 0, 0, 0)  # of every archive member, so that equal arrays make equal bytes


def field(
    rng: np.random.Generator, count: int, cells: int, smoothness: float, inverse_length: float
) -> np.ndarray:
    """`count` fields at the nodes, (count, cells + 1, cells + 1): cosines with independent
    weights, their sd (pi^2 k^2 + t^2)^(-s/2)."""
    k = np.arange(cells + 1)
    sd = (np.pi**2 * (k[:, None] ** 2 + k**2) + inverse_length**2) ** (-smoothness / 2)
    norm = np.where(k == 0, 1.0, np.sqrt(2.0))  # of a cosine, so that all have the same mean square
    weights = rng.standard_normal((count, cells + 1, cells + 1)) * sd * norm[:, None] * norm
    weights[:, 0, 0] = 0.0
    ends = np.where((k == 0) | (k == cells), 1.0, 0.5)  # the transform counts inner cosines twice
    return dctn(weights * ends[:, None] * ends, type=1, axes=(1, 2))


def samples(config: Darcy, part: str, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Phases (B, G, G), bool, and solutions (B, G, G), float64, of `count` samples, some at a
    time."""
    cells = config.lattice * config.refinement
    low, high = config.coefficients
    rng, together = stream(config.seed, "darcy", part), max(1, VALUES_AT_ONCE // (cells + 1) ** 2)
    for begin in range(0, count, together):
        positive = (
            field(
                rng, min(together, count - begin), cells, config.smoothness, config.inverse_length
            )
            > 0
        )
        u = elliptic.darcy(np.where(positive, high, low), np.ones(()))
        kept = (slice(None), slice(0, cells, config.refinement), slice(0, cells, config.refinement))
        yield positive[kept], u[kept]


def archive_description(shape: tuple[int, int, int]) -> bytes:
    """What stands in an archive's data.pkl for x, bool, and y, float32, of this shape, byte by
    byte: protocol 2, storages 0 and 1."""
    n, g, _ = shape

    def whole(number):
        return b"J" + struct.pack("<i", number)

    def text(word):
        return b"X" + struct.pack("<I", len(word)) + word

    sizes = b"".join(map(whole, (n, g, g))) + b"\x87"
    strides = b"".join(map(whole, (g * g, g, 1))) + b"\x87"
    out = b"\x80\x02}("
    for name, kind in ((b"0", b"BoolStorage"), (b"1", b"FloatStorage")):
        storage = (
            b"("
            + text(b"storage")
            + b"ctorch\n"
            + kind
            + b"\n"
            + text(name)
            + text(b"cpu")
            + whole(n * g * g)
            + b"tQ"
        )
        tensor = b"(" + storage + b"K\x00" + sizes + strides + b"\x89ccollections\nOrderedDict\n)Rt"
        out += (
            text(b"x" if name == b"0" else b"y")
            + b"ctorch._utils\n_rebuild_tensor_v2\n"
            + tensor
            + b"R"
        )
    return out + b"u."


def write(path: Path, x: np.ndarray, y: np.ndarray) -> None:
    """An archive that torch.load(path, weights_only=True) takes: x (N, G, G) as bool, y (N, G,
    G) as float32, both in row order."""
    parts = {
        "data.pkl": archive_description(x.shape),
        "byteorder": b"little",
        "data/0": x.astype(bool).tobytes(),
        "data/1": y.astype("<f4").tobytes(),
        "version": b"3\n",
    }
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(f"archive/{name}", MOMENT), content)


def make(config: Darcy, folder: Path) -> None:
    """Write config.train and config.test samples into `folder`."""
    for part, count in (("train", config.train), ("test", config.test)):
        x, y = (
            np.concatenate(arrays) for arrays in zip(*samples(config, part, count), strict=True)
        )
        write(folder / f"darcy_{part}_{config.lattice}.pt", x, y)
