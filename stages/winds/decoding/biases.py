"""Each aircraft's own bias of heading and airspeed, found from what others measured near it, and
the winds without it (our own: none of the documents has it).

A heading that is too large by d and an airspeed by a change the wind, ground vector minus air
vector, by J (d, a), J = -(tas (cos h, -sin h) | (sin h, cos h)) at heading h. Two aircraft near
each other are in nearly one wind, so the difference of their winds tells of their biases. All such
differences and a normal prior give all biases at once: linear regression, whose posterior
covariance gives every wind an error bar. A difference at the scaled distance s has the variance
2 noise^2 + (slope s)^2; noise and slope are found from the residuals. What two aircraft tell of
each other within ENCOUNTER_S counts once: it is one difference of wind.
Shapes: N winds, A aircraft, P pairs. Units: m/s, degrees, km, s. Time (2 A)^3, memory (2 A)^2.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy.spatial import cKDTree

from stages.errors import InputError
from stages.units import FOOT_M, KNOT_M_S
from stages.winds.decoding.declination import declination_deg
from stages.winds.decoding.winds import standard_tas_kt

COLUMNS = ("ts_s", "icao", "lat_deg", "lon_deg", "alt_ft", "gs_kt", "trk_deg", "tas_kt", "hdg_deg")
EARTH_KM = 6371.0088
SCALE = (60.0, 60.0, 0.6, 600.0)  # km east, km north, km up, s: where the wind is alike
FARTHEST = 1.5  # of scaled distances
NEAREST = 12  # winds about one, the aircraft's own among them
EVERY_S, ENCOUNTER_S = 30.0, 300.0
START = (1.5, 4.0)  # noise, m/s; slope, m/s at distance 1
ROUNDS = 4
MOST = 4000  # aircraft


@dataclass(frozen=True)
class Biases:
    """Of A aircraft: their names, heading (degrees) and airspeed (m/s) biases (A, 2), their
    covariances (A, 2, 2), and the noise of a wind (m/s a component)."""

    icao: list[str]
    mean: np.ndarray
    covariance: np.ndarray
    noise_m_s: float

    def corrected(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with u_m_s, v_m_s without the biases, and error_m_s, the standard deviation of a
        component; of an aircraft that is not known as it is measured, without an error bar."""
        wind, turn = winds_and_sensitivities(rows)
        place = {name: k for k, name in enumerate(self.icao)}
        of = np.array([place.get(name, -1) for name in rows["icao"]], dtype=int)
        known = of >= 0
        lean = np.where(known[:, None], np.einsum("nij,nj->ni", turn, self.mean[of]), 0.0)
        spread = np.einsum("nij,njk,nik->n", turn, self.covariance[of], turn) / 2
        error = np.where(known, np.sqrt(self.noise_m_s**2 + spread), np.nan)
        u, v = (wind - lean).T
        return rows.with_columns(u_m_s=u, v_m_s=v, error_m_s=error).with_columns(
            pl.col("error_m_s").fill_nan(None)
        )


def decoded(folder: Path) -> pl.DataFrame:
    """The winds of a decoded data set with what they were derived from (COLUMNS), in their order:
    airspeeds of the standard atmosphere, true headings by the geomagnetic model."""
    vectors = ["gs_kt", "trk_deg", "hdg_mag_deg", "ias_kt", "mach"]
    states = pl.read_parquet(folder / "states.parquet", columns=["file", "record", *vectors])
    rows = pl.read_parquet(folder / "winds.parquet").join(
        states, on=["file", "record"], how="left", maintain_order="left"
    )
    places = (rows[name].to_numpy() for name in ("ts_s", "lat_deg", "lon_deg"))
    heading = rows["hdg_mag_deg"].to_numpy() + declination_deg(*places)
    return rows.with_columns(tas_kt=standard_tas_kt(rows), hdg_deg=heading)


def winds_and_sensitivities(rows: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Winds (N, 2), m/s towards east and north, and what a degree of heading and a m/s of airspeed
    too much do to them (N, 2, 2)."""
    track, heading = (np.radians(rows[name].to_numpy()) for name in ("trk_deg", "hdg_deg"))
    ground, air = (KNOT_M_S * rows[name].to_numpy() for name in ("gs_kt", "tas_kt"))
    along = np.stack([np.sin(heading), np.cos(heading)], 1)
    across = np.stack([np.cos(heading), -np.sin(heading)], 1)
    wind = ground[:, None] * np.stack([np.sin(track), np.cos(track)], 1) - air[:, None] * along
    return wind, -np.stack([np.radians(1.0) * air[:, None] * across, along], 2)


def pairs(rows: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of rows of two aircraft near each other: (P,) and (P,) row numbers, scaled distances,
    and weights, by which each encounter counts once."""
    lat, lon = (rows[name].to_numpy() for name in ("lat_deg", "lon_deg"))
    middle = np.radians(np.median(lat))
    km = np.radians(1.0) * EARTH_KM
    seconds, up = rows["ts_s"].to_numpy(), rows["alt_ft"].to_numpy() * FOOT_M / 1e3
    points = np.stack([km * np.cos(middle) * lon, km * lat, up, seconds], 1) / SCALE
    aircraft = rows["icao"].rank("dense").to_numpy().astype(int) - 1
    found, near = cKDTree(points).query(
        points, k=min(NEAREST, len(points)), distance_upper_bound=FARTHEST
    )
    left = np.repeat(np.arange(len(points)), near.shape[1])
    right, distance = near.ravel(), found.ravel()
    kept = np.isfinite(distance)
    left, right, distance = left[kept], right[kept], distance[kept]
    kept = aircraft[left] != aircraft[right]
    left, right, distance = left[kept], right[kept], distance[kept]
    low, high = np.minimum(left, right), np.maximum(left, right)
    _, first = np.unique(np.stack([low, high], 1), axis=0, return_index=True)
    low, high, distance = low[first], high[first], distance[first]
    who = np.sort(np.stack([aircraft[low], aircraft[high]], 1), 1)
    bucket = (seconds[low] // ENCOUNTER_S).astype(np.int64)
    _, group, count = np.unique(
        np.column_stack([who, bucket]), axis=0, return_inverse=True, return_counts=True
    )
    return low, high, distance, 1.0 / count[group.ravel()]


def estimate(rows: pl.DataFrame, heading_deg: float, airspeed_m_s: float) -> Biases:
    """The biases of all aircraft of `rows` (COLUMNS, sorted by time; true heading), whose standard
    deviations are these in the mean over aircraft. InputError for more aircraft than MOST."""
    bucket = (pl.col("ts_s") // EVERY_S).alias("bucket")
    rows = rows.group_by("icao", bucket, maintain_order=True).first()
    names = sorted(rows["icao"].unique())
    if len(names) > MOST:
        raise InputError(
            "too many aircraft for one estimate of their biases",
            expected=f"at most {MOST:,}",
            found=f"{len(names):,}",
            remedy="take fewer hours at a time",
        )
    wind, turn = winds_and_sensitivities(rows)
    aircraft = rows["icao"].rank("dense").to_numpy().astype(int) - 1
    left, right, distance, weight = pairs(rows)
    difference = wind[left] - wind[right]
    a, b = aircraft[left], aircraft[right]
    prior = np.tile([heading_deg**-2, airspeed_m_s**-2], len(names))
    noise, slope = START
    for _ in range(ROUNDS):
        precision = weight / (2 * noise**2 + slope**2 * distance**2)
        mean, inverse = _solved(turn[left], turn[right], a, b, difference, precision, prior)
        rest = difference - np.einsum("pij,pj->pi", turn[left], mean[a])
        rest += np.einsum("pij,pj->pi", turn[right], mean[b])
        noise, slope = _spread(rest, distance, weight)
    blocks = inverse.reshape(len(names), 2, len(names), 2)
    own = np.arange(len(names))
    return Biases(names, mean, blocks[own, :, own], noise)


def _solved(
    mine: np.ndarray,
    other: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    difference: np.ndarray,
    precision: np.ndarray,
    prior: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The posterior's mean (A, 2) and covariance (2 A, 2 A)."""
    size = len(prior) // 2
    matrix = np.zeros((size, size, 2, 2))
    right = np.zeros((size, 2))
    for one, sign, at in ((mine, 1.0, a), (other, -1.0, b)):
        np.add.at(right, at, sign * np.einsum("pij,pi,p->pj", one, difference, precision))
        for two, turned, there in ((mine, 1.0, a), (other, -1.0, b)):
            part = sign * turned * np.einsum("pij,pik,p->pjk", one, two, precision)
            np.add.at(matrix, (at, there), part)
    whole = matrix.transpose(0, 2, 1, 3).reshape(2 * size, 2 * size)
    inverse = np.linalg.inv(whole + np.diag(prior))
    return (inverse @ right.ravel()).reshape(size, 2), inverse


def _spread(rest: np.ndarray, distance: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Noise of a wind and slope by distance from residuals (P, 2), by weighted least squares of
    their squares; each not below a tenth of where the search starts."""
    squares = (rest**2).mean(1)
    design = np.stack([2 * np.ones_like(distance), distance**2], 1)
    root = np.sqrt(weight)[:, None] / (2 + distance[:, None] ** 2)
    found, *_ = np.linalg.lstsq(root * design, root[:, 0] * squares, rcond=None)
    least = (0.1 * np.array(START)) ** 2
    noise, slope = np.sqrt(np.maximum(found, least))
    return float(noise), float(slope)
