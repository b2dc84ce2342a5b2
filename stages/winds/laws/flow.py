"""How a field of wind flows: its divergence and shear, and the spectrum of its kinetic energy.

A field is a level's wind on a regular grid of latitudes and longitudes. Slopes are differences over
two steps, inside its edge, on the sphere: divergence = (du/dlon + d(v cos lat)/dlat) / (R cos lat),
shear the root of the sum of the squares of the four slopes of u and v. The spectrum is that of the
rows, each without its straight line and tapered by Hann's window: energy density by wavenumber,
averaged over rows and added over both components; its slope is that of a straight line through the
logarithms, between the second wavenumber and half of the highest. What is differenced on a grid
has a little divergence by itself, so the truth's numbers on the same grid belong beside a model's.
Shapes: P latitudes, Q longitudes, K wavenumbers. Units: degrees, m/s, rad/m.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stages.errors import InputError
from stages.winds.laws.layout import DIVERGENCE, RATIO, SHEAR, SLOPE, TRUE
from stages.winds.sky.wind import EARTH_M

AXES, WINDS, TRUTH = ("lat_deg", "lon_deg"), ("u_m_s", "v_m_s"), ("u_true_m_s", "v_true_m_s")
TOLD = {  # metric -> what it is of Flow, its unit
    DIVERGENCE: ("divergence_per_s", "1/s"),
    SHEAR: ("shear_per_s", "1/s"),
    RATIO: ("ratio", "1"),
    SLOPE: ("slope", "1"),
}
LEAST = 12  # places along each axis: fewer have no spectrum to tell of


@dataclass(frozen=True)
class Flow:
    """Root mean squares of divergence and shear, 1/s; the slope of the spectrum, 1."""

    divergence_per_s: float
    shear_per_s: float
    slope: float

    @property
    def ratio(self) -> float:
        """Divergence over shear; 0 of a wind that is the same everywhere."""
        return self.divergence_per_s / self.shear_per_s if self.shear_per_s else 0.0


def regular(lat_deg: np.ndarray, lon_deg: np.ndarray, *fields: np.ndarray) -> None:
    """InputError unless axes ascend evenly, are long enough and fit the fields."""
    for name, axis in (("latitudes", lat_deg), ("longitudes", lon_deg)):
        gaps = np.diff(axis)
        if len(axis) < LEAST or gaps.min() <= 0 or np.ptp(gaps) > 1e-3 * gaps.mean():
            raise InputError(
                f"the {name} of a field are not a regular, ascending axis",
                where="field of wind",
                expected=f"{LEAST} places or more, evenly apart",
                found=f"{len(axis)}, from {axis[0]:g} to {axis[-1]:g}",
            )
    shape = (len(lat_deg), len(lon_deg))
    for field in fields:
        if field.shape != shape or not np.isfinite(field).all():
            raise InputError(
                "a field of wind does not lie on its axes",
                where="field of wind",
                expected=f"{shape} finite numbers",
                found=f"{field.shape}",
            )


def slopes(
    lat_deg: np.ndarray, lon_deg: np.ndarray, field: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes towards east and north, (P - 2, Q - 2), 1/m times the field's unit."""
    lat, lon = np.radians(lat_deg), np.radians(lon_deg)
    across = EARTH_M * np.cos(lat[1:-1, None]) * (lon[2:] - lon[:-2])
    along = EARTH_M * (lat[2:] - lat[:-2])[:, None]
    east = (field[1:-1, 2:] - field[1:-1, :-2]) / across
    north = (field[2:, 1:-1] - field[:-2, 1:-1]) / along
    return east, north


def spectrum(lat_deg: np.ndarray, lon_deg: np.ndarray, *fields: np.ndarray) -> np.ndarray:
    """Wavenumbers of the middle row and energy densities (2, K), rad/m and m3/s2, without the
    mean."""
    count = len(lon_deg)
    step = EARTH_M * np.cos(np.radians(lat_deg.mean())) * np.radians(lon_deg[1] - lon_deg[0])
    place = np.arange(count) - (count - 1) / 2
    window = np.hanning(count + 2)[1:-1]
    number = 2 * np.pi * np.fft.rfftfreq(count, step)
    energy = np.zeros(len(number))
    for field in fields:
        off = field - field.mean(1, keepdims=True)
        off = off - (off @ place / (place @ place))[:, None] * place
        power = np.square(np.abs(np.fft.rfft(off * window, axis=1))).mean(0)
        energy += power * step / (2 * np.pi * np.square(window).sum())
    return np.stack((number[1:], energy[1:]))


def flow(lat_deg: np.ndarray, lon_deg: np.ndarray, u: np.ndarray, v: np.ndarray) -> Flow:
    """How a field (P, Q) flows. InputError for one that is not on a regular grid."""
    regular(lat_deg, lon_deg, u, v)
    u_east, u_north = slopes(lat_deg, lon_deg, u)
    v_east, v_north = slopes(lat_deg, lon_deg, v)
    flat = np.cos(np.radians(lat_deg))[:, None]
    divergence = u_east + slopes(lat_deg, lon_deg, v * flat)[1] / flat[1:-1]
    shear = sum(np.square(one) for one in (u_east, u_north, v_east, v_north))
    number, energy = spectrum(lat_deg, lon_deg, u, v)
    some = slice(1, max(4, len(number) // 2))
    known = energy[some] > 0
    slope = 0.0
    if known.all():
        slope = float(np.polyfit(np.log(number[some]), np.log(energy[some]), 1)[0])
    return Flow(float(np.sqrt(np.square(divergence).mean())), float(np.sqrt(np.mean(shear))), slope)


def flows(levels: pl.DataFrame, winds: tuple[str, str]) -> list[Flow]:
    """How each level flows, in the order of slices; none where the wind is not known."""
    if levels[winds[0]].null_count():
        return []
    found = []
    for _, level in levels.group_by("slice", maintain_order=True):
        lat, lon = (np.unique(level[n].to_numpy()).astype(np.float64) for n in AXES)
        fields = (level[name].to_numpy().astype(np.float64) for name in winds)
        found.append(flow(lat, lon, *(one.reshape(len(lat), len(lon)) for one in fields)))
    return found


def told(levels: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """The metrics of a model's levels, means over them, and of the truth's where it is known."""
    found = {}
    for winds, after in ((WINDS, ""), (TRUTH, TRUE)):
        of_levels = flows(levels, winds)
        for name, (key, unit) in TOLD.items() if of_levels else ():
            value = float(np.mean([getattr(one, key) for one in of_levels]))
            found[name + after] = {"value": value, "unit": unit, "n": len(of_levels)}
    return found
