"""Simulated temperature of the whole globe: skin temperature on a grid, temperature 2 m above the
ground at stations (document G, section 3.1.2, whose data are ERA5's; here all is ours).

The climate falls from the equator to the poles, and by LAPSE with height. Orography is one fixed
sum of waves on the sphere; land is where it is above SHORE, so there are coasts. A task's weather
is Gaussian: f, sums of WAVES fixed plane waves cos(k.n), sin(k.n) on the unit sphere with random
amplitudes, is common to skin and air; g, waves likewise, is the air's own, large over land alone.
So the exact law is known (tasks.py). Kelvin, degrees north and east, kilometres of height, values
given in units of SCALE about MEAN.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stages.fields.problems.coupled.tasks import Tasks, exact
from stages.fields.problems.functions.plans import Array, Kept, Training
from stages.seeds import stream

MEAN, SCALE = 279.0, 21.2  # K: G's standardisation of 2 m temperature
LAPSE = 6.5  # K/km
SHORE = 0.25  # of the orography's standard deviations
HEIGHT = 1.5  # km a standard deviation above the shore
COMMON, OWN_LAND, OWN_SEA = 6.0, 4.0, 0.5  # K, standard deviations of f and g
CONTRAST = 3.0  # K, land's air below its skin
WAVES = 60
ROUGH_GROUND, ROUGH_COMMON, ROUGH_OWN = 6.0, 5.0, 8.0  # wave numbers: standard deviations of k


def vectors(x: Array) -> Array:
    """Unit vectors (..., 3) of latitudes and longitudes in degrees."""
    north, east = np.radians(x[..., 0]), np.radians(x[..., 1])
    return np.stack((np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)), -1)


def waves(x: Array, numbers: Array) -> Array:
    """cos(k.n) and sin(k.n), of unit variance together: (..., 2 WAVES)."""
    phase = vectors(x) @ numbers.T
    return np.concatenate((np.cos(phase), np.sin(phase)), -1) / np.sqrt(len(numbers))


@dataclass(frozen=True)
class Earth:
    """The ground and the weather's waves: the same in all tasks of a seed."""

    seed: int

    def numbers(self, name: str, rough: float) -> Array:
        """Wave vectors (WAVES, 3)."""
        return rough * stream(self.seed, "globe", name).standard_normal((WAVES, 3))

    @cached_property
    def ground(self) -> tuple[Array, Array]:
        """Wave vectors and amplitudes of the orography."""
        amplitudes = stream(self.seed, "globe", "ground", "amplitudes").standard_normal(2 * WAVES)
        return self.numbers("ground", ROUGH_GROUND), amplitudes

    @cached_property
    def weather(self) -> tuple[Array, Array]:
        """Wave vectors of f and g."""
        return self.numbers("common", ROUGH_COMMON), self.numbers("own", ROUGH_OWN)

    def height(self, x: Array) -> Array:
        """Kilometres above the sea (...), 0 at sea."""
        numbers, amplitudes = self.ground
        return np.maximum(waves(x, numbers) @ amplitudes - SHORE, 0.0) * HEIGHT

    def mean(self, quantity: int, x: Array) -> Array:
        """Climate of the air (0) or the skin (1), standardised."""
        height, north = self.height(x), np.radians(x[..., 0])
        skin = 300.0 - 45.0 * np.sin(north) ** 2 - LAPSE * height
        return (skin - (CONTRAST * (height > 0) if quantity == 0 else 0.0) - MEAN) / SCALE

    def factors(self, quantity: int, x: Array) -> Array:
        """What of each wave a value takes (..., 4 WAVES)."""
        common, own = self.weather
        size = np.where(self.height(x) > 0, OWN_LAND, OWN_SEA) * (quantity == 0)
        parts = COMMON * waves(x, common), size[..., None] * waves(x, own)
        return np.concatenate(parts, -1) / SCALE

    def covariance(self, first: int, second: int, a: Array, b: Array) -> Array:
        """A sum over waves."""
        return np.asarray(self.factors(first, a) @ self.factors(second, b).swapaxes(-1, -2))


@dataclass(frozen=True)
class Globe:
    """Tasks: 1 to `context` stations, `targets` places, evenly over the sphere; a grid of `rows` by
    twice as many columns, from the date line on; noise in kelvin."""

    seed: int
    rows: int
    context: int
    targets: int
    noise: float

    sphere = True

    @property
    def axes(self) -> tuple[Array, ...]:
        """Latitudes and longitudes of the cells' middles, degrees."""
        step = 180.0 / self.rows
        north = -90.0 + step * (np.arange(self.rows) + 0.5)
        return north, -180.0 + step * (np.arange(2 * self.rows) + 0.5)

    @property
    def places(self) -> Array:
        """Where the cells are (M, 2)."""
        return np.stack(np.meshgrid(*self.axes, indexing="ij"), -1).reshape(-1, 2)

    @property
    def prior(self) -> tuple[float, float]:
        """Mean and standard deviation of a value of which nothing, not even where, is known:
        over the cells, weighed by their areas."""
        earth, x = Earth(self.seed), self.places
        area = np.cos(np.radians(x[:, 0])) / np.cos(np.radians(x[:, 0])).sum()
        mean = earth.mean(0, x)
        weather = np.square(earth.factors(0, x)).sum(1)
        middle = float(area @ mean)
        spread = float(area @ (np.square(mean - middle) + weather))
        return middle, float(np.sqrt(spread + (self.noise / SCALE) ** 2))

    def drawn(self, tasks: int, source: Training | Kept) -> Tasks:
        """Tasks of a stream; with the exact laws where they are kept."""
        rng, kept = source.rng(), isinstance(source, Kept)
        earth, noise = Earth(self.seed), (self.noise / SCALE, self.noise / SCALE)
        counts = rng.integers(1, self.context + 1, tasks if kept else 1)
        most = self.context if kept else int(counts.max())
        real = np.arange(most) < np.broadcast_to(counts, tasks)[:, None]
        north = np.degrees(np.arcsin(rng.uniform(-1, 1, (tasks, most + self.targets))))
        east = rng.uniform(-180, 180, north.shape)
        x = np.stack((north, east), -1)
        cells = np.broadcast_to(self.places, (tasks, *self.places.shape))
        off, on = self.weather(earth, x, noise, rng)
        y, asked = off[:, :most] * real, off[:, most:]
        found = Tasks(x[:, :most], y[..., None], real, x[:, most:], asked[..., None], on, {})
        return replace(found, exact=exact(earth, found, cells, noise)) if kept else found

    def weather(
        self, earth: Earth, x: Array, noise: tuple[float, float], rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """One draw at points (S, N) and cells (S, M): of the waves' amplitudes, which is cheaper
        than one of all values."""
        found = []
        amplitudes = rng.standard_normal((len(x), 4 * WAVES))
        for quantity, places in enumerate((x, self.places)):
            told = np.einsum("nw,sw->sn" if places.ndim == 2 else "snw,sw->sn",
                             earth.factors(quantity, places), amplitudes)  # fmt: skip
            told = told + earth.mean(quantity, places)
            found.append(told + noise[quantity] * rng.standard_normal(told.shape))
        return found[0], found[1]
