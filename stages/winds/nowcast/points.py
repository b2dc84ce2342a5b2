"""The places and times that a nowcast is asked for, as people write them."""

import csv
import datetime as dt
import math
from dataclasses import dataclass
from pathlib import Path

from stages.errors import InputError
from stages.winds.forecasts import PLACE


@dataclass(frozen=True)
class Point:
    """Where and when a wind is asked for: degrees, degrees, feet, Unix seconds."""

    lat_deg: float
    lon_deg: float
    alt_ft: float
    ts_s: float


def parse_time(text: str) -> float:
    """Unix seconds of an ISO 8601 time (UTC unless it names an offset) or of a number.
    InputError otherwise."""
    try:
        value = float(text)
    except ValueError:
        try:
            moment = dt.datetime.fromisoformat(text.strip())
        except ValueError:
            raise InputError(
                "that is not a time",
                found=text,
                expected="ISO 8601 such as 2026-01-15T14:30:00Z, or Unix seconds",
            ) from None
        value = (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()
    if not 0 <= value < 4.1e9:
        raise InputError("that time cannot be", found=text, expected="a time from 1970 to 2099")
    return value


def parse(text: str) -> Point:
    """'LAT,LON,ALT_FT,TIME' as a Point; InputError says what is wrong with it."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 4:
        raise InputError(
            "that is not a point",
            found=text,
            expected="LAT,LON,ALT_FT,TIME, for example 46.5,7.2,34000,2026-01-15T14:30:00Z",
        )
    try:
        lat, lon, alt = (float(part) for part in parts[:3])
    except ValueError:
        raise InputError(
            "a coordinate is not a number", found=text, expected="degrees north, degrees east, feet"
        ) from None
    if not (-90 <= lat <= 90 and -180 <= lon <= 180 and math.isfinite(alt)):
        raise InputError(
            "no such place",
            found=text,
            expected="latitude -90 to 90, longitude -180 to 180, altitude in feet",
        )
    return Point(lat, lon, alt, parse_time(parts[3]))


def read_points(path: str | Path) -> list[Point]:
    """The rows of a CSV with the columns lat_deg, lon_deg, alt_ft, time; InputError names the
    line."""
    found, wanted = [], (*PLACE, "time")
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = [name for name in wanted if name not in (reader.fieldnames or [])]
            if missing:
                raise InputError(
                    "the points lack columns",
                    where=str(path),
                    expected=", ".join(wanted),
                    found=f"no {', '.join(missing)}",
                )
            for row in reader:
                try:
                    found.append(parse(",".join(row[name] or "" for name in wanted)))
                except InputError as error:
                    raise InputError(
                        error.what,
                        where=f"{path}, line {reader.line_num}",
                        found=error.found,
                        expected=error.expected,
                    ) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError("the points cannot be read", where=str(path), found=str(error)) from None
    return found
