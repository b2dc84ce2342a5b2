"""A real sky for the joint nowcast: winds of a reanalysis on pressure levels, which simulated
traffic flies through.

Real are the winds at the nodes: where they blow, how they turn with place and height, how they
change between the hours of the file. Between nodes they are linear: in latitude and longitude, in
pressure altitude between levels (the ICAO standard atmosphere, Doc 7488: what an altimeter shows is
a function of pressure alone), in time between hours. Simulated are the aircraft, their errors, and
what makes a forecast of the sky: the cells' mean of the same operator as the simulated skies have
(operator.py), bias, noise and age. The cells are of another member of the ensemble than the wind
that is measured and asked: so they err as much as the members differ, too.

A task has a middle, and a moment that is now. Its area is east and north of the middle on the
sphere, along the parallel and the meridian; components are those at the place itself. All that a
task reads or asks lies in one strip of longitudes: what trains, what selects and what tests share
no node. Shapes: S tasks, N places, M cells, h hours, k levels, p latitudes, q longitudes, O
components (east, north).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np

from stages.errors import DataError
from stages.fields.gridded import levels
from stages.units import EARTH_KM
from stages.winds.decoding import atmosphere as air
from stages.winds.joint.operator import Array, Axis
from stages.winds.joint.tasks import Tasks
from stages.winds.joint.traffic import Traffic

COMPONENTS = ("u", "v")
DEGREE_KM = EARTH_KM * np.pi / 180
HEIGHTS = 10  # at which the training strips' mean and spread are taken
WIND, GRID = 0, 1  # the members, in the order of the settings
Strips = Sequence[tuple[float, float]]


def altitude_km(pressure_hpa: float) -> float:
    """Pressure altitude, to 20 km and beyond as if the stratosphere stayed isothermal."""
    sea, top = air.SEA_LEVEL_TEMPERATURE_K, air.TROPOPAUSE_M
    ratio = 100 * pressure_hpa / air.SEA_LEVEL_PRESSURE_PA
    height = sea / air.LAPSE_K_M * (1 - ratio ** (1 / air.ICAO.pressure_exponent))
    if height > top:
        at_top = (air.TROPOPAUSE_K / sea) ** air.ICAO.pressure_exponent
        height = top - air.ICAO.scale_height_m * np.log(ratio / at_top)
    return float(height / 1000)


def between(axis: Array, x: Array) -> tuple[Array, Array]:
    """Of each of x the node below and the share of the one above; beyond the ends, the end."""
    low = np.clip(np.searchsorted(axis, x, "right") - 1, 0, len(axis) - 2)
    share = (x - axis[low]) / (axis[low + 1] - axis[low])
    return low, np.clip(share, 0.0, 1.0)


@dataclass(frozen=True)
class Field:
    """Winds at nodes, values (2, h, p, q, k, O) of the two members; `hour` (h,) since 1970, `up`
    (k,) km, `lat` and `lon` degrees, all ascending."""

    hour: Array
    up: Array
    lat: Array
    lon: Array
    values: Array

    def columns(self, member: int, hour: Array, lat: Array, lon: Array) -> Array:
        """All levels above places (S, N) at hours (S, N) or (S, 1): (S, N, k, O)."""
        pairs = [between(axis, x) for axis, x in
                 ((self.hour, hour), (self.lat, lat), (self.lon, lon))]  # fmt: skip
        total = np.zeros((*lat.shape, *self.values.shape[4:]))
        for corner in product((0, 1), repeat=3):
            weight = np.ones(lat.shape)
            for far, (_, share) in zip(corner, pairs, strict=True):
                weight = weight * (share if far else 1 - share)
            at = tuple(low + far for far, (low, _) in zip(corner, pairs, strict=True))
            total += weight[..., None, None] * self.values[(member, *at)]
        return total

    def at(self, member: int, hour: Array, lat: Array, lon: Array, up: Array) -> Array:
        """The wind at places (S, N): (S, N, O)."""
        found: Array = np.einsum(
            "snk,snko->sno", self.shares(up), self.columns(member, hour, lat, lon)
        )
        return found

    def shares(self, up: Array) -> Array:
        """How much each level weighs at heights (...): (..., k), two of them not 0."""
        low, share = between(self.up, up)
        found = np.zeros((*up.shape, len(self.up)))
        np.put_along_axis(found, low[..., None], (1 - share)[..., None], -1)
        np.put_along_axis(found, low[..., None] + 1, share[..., None], -1)
        return found

    def only(self, strips: Strips) -> "Field":
        """The same, with no values outside of some strips: who reads there, reads NaN."""
        inside = np.zeros(len(self.lon), dtype=bool)
        for west, east in strips:
            inside |= (self.lon >= west) & (self.lon <= east)
        return replace(self, values=np.where(inside[:, None, None], self.values, np.nan))

    def moments(self, strips: Strips, latitudes: Array, altitude: Array) -> tuple[Array, float]:
        """Mean (O,) and standard deviation of the measured member's wind at the nodes of strips
        and latitudes, between two heights."""
        rows = (self.lat >= latitudes[0]) & (self.lat <= latitudes[1])
        mine = self.only(strips).values[WIND][:, rows]
        shares = self.shares(np.linspace(*altitude, HEIGHTS))
        winds = np.einsum("zk,hpqko->hpqzo", shares, mine)
        mean = np.nanmean(winds, (0, 1, 2, 3))
        return mean, float(np.sqrt(np.nanmean(np.square(winds - mean))))


def read(raw: Path, pressures: Sequence[int], members: tuple[int, int]) -> Field:
    """The one weather file of a raw folder. DataError where there is none or several, for an hour
    that stands alone, and for what levels.read refuses."""
    paths = sorted(path for path in raw.rglob("*") if path.suffix in (".grib", ".grb"))
    if len(paths) != 1:
        raise DataError(
            "not one weather file",
            where=str(raw),
            expected="one file ending in .grib or .grb",
            found=", ".join(path.name for path in paths) or "none",
        )
    found = levels.read(paths[0], COMPONENTS, pressures, members)
    hour = found.time.astype("datetime64[m]").astype(np.int64) / 60
    if len(hour) < 2:
        raise DataError(
            "a sky of one moment has no age",
            where=str(paths[0]),
            expected="fields of two hours or more",
            found=f"{len(hour)}",
        )
    heights = np.array([altitude_km(one) for one in pressures])
    order = np.argsort(heights)
    values = np.stack([found.values[name] for name in COMPONENTS], -1).astype(np.float64)
    # n m k p q O -> m n p q k O
    values = values.transpose(1, 0, 3, 4, 2, 5)[:, :, :, :, order]
    return Field(hour, heights[order], found.lat, found.lon, np.ascontiguousarray(values))


@dataclass(frozen=True)
class Sky:
    """What draws tasks of a reanalysis, from the strips of one split. `mean` (O,) and `sd` make
    values of winds (m/s); `noise` is an aircraft's, `bias` and `grid_noise` the grid's, over sd;
    `latitudes` of the middles."""

    field: Field
    strips: Strips
    latitudes: tuple[float, float]
    traffic: Traffic
    axes: tuple[Axis, ...]
    mean: Array
    sd: float
    noise: float
    bias: float
    grid_noise: float

    def drawn(self, tasks: int, targets: int, rng: np.random.Generator) -> Tasks:
        """Tasks of a stream."""
        return self.placed(tasks, targets, rng)[0]

    def placed(self, tasks: int, targets: int, rng: np.random.Generator) -> tuple[Tasks, Array]:
        """Tasks of a stream, and where they are (S, 3): the middle's latitude and longitude, and
        the hour that is now. DataError where a task would leave its strips."""
        x, real = self.traffic.flown(tasks, rng)
        asked, age = self.traffic.asked(tasks, targets, rng)
        where = self.middles(age, rng)
        wind = self.winds(np.concatenate((x, asked), 1), where)
        measured = wind + self.noise * rng.standard_normal(wind.shape)
        shared = self.bias * rng.standard_normal((tasks, 1, 2))
        cells = self.cells(age, where)
        cells = cells + shared + self.grid_noise * rng.standard_normal(cells.shape)
        count = x.shape[1]
        y = measured[:, :count] * real[..., None]
        found = Tasks(x, y, real, cells, age, asked, measured[:, count:], wind[:, count:])
        if not all(np.isfinite(array).all() for array in (y[real], cells, found.target_true)):
            raise DataError(
                "a task reads winds outside of its strips",
                where="the joint nowcast",
                expected=f"longitudes in {self.strips}",
                remedy="widen the strips, or lessen the extent or the smoothing",
            )
        return found, where

    def middles(self, age: Array, rng: np.random.Generator) -> Array:
        """A middle for each task (S, 3), whose area and grid lie in a strip, and hours of which
        the youngest and the oldest are in the file."""
        count = len(age)
        lat = rng.uniform(*self.latitudes, count)
        room = self.room(lat)
        # (S, strips): how far a middle may go along each
        free = np.maximum(room[..., 1] - room[..., 0], 0.0)
        gone = rng.uniform(size=count) * free.sum(1)
        ends = np.cumsum(free, 1)
        strip = (gone[:, None] >= ends[:, :-1]).sum(1)
        rows = np.arange(count)
        lon = room[rows, strip, 0] + gone - (ends - free)[rows, strip]
        first = self.field.hour[0] + np.maximum(age, self.traffic.memory / 60)
        last = self.field.hour[-1] - self.traffic.lead[1] / 60
        return np.stack((lat, lon, first + rng.uniform(size=count) * (last - first)), 1)

    def room(self, lat: Array) -> Array:
        """Between which longitudes a middle at latitudes (S,) may lie in each strip:
        (S, strips, 2); where the first is not below the second, nowhere."""
        return np.stack([np.stack((west + self.margin(lat), east - self.margin(lat)), -1)
                         for west, east in self.strips], 1)  # fmt: skip

    def margin(self, lat: Array) -> Array:
        """How many degrees of longitude a task at latitudes (S,) reads around its middle."""
        return margin(lat, self.axes)

    def sphere(self, x: Array, where: Array) -> tuple[Array, Array]:
        """Latitudes and longitudes (S, N) of places x (S, N, 2 or more)."""
        lat = where[:, :1] + x[..., 1] / DEGREE_KM
        return lat, where[:, 1:2] + x[..., 0] / (DEGREE_KM * np.cos(np.radians(lat)))

    def winds(self, x: Array, where: Array) -> Array:
        """Of the measured member the wind at x (S, N, 4), as values (S, N, 2)."""
        lat, lon = self.sphere(x, where)
        hour = where[:, 2:] + x[..., 3] / 60
        return (self.field.at(WIND, hour, lat, lon, x[..., 2]) - self.mean) / self.sd

    def cells(self, age: Array, where: Array) -> Array:
        """Of the other member the cells' means `age` hours ago, as values (S, M, 2)."""
        east, north, up = self.axes
        flat = np.stack(np.meshgrid(east.nodes, north.nodes, indexing="ij"), -1).reshape(1, -1, 2)
        lat, lon = self.sphere(flat, where)
        hour = np.broadcast_to((where[:, 2] - age)[:, None], lat.shape)
        columns = self.field.columns(GRID, hour, lat, lon)
        columns = columns.reshape(len(where), len(east.nodes), len(north.nodes), *columns.shape[2:])
        levels_of = np.einsum("cz,zk->ck", up.weights, self.field.shares(up.nodes))
        part = np.einsum("ax,sxyko->sayko", east.weights, columns)
        part = np.einsum("by,sayko->sabko", north.weights, part)
        cells = np.einsum("ck,sabko->sabco", levels_of, part).reshape(len(where), -1, 2)
        return (cells - self.mean) / self.sd


def squares(where: Array, side_km: float) -> Array:
    """Which square of a side each middle (S, 2 or more) lies in: numbers (S,) from 0 on."""
    row = np.floor(where[:, 0] * DEGREE_KM / side_km)
    parallel = np.radians((row + 0.5) * side_km / DEGREE_KM)
    column = np.floor(where[:, 1] * DEGREE_KM * np.cos(parallel) / side_km)
    _, which = np.unique(np.stack((row, column), 1), axis=0, return_inverse=True)
    return which.reshape(-1)


def margin(lat: Array, axes: Sequence[Axis]) -> Array:
    """Degrees of longitude that a task at latitudes (S,) reads to either side of its middle: half
    the nodes' width on the parallel of its area that is nearest to a pole."""
    east, north = (np.abs(axis.nodes).max() for axis in axes[:2])
    edge = np.abs(lat) + north / DEGREE_KM
    found: Array = east / (DEGREE_KM * np.cos(np.radians(edge)))
    return found


def apart(strips: dict[str, Strips]) -> list[str]:
    """Which strips of two splits are not apart by a degree or more, in words."""
    every = sorted((west, east, split) for split, own in strips.items() for west, east in own)
    return [
        f"{one[2]} {one[0]:g} to {one[1]:g} and {other[2]} {other[0]:g} to {other[1]:g}"
        for one, other in pairwise(every)
        if one[2] != other[2] and other[0] - one[1] < 1.0
    ]
