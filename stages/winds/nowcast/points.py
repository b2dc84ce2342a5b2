"""The places and times that a nowcast is asked for, as people write them."""

import datetime as dt
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.errors import InputError
from stages.units import FOOT_M
from stages.winds.decoding import declared
from stages.winds.forecasts import PLACE

ALTITUDE = re.compile(
    r"(?:(?P<level>FL)\s*(\d{1,3}(?:\.\d+)?)|([-+.\deE]+)\s*(?P<unit>ft|m)?)", re.IGNORECASE
)
DATE = re.compile(r"\d{8}", re.ASCII)  # and no second of 1970 to 1973
MOST = 100_000  # points of a grid
TIMES_S, YEARS = (0.0, 4.1e9), "1970 to 2099"  # that can be asked: Unix seconds, end excluded


@dataclass(frozen=True)
class Point:
    """Where and when a wind is asked for: degrees, degrees, feet, Unix seconds."""

    lat_deg: float
    lon_deg: float
    alt_ft: float
    ts_s: float


def parse_time(text: str) -> float:
    """Unix seconds of an ISO 8601 time (UTC unless it names an offset) or of a number, of seconds
    or milliseconds; eight digits are a date, 20260115 as 2026-01-15. InputError otherwise."""
    try:
        value = declared.second(float("" if DATE.fullmatch(text.strip()) else text))
    except ValueError:
        try:
            moment = dt.datetime.fromisoformat(text.strip())
        except ValueError:
            if (other := declared.moment(text)) is not None:  # as a context's may be written
                return _possible(other, text)
            raise InputError(
                "that is not a time",
                found=text,
                expected="ISO 8601 such as 2026-01-15T14:30:00Z, or Unix seconds",
            ) from None
        value = (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()
    return _possible(value, text)


def _possible(value: float, text: str) -> float:
    if not TIMES_S[0] <= value < TIMES_S[1]:
        raise InputError("that time cannot be", found=text, expected=f"a time from {YEARS}")
    return value


def parse_altitude(text: str) -> float:
    """Feet of '34000', '34000ft', 'FL340' or '10363m'; ValueError of anything else."""
    found = ALTITUDE.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    if found["level"]:
        return 100.0 * float(found[2])
    feet = float(found[3])
    return feet / FOOT_M if (found["unit"] or "").lower() == "m" else feet


def parse(text: str) -> Point:
    """'LAT,LON,ALT,TIME' as a Point; InputError says what is wrong with it."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 4:
        raise InputError(
            "that is not a point",
            found=text,
            expected="LAT,LON,ALT,TIME, for example 46.5,7.2,34000,2026-01-15T14:30:00Z",
        )
    try:
        lat, lon, alt = float(parts[0]), float(parts[1]), parse_altitude(parts[2])
    except ValueError:
        raise InputError(
            "a coordinate is not a number",
            found=text,
            expected="degrees north, degrees east, and feet, FL340 or 10363m",
        ) from None
    if not (-90 <= lat <= 90 and -180 <= lon <= 180 and math.isfinite(alt)):
        raise InputError(
            "no such place",
            found=text,
            expected="latitude -90 to 90, longitude -180 to 180, altitude in feet",
        )
    return Point(lat, lon, alt, parse_time(parts[3]))


def parse_level(text: str) -> tuple[float, float, float]:
    """'ALT,TIME,STEP' as feet, Unix seconds, degrees; InputError says what is wrong with it."""
    parts = text.split(",")
    try:
        alt, step = parse_altitude(parts[0]), float(parts[2]) if len(parts) == 3 else 0.0
    except (ValueError, IndexError):
        step = 0.0
    if not 0 < step < math.inf:
        raise InputError(
            "that is not a grid",
            found=text,
            expected="ALT,TIME,STEP, for example FL340,2026-01-15T14:30:00Z,0.25 (degrees)",
        )
    return alt, parse_time(parts[1]), step


def level(text: str, area: dict[str, Any]) -> list[Point]:
    """'ALT,TIME,STEP' as the points of a level over an area, STEP degrees apart, from south to
    north and in each row from west to east; InputError says what is wrong with it."""
    alt, ts_s, step = parse_level(text)
    # multiples of the step, so that grids of two areas meet; counted before one is made
    edges = [(low / step, high / step) for low, high in (area[name] for name in PLACE[:2])]
    counted = all(math.isfinite(edge) for pair in edges for edge in pair)
    ends = [(math.ceil(low), math.floor(high) + 1) for low, high in edges] if counted else []
    count = math.prod(end - first for first, end in ends)
    if not counted or not 0 < count <= MOST:
        raise InputError(
            "the grid has no point or too many",
            where=f"a step of {step:g} degrees over {area['lat_deg']} N, {area['lon_deg']} E",
            found=f"{count:,} points" if counted else "more points than can be counted",
            expected=f"1 to {MOST:,}",
            remedy="choose another step",
        )
    lat, lon = (np.arange(*pair) * step for pair in ends)
    return [Point(round(y, 9), round(x, 9), alt, ts_s) for y in lat for x in lon]
