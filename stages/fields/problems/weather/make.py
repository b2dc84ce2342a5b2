"""Weather whose law is known, as the Climate Data Store would deliver it: for the thesis' two-day
problem (3.4, C.1.5) without ERA5.

The wind at 100 m has the stream function psi(t) = mean + sum of c_lm(t) Y_lm over degrees l = 1 ...
degree_max. The c_lm are independent red noise: c(t + dt) = r_l exp(-i m w_l dt) c(t) + fresh noise,
r_l = exp(-dt / tau_l), tau_l = memory_days (l / 6)^-2/3; a wave's own speed w_l = jet / R - 2
Omega / (l (l + 1) + 40) carries what is smaller than a few thousand km eastward (Rossby waves with
a finite radius of deformation). The variance of the wind in degree l goes as l / (1 + (l /
6)^2)^(slope / 2); psi is real: c_{l,-m} = conj. So the best forecast from whole fields is known:
each coefficient times r_l exp(-i m w_l lead) (`damping` gives both).
The other variables follow: 10 m wind is weaker and turned towards low pressure; surface pressure is
geostrophic, less over high ground; temperature has latitude, season, sun, height and the wind from
the equator; cloud rises with cyclonic turning and poleward wind. The file is NetCDF-3 as the CDS
made it until September 2024: packed shorts, hours since 1900, latitude descending, longitude from
0.
Shapes: n times, p latitudes, q longitudes, L degrees, M orders. m/s, Pa, K, share; m^2/s for psi.
"""

import io
from datetime import datetime
from pathlib import Path

import numpy as np
from scipy.io import netcdf_file
from scipy.special import sph_legendre_p_all

from stages.files import atomic_file
from stages.params import Weather
from stages.seeds import stream

EARTH_M, TURN_RAD_S, GRAVITY, GAS = 6_371_000.0, 7.292e-5, 9.81, 287.05
PEAK, DEFORMATION = (
    6.0,
    40.0,
)  # degree of the strongest waves; (Earth's radius / radius of deformation)^2
DAY_S = 86400.0
FILL = -32767
UNITS = {
    "u10": ("m s**-1", "10 metre U wind component"),
    "v10": ("m s**-1", "10 metre V wind component"),
    "u100": ("m s**-1", "100 metre U wind component"),
    "v100": ("m s**-1", "100 metre V wind component"),
    "sp": ("Pa", "Surface pressure"),
    "t2m": ("K", "2 metre temperature"),
    "tcc": ("(0 - 1)", "Total cloud cover"),
}


def axes(config: Weather) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times (n,) datetime64[h], latitudes (p,) from 90 down to -90, longitudes (q,) from 0,
    degrees."""
    start = np.datetime64(datetime.fromisoformat(config.start).replace(tzinfo=None), "h")
    return (
        start + np.arange(0, config.days * 24, config.step_h),
        np.arange(90.0, -91.0, -config.grid_deg),
        np.arange(0.0, 360.0, config.grid_deg),
    )


def damping(config: Weather, lead_s: float) -> np.ndarray:
    """What is left of each coefficient after `lead_s` seconds, on average: (L, M) complex, for l
    from 1 and m from 0."""
    degree = np.arange(1, config.degree_max + 1)[:, None]
    order = np.arange(config.degree_max + 1)[None]
    memory_s = config.memory_days * DAY_S * (degree / PEAK) ** (-2 / 3)
    speed = config.jet_m_s / EARTH_M - 2 * TURN_RAD_S / (degree * (degree + 1) + DEFORMATION)
    return np.exp(-lead_s / memory_s - 1j * order * speed * lead_s)


def deviations(config: Weather) -> np.ndarray:
    """Standard deviation of c_lm by degree (L, 1), m^2/s: the eddies' wind has variance
    wind_sd_m_s^2 a component, over the sphere."""
    degree = np.arange(1, config.degree_max + 1)[:, None].astype(np.float64)
    wind = degree / (1 + (degree / PEAK) ** 2) ** (config.slope / 2)
    kinetic = (
        2 * config.wind_sd_m_s**2 * wind / wind.sum()
    )  # of each degree; l (l + 1) / R^2 * (2 l + 1) sd^2 / (4 pi) each
    return np.sqrt(kinetic * 4 * np.pi * EARTH_M**2 / (degree * (degree + 1) * (2 * degree + 1)))


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Complex normal numbers of unit variance, (..., M); real for order 0."""
    z = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)
    z[..., 0] = z[..., 0].real * np.sqrt(2)
    return z


def coefficients(config: Weather) -> np.ndarray:
    """c_lm at every time, (n, L, M) complex m^2/s, zero where m > l: a stationary draw of the
    law."""
    rng = stream(config.seed, "weather", "eddies")
    n = config.days * 24 // config.step_h
    top = config.degree_max
    keep = damping(config, config.step_h * 3600.0)
    fresh = deviations(config) * np.tril(np.ones((top, top + 1)), 1)
    c = np.empty((n, top, top + 1), complex)
    c[0] = fresh * _normal(rng, (top, top + 1))
    for k in range(1, n):
        c[k] = keep * c[k - 1] + np.sqrt(1 - np.abs(keep) ** 2) * fresh * _normal(
            rng, (top, top + 1)
        )
    return c


class Sphere:
    """Sums of spherical harmonics on a grid. `lat` (p,) and `lon` (q,) in degrees; poles are
    seen from 0.01 degrees away."""

    def __init__(self, top: int, lat: np.ndarray, lon: np.ndarray):
        angle = np.radians(np.clip(90 - lat, 0.01, 179.99))
        both = sph_legendre_p_all(top, top, angle, diff_n=1)[:, 1:, : top + 1]
        self.legendre, self.slope = np.moveaxis(
            both, -1, 1
        )  # (p, L, M) each: the function, and its derivative by colatitude
        wave = np.exp(1j * np.outer(np.arange(top + 1), np.radians(lon)))
        self.wave = wave * np.where(np.arange(top + 1) == 0, 1, 2)[:, None]
        self.sine, self.degree = np.sin(angle), np.arange(1, top + 1)[:, None]

    def _sum(self, c: np.ndarray, legendre: np.ndarray) -> np.ndarray:
        by_order = np.einsum("lm,plm->pm", c, legendre)
        return by_order.real @ self.wave.real - by_order.imag @ self.wave.imag

    def value(self, c: np.ndarray) -> np.ndarray:
        """(p, q) of coefficients (L, M)."""
        return self._sum(c, self.legendre)

    def wind(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Eastward and northward, (p, q) m/s: u = -dpsi/dlat / R, v = dpsi/dlon / (R cos lat)."""
        order = np.arange(c.shape[1])
        return self._sum(c, self.slope) / EARTH_M, self._sum(1j * order * c, self.legendre) / (
            EARTH_M * self.sine[:, None]
        )

    def vorticity(self, c: np.ndarray) -> np.ndarray:
        """(p, q) 1/s: the Laplacian of psi."""
        return self._sum(-self.degree * (self.degree + 1) / EARTH_M**2 * c, self.legendre)


def ground(config: Weather, sphere: Sphere) -> tuple[np.ndarray, np.ndarray]:
    """Height of the ground, m, and the share of land, both (p, q): drawn once, smooth, a third
    of the globe."""
    rng = stream(config.seed, "weather", "ground")
    shape = (config.degree_max, config.degree_max + 1)
    degree = np.arange(1, shape[0] + 1)[:, None]
    rough = sphere.value(
        np.tril(np.ones(shape), 1) * degree**-1.5 * (degree <= 20) * _normal(rng, shape)
    )
    rough = (rough - rough.mean()) / rough.std()
    return 900.0 * np.maximum(rough - 0.45, 0) ** 1.5, 1 / (1 + np.exp(-6 * (rough - 0.45)))


def mean_wind(config: Weather, sphere: Sphere, lat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lasting part of the wind at 100 m, (p, q) m/s each: trades and westerlies, and waves
    that stand still."""
    rng = stream(config.seed, "weather", "standing")
    shape = (config.degree_max, config.degree_max + 1)
    standing = (
        deviations(config)
        * np.tril(np.ones(shape), 1)
        * (np.arange(1, shape[0] + 1)[:, None] <= 5)
        * _normal(rng, shape)
    )
    u, v = sphere.wind(standing)
    turn = np.radians(lat)[:, None]
    return u + config.jet_m_s * (
        np.sin(2 * turn) ** 2 * np.sin(np.abs(turn)) - 0.4 * np.cos(turn) ** 6
    ), v


def fields(config: Weather) -> dict[str, np.ndarray]:
    """All variables, (n, p, q) float32 each, in the order and units of UNITS."""
    times, lat, lon = axes(config)
    sphere = Sphere(config.degree_max, lat, lon)
    height, land = ground(config, sphere)
    lasting_u, lasting_v = mean_wind(config, sphere, lat)
    made = {name: np.empty((len(times), len(lat), len(lon)), np.float32) for name in UNITS}
    sine = np.sin(np.radians(lat))[:, None]
    side = np.tanh(sine / 0.2)  # the hemisphere, without a jump at the equator
    turned = np.exp(1j * np.radians(8 + 12 * land) * side) / (1.25 + 0.35 * land)
    for k, (time, c) in enumerate(zip(times, coefficients(config), strict=True)):
        u, v = sphere.wind(c)
        vorticity, psi = sphere.vorticity(c), sphere.value(c)
        hours = (time - times[0].astype("datetime64[Y]").astype("datetime64[h]")).astype(float)
        season = np.cos(2 * np.pi * (hours / 24 - 200) / 365.25)
        noon = np.cos(2 * np.pi * ((hours % 24) / 24 + lon[None] / 360 - 15 / 24))
        t2m = (
            302
            - 42 * sine**2
            + 14 * sine * season * (0.4 + 0.6 * land)
            - 0.0065 * height
            + (0.5 + 4.5 * land) * np.sqrt(1 - sine**2) * noon
            + 0.35 * side * v
        )
        pressure = 101_300 * np.exp(-GRAVITY * height / (GAS * np.maximum(t2m, 200)))
        surface = ((u + lasting_u) + 1j * (v + lasting_v)) * turned
        cloud = 1 / (1 + np.exp(-(0.3 + 0.16 * side * v + 4e4 * side * vorticity)))
        values = (
            surface.real,
            surface.imag,
            u + lasting_u,
            v + lasting_v,
            pressure + 1.2 * 2 * TURN_RAD_S * sine * psi,
            t2m,
            cloud,
        )
        for name, value in zip(UNITS, values, strict=True):
            made[name][k] = value
    return made


def packed(values: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Shorts, scale and offset: values = shorts * scale + offset to half a scale; scale and
    offset in six digits, so bytes last."""
    low, high = float(values.min()), float(values.max())
    offset = float(f"{(low + high) / 2:.6g}")
    scale = float(f"{max(high - offset, offset - low, 1e-6) / 32766 * 1.0001:.6g}")
    return np.rint((values.astype(np.float64) - offset) / scale).astype(">i2"), scale, offset


def make(config: Weather, folder: Path) -> None:
    """Write era5_simulated.nc into `folder`: all variables, the whole globe, every step_h hours."""
    times, lat, lon = axes(config)
    hours = (times - np.datetime64("1900-01-01T00", "h")).astype(">i4")
    buffer = io.BytesIO()
    with netcdf_file(buffer, "w", version=2) as file:
        file.Conventions, file.history = "CF-1.6", "simulated"
        for name, axis, kind, units in (
            ("longitude", lon, "f4", "degrees_east"),
            ("latitude", lat, "f4", "degrees_north"),
            ("time", hours, "i4", "hours since 1900-01-01 00:00:00.0"),
        ):
            file.createDimension(name, len(axis))
            stored = file.createVariable(name, kind, (name,))
            stored[:] = axis
            stored.units, stored.long_name = units, name
        stored.calendar = "gregorian"  # of time, the last one
        for name, values in fields(config).items():
            stored = file.createVariable(name, "i2", ("time", "latitude", "longitude"))
            stored[:], stored.scale_factor, stored.add_offset = packed(values)
            stored._FillValue = stored.missing_value = np.int16(FILL)
            stored.units, stored.long_name = UNITS[name]
        file.flush()
        with atomic_file(folder / "era5_simulated.nc") as target:
            target.write(buffer.getbuffer())
