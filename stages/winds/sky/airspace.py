"""The simulated airspace: area, routes, wind, arrivals and magnetic declination, drawn once."""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import ppigrf
from scipy.ndimage import map_coordinates

from stages import params
from stages.errors import InputError
from stages.winds.sky import traffic, wind


@dataclass(frozen=True)
class Sky:
    """What all blocks share: the parameters, the start (Unix ms), airspace, wind, routes,
    arrivals a second, declination."""

    config: params.Simulate
    start_ms: int
    area: traffic.Area
    wind: wind.Wind
    routes: traffic.Routes
    rate_s: float
    declination: np.ndarray  # degrees east, on a 9 x 9 grid from the south-west corner


def sky(config: params.Simulate) -> Sky:
    """Check the parameters and draw the sky. InputError for a start or an area that cannot be
    simulated."""
    try:
        start = datetime.strptime(config.start, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise InputError(
            "the simulation's start is not a date", where="simulate.start", found=str(error)
        ) from None
    if not 2002 <= start.year <= 2029:
        raise InputError(
            "the simulation's start is outside the magnetic model and 13-digit milliseconds",
            where="simulate.start",
            expected="a year from 2002 to 2029",
            found=config.start,
        )
    bottom, top = config.altitude_m
    area = traffic.Area(
        *config.south_west, config.extent_km[0] * 1e3, config.extent_km[1] * 1e3, bottom, top
    )
    north, east = area.degrees(area.east_m, area.north_m)
    if north > 85 or east - area.west > 180:
        raise InputError(
            "the simulated area is too large or too near the pole",
            where="simulate.extent_km",
            expected="north edge below 85 degrees, less than 180 degrees wide",
            found=f"{north:.1f} and {east - area.west:.1f}",
        )
    if not bottom < top <= 15000:
        raise InputError(
            "altitude_m is not a range below 15 km",
            where="simulate.altitude_m",
            found=f"{bottom:g} to {top:g} m",
        )
    routes = traffic.network(config.seed, area)
    lat, lon = np.meshgrid(
        np.linspace(area.south, north, 9), np.linspace(area.west, east, 9), indexing="ij"
    )
    field_east, field_north, _ = ppigrf.igrf(
        lon.ravel(), lat.ravel(), (bottom + top) / 2000, start.replace(tzinfo=None)
    )
    declination = np.degrees(np.arctan2(field_east, field_north)).reshape(lat.shape)
    return Sky(
        config,
        int(start.timestamp()) * 1000,
        area,
        wind.make(config.seed, area.lat0, area.lon0, area.north_m, bottom, top),
        routes,
        config.aircraft / traffic.mean_duration(routes),
        declination,
    )


def declination_at(world: Sky, lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """Magnetic declination in degrees east, bilinear on the grid."""
    north, east = world.area.degrees(world.area.east_m, world.area.north_m)
    row = (lat - world.area.south) / (north - world.area.south) * 8
    column = (lon - world.area.west) / (east - world.area.west) * 8
    return map_coordinates(world.declination, [row, column], order=1, mode="nearest")
