"""A four-dimensional wind without horizontal divergence, from a stream function.

psi(x, y, z, t) = mean flow + meandering jet + eddies, with x = R cos(lat0) (lon - lon0) and y = R
(lat - lat0) in m;
u = -(1/R) dpsi/dlat = -dpsi/dy and v = 1/(R cos lat) dpsi/dlon = (cos lat0 / cos lat) dpsi/dx. On
the sphere this has exactly no divergence, whatever psi is. All derivatives are written out; nothing
is differenced. Eddies are a Gaussian random field at four scales, as a sum of J plane waves: wave
vectors are normal with standard deviation 1/L (a squared-exponential correlation of length L), each
wave drifts with the mean flow at a level of its own and changes phase at a random rate, so that an
eddy lives for about half a turnover time L / rms: hours.
Units: degrees, m, s since the start, m/s towards east (u) and north (v). Shapes: N points, J waves.
"""

from dataclasses import dataclass

import numpy as np

from stages.seeds import stream

EARTH_M = 6371008.8
SCALES_KM = (50.0, 90.0, 165.0, 300.0)  # eddy lengths L, evenly spaced in log
RMS_50KM_M_S = 2.0  # per component at 50 km; grows as L^(1/3), the -5/3 spectrum of the mesoscale
WAVES = 64  # a scale
CHUNK = 8192  # points at once: 8192 x 256 waves of float64 are 16 MiB


@dataclass(frozen=True)
class Jet:
    """A westerly jet: its axis meanders and travels, its strength pulses; half-widths in m,
    angles in rad."""

    speed: float
    heading: float  # of the axis, counter-clockwise from east
    centre: float  # of the axis, m left of the area's middle
    width: float
    meander: float
    wavenumber: float  # rad/m along the axis
    frequency: float  # rad/s: the meander travels at 6-12 m/s
    phase: float
    level: float
    depth: float
    pulse: float  # rad/s
    pulse_phase: float

    def parts(
        self, x: np.ndarray, y: np.ndarray, z: np.ndarray, t: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(psi, dpsi/dx, dpsi/dy) of psi = -U(z,t) W tanh((n - n_c(s,t)) / W), s along and n
        across the axis."""
        cos, sin = np.cos(self.heading), np.sin(self.heading)
        along, across = x * cos + y * sin, y * cos - x * sin
        angle = self.wavenumber * along - self.frequency * t + self.phase
        speed = (
            self.speed
            * np.exp(-(((z - self.level) / self.depth) ** 2))
            * (1 + 0.15 * np.sin(self.pulse * t + self.pulse_phase))
        )
        bend = np.tanh((across - self.centre - self.meander * np.sin(angle)) / self.width)
        d_across = -speed * (1 - bend**2)
        d_along = -d_across * self.meander * self.wavenumber * np.cos(angle)
        return (
            -speed * self.width * bend,
            d_along * cos - d_across * sin,
            d_along * sin + d_across * cos,
        )


@dataclass(frozen=True)
class Wind:
    """The wind of one simulated sky. `waves` is (5, J): the phase's coefficients of x, y, z, t
    and 1; `amplitude` (J,)."""

    lat0: float
    lon0: float
    mean: tuple[
        float, float
    ]  # east at 10 km (0 at the ground), north at the ground (0 at 10 km), m/s
    jet: Jet
    waves: np.ndarray
    amplitude: np.ndarray

    def _local(self, lat_deg, lon_deg, alt_m, t_s):
        lat, lon, z, t = (
            np.atleast_1d(np.asarray(a, float))
            for a in np.broadcast_arrays(lat_deg, lon_deg, alt_m, t_s)
        )
        scale = np.cos(np.radians(self.lat0)) / np.cos(np.radians(lat))
        x = EARTH_M * np.cos(np.radians(self.lat0)) * np.radians(lon - self.lon0)
        return x, EARTH_M * np.radians(lat - self.lat0), z, t, scale

    def _phase(self, x, y, z, t):
        return np.stack([x, y, z, t, np.ones_like(x)], axis=1) @ self.waves

    def stream(
        self, lat_deg: np.ndarray, lon_deg: np.ndarray, alt_m: np.ndarray, t_s: np.ndarray
    ) -> np.ndarray:
        """The stream function in m2/s at N points, (N,)."""
        x, y, z, t, _ = self._local(lat_deg, lon_deg, alt_m, t_s)
        mean = -self.mean[0] * z / 1e4 * y + self.mean[1] * (1 - z / 1e4) * x
        return (
            mean + self.jet.parts(x, y, z, t)[0] + np.cos(self._phase(x, y, z, t)) @ self.amplitude
        )

    def eddies(
        self, lat_deg: np.ndarray, lon_deg: np.ndarray, alt_m: np.ndarray, t_s: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The eddies' part of the wind alone, m/s east and north, ((N,), (N,))."""
        x, y, z, t, scale = self._local(lat_deg, lon_deg, alt_m, t_s)
        weights = np.stack(
            [self.amplitude * self.waves[1], -self.amplitude * self.waves[0]], axis=1
        )  # -d/dy, d/dx of cos
        parts = [
            np.sin(self._phase(*(a[i : i + CHUNK] for a in (x, y, z, t)))) @ weights
            for i in range(0, len(x), CHUNK)
        ]
        uv = np.concatenate(parts) if parts else np.empty((0, 2))
        return uv[:, 0], uv[:, 1] * scale

    def __call__(
        self, lat_deg: np.ndarray, lon_deg: np.ndarray, alt_m: np.ndarray, t_s: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Wind at N points, m/s towards east and north, ((N,), (N,)); arguments broadcast
        against each other."""
        x, y, z, t, scale = self._local(lat_deg, lon_deg, alt_m, t_s)
        _, d_dx, d_dy = self.jet.parts(x, y, z, t)
        u, v = self.eddies(lat_deg, lon_deg, alt_m, t_s)
        return u + self.mean[0] * z / 1e4 - d_dy, v + (self.mean[1] * (1 - z / 1e4) + d_dx) * scale


def make(
    seed: int, lat0: float, lon0: float, north_m: float, bottom_m: float, top_m: float
) -> Wind:
    """Draw a wind for an area centred on (lat0, lon0) that reaches `north_m` north-south and
    from bottom to top."""
    rng = stream(seed, "simulate", "wind", "jet")
    wavenumber = 2 * np.pi / rng.uniform(1.5e6, 3e6)
    jet = Jet(
        speed=rng.uniform(30, 48),
        heading=rng.uniform(-0.45, 0.45),
        centre=rng.uniform(-0.25, 0.25) * north_m,
        width=rng.uniform(180e3, 260e3),
        meander=rng.uniform(60e3, 120e3),
        wavenumber=wavenumber,
        frequency=wavenumber * rng.uniform(6, 12),
        phase=rng.uniform(0, 2 * np.pi),
        level=rng.uniform(9.8e3, 11.2e3),
        depth=rng.uniform(4e3, 5.5e3),
        pulse=2 * np.pi / rng.uniform(14 * 3600, 24 * 3600),
        pulse_phase=rng.uniform(0, 2 * np.pi),
    )
    mean = rng.uniform(6, 14), rng.uniform(-5, 5)
    waves, amplitudes = [], []
    for length_km in SCALES_KM:
        rng = stream(seed, "simulate", "wind", f"{length_km:.0f}")
        length, rms = length_km * 1e3, RMS_50KM_M_S * (length_km / 50) ** (1 / 3)
        kx, ky = rng.normal(0, 1 / length, (2, WAVES))
        kz = rng.normal(0, 1 / 3000.0, WAVES)  # eddies keep their shape over about 3 km of height
        level = rng.uniform(bottom_m, top_m, WAVES)
        # the drift: the mean flow at the wave's level and half the jet's peak, about the jet's
        # average over the area
        peak = 0.5 * jet.speed * np.exp(-(((level - jet.level) / jet.depth) ** 2))
        east = mean[0] * level / 1e4 + peak * np.cos(jet.heading)
        north = mean[1] * (1 - level / 1e4) + peak * np.sin(jet.heading)
        own = rng.normal(0, 1, WAVES) / (0.5 * length / rms)
        waves.append(
            np.stack(
                [kx, ky, kz, -(kx * east + ky * north) - own, rng.uniform(0, 2 * np.pi, WAVES)]
            )
        )
        # E[(a k sin)^2] = a^2 / (2 L^2) a wave and component
        amplitudes.append(np.full(WAVES, rms * length * np.sqrt(2 / WAVES)))
    return Wind(lat0, lon0, mean, jet, np.concatenate(waves, axis=1), np.concatenate(amplitudes))
