"""Navier-Stokes: vorticity on the unit torus, as the thesis' problem C.1.3 has it (equation C.2; Li
et al. 2021, section 5.3).

dw/dt = -(u . grad) w + nu lap w + f with u = (d psi/dy, -d psi/dx), lap psi = -w; f = amplitude
(sin + cos)(2 pi (x + y)); w0 is drawn from N(0, gain (-lap + 49)^-2.5) without its mean. Li et al.
print gain = 7^1.5; their generator draws 2 * 7^3. Pseudo-spectral: products on the grid, modes
|k| < grid/3 kept, so that no product of two is aliased; viscosity exact by an integrating factor,
the rest by Runge-Kutta of order 4, whose step must keep the Courant number below the method's
limit. All in float64. The authors' own runs read another simulation (PDEBench NS_Incom: a scalar
carried by a flow); it belongs to the full profile.
Shapes: B trajectories, G grid; fields (..., G, G) over x, y; their transforms (..., G, G/2 + 1).
Lengths in sides of the box; time and vorticity in units to match, so all numbers are without
dimension.
"""

from pathlib import Path

import numpy as np
from scipy import fft

from stages.errors import InputError
from stages.files import atomic_file, write_json
from stages.params import NavierStokes
from stages.seeds import stream

COURANT_MAX = 2.8  # Runge-Kutta of order 4 is stable on the imaginary axis up to 2.83
TAU, ALPHA = 7.0, 2.5  # of the initial law


class Torus:
    """Fourier space of a G x G grid. `share`: modes below this share of G/2 are kept; above 2/3
    products are aliased."""

    def __init__(self, grid: int, share: float = 2 / 3):
        self.grid = grid
        self.top = int(np.ceil(share * grid / 2 - 1e-9)) - 1  # the highest wave number that is kept
        number = fft.fftfreq(grid, 1 / grid)[:, None], np.arange(grid // 2 + 1.0)[None]
        self.kx, self.ky = (2 * np.pi * n for n in number)
        self.k2 = self.kx**2 + self.ky**2
        self.keep = (np.abs(number[0]) <= self.top) & (number[1] <= self.top) & (self.k2 > 0)
        self.inverse = np.divide(1.0, self.k2, out=np.zeros_like(self.k2), where=self.keep)
        self._u, self._v = 1j * self.ky * self.inverse, -1j * self.kx * self.inverse
        self._shear, self._strain = (
            (self.kx**2 - self.ky**2) * self.keep,
            self.kx * self.ky * self.keep,
        )

    def field(self, spectrum: np.ndarray) -> np.ndarray:
        """The field (..., G, G) of a transform."""
        return fft.irfft2(spectrum, s=(self.grid, self.grid), workers=1)

    def spectrum(self, field: np.ndarray) -> np.ndarray:
        """The transform (..., G, G/2 + 1) of a field, unscaled; modes that are not kept, and the
        mean, are dropped."""
        return fft.rfft2(field, workers=1) * self.keep

    def velocity(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """u and v (..., G, G) of the vorticity with transform w: free of divergence, without a
        mean."""
        return self.field(self._u * w), self.field(self._v * w)

    def advection(self, w: np.ndarray) -> np.ndarray:
        """The transform of -(u . grad) w = (dyy - dxx)(uv) - dxy(v^2 - u^2): four transforms
        instead of five."""
        u, v = self.velocity(w)
        return self._shear * fft.rfft2(u * v, workers=1) + self._strain * fft.rfft2(
            v * v - u * u, workers=1
        )


def forcing(torus: Torus, amplitude: float) -> np.ndarray:
    """The transform of amplitude (sin 2 pi (x + y) + cos 2 pi (x + y))."""
    x = np.arange(torus.grid) / torus.grid
    phase = 2 * np.pi * np.add.outer(x, x)
    return torus.spectrum(amplitude * (np.sin(phase) + np.cos(phase)))


def initial(torus: Torus, gain: float, rng: np.random.Generator) -> np.ndarray:
    """The transform of one draw from N(0, gain (-lap + 49)^-2.5), cut to the kept modes, without
    its mean."""
    white = torus.spectrum(rng.standard_normal((torus.grid, torus.grid)))
    return torus.grid * np.sqrt(gain) * (torus.k2 + TAU**2) ** (-ALPHA / 2) * white


def courant(torus: Torus, w: np.ndarray, step: float) -> float:
    """The step times the fastest frequency that advection gives the kept modes; not a number
    where w is none."""
    u, v = torus.velocity(w)
    return float(step * 2 * np.pi * torus.top * (np.abs(u) + np.abs(v)).max())


def advance(
    torus: Torus, w: np.ndarray, viscosity: float, force: np.ndarray, step: float, steps: int
) -> np.ndarray:
    """`steps` steps of length `step` from the transform w (..., G, G/2 + 1): order 4, viscosity
    exact."""
    half = np.exp(-viscosity * torus.k2 * step / 2)
    whole = half * half
    for _ in range(steps):
        a = step * (torus.advection(w) + force)
        b = step * (torus.advection(half * (w + a / 2)) + force)
        c = step * (torus.advection(half * w + b / 2) + force)
        d = step * (torus.advection(whole * w + half * c) + force)
        w = whole * w + (whole * a + 2 * half * (b + c) + d) / 6
    return w


def trajectories(config: NavierStokes, numbers: range) -> np.ndarray:
    """Vorticity (B, outputs, G, G), float64, of the trajectories of these numbers; each has a
    random stream of its own.

    InputError when the step is too long for the flow.
    """
    torus = Torus(config.grid)
    force, step = forcing(torus, config.forcing), config.interval / config.steps_per_output
    w = np.stack(
        [
            initial(torus, config.gain, stream(config.seed, "navier_stokes", number))
            for number in numbers
        ]
    )
    found = np.empty((len(numbers), config.outputs, config.grid, config.grid))
    for output in range(config.skip + config.outputs):
        if output:
            w = advance(torus, w, config.viscosity, force, step, config.steps_per_output)
        number = courant(torus, w, step)
        if not number < COURANT_MAX:
            raise InputError(
                "the time step is too long for the flow",
                where="navier_stokes.steps_per_output",
                expected=f"a Courant number below {COURANT_MAX}",
                found=f"{number:.3g} at output {output}",
                remedy="raise steps_per_output, or make interval shorter",
            )
        if output >= config.skip:
            found[:, output - config.skip] = torus.field(w)
    return found


def make(config: NavierStokes, folder: Path) -> None:
    """Write vorticity-0.npy, vorticity-1.npy, ... (float32, trajectories x outputs x G x G) and
    meta.json into `folder`.

    InputError when the step is too long for the flow.
    """
    total = config.train + config.val + config.test
    parts = [
        range(begin, min(begin + config.per_file, total))
        for begin in range(0, total, config.per_file)
    ]
    for k, part in enumerate(parts):
        with atomic_file(folder / f"vorticity-{k}.npy") as file:
            np.save(file, trajectories(config, part).astype("<f4"), allow_pickle=False)
    write_json(
        folder / "meta.json",
        {
            "grid": config.grid,
            "viscosity": config.viscosity,
            "forcing": config.forcing,
            "gain": config.gain,
            "interval": config.interval,
            "steps_per_output": config.steps_per_output,
            "skip": config.skip,
            "outputs": config.outputs,
            "seed": config.seed,
            "trajectories": [len(part) for part in parts],
            "split": {"train": config.train, "val": config.val, "test": config.test},
        },
    )
