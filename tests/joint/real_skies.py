"""A small reanalysis for tests: winds that are linear in latitude, longitude, pressure altitude and
hour, of two members, written as GRIB or built as a field."""

import numpy as np
import skies

from stages.params import checked
from stages.winds.joint.reanalysis import Field, altitude_km
from stages.winds.joint.settings import Real

LEVELS, HOURS, MEMBERS = (1000, 500, 50), (6, 9, 18), (0, 1)
LAT, LON = np.arange(56.0, 33.0, -1.0), np.arange(-12.0, 31.0)  # from the north, as files come
DAY = np.datetime64("2016-02-07")
SLOPES = {"u": (12.0, 0.6, -0.25, 1.5, 0.4), "v": (-4.0, -0.3, 0.35, -0.8, -0.6)}
OF_A_LAW = ("mean_m_s", "parts")
MADE = {key: value for key, value in skies.MADE.items() if key not in OF_A_LAW} | {
    "process": "reanalysis",
    "levels_hpa": LEVELS,
    "members": MEMBERS,
    "latitudes_deg": (38.0, 51.0),
    "strips_deg": {"train": ((-12.0, 0.0),), "val": ((19.0, 30.0),), "test": ((2.0, 17.0),)},
    "group_km": 150.0,
    "extent_km": (300.0, 300.0),
    "altitude_km": (3.0, 12.0),
    "aircraft": 6,
    "weather": skies.MADE["weather"] | {"smooth_km": 30.0},
}
BUDGET = skies.BUDGET


def told(**others) -> Real:
    """How the tasks are drawn, with other settings."""
    return checked(Real, MADE | others, "made")


def wind(name, member, hour, lat, lon, up):
    """The wind of a formula, m/s; the second member blows 0.7 m/s more."""
    start, north, east, high, later = SLOPES[name]
    return (start + north * (lat - 45) + east * lon + high * up + later * (hour - 6)
            + 0.7 * member)  # fmt: skip


def rough(field: Field, seed: int = 0) -> Field:
    """The field with waves of 1,500 km or so on it, which no line fits."""
    rng = np.random.default_rng(seed)
    lat, lon = field.lat[:, None, None, None], field.lon[:, None, None]
    total = np.zeros_like(field.values)
    for _ in range(6):
        wave = rng.uniform(0.2, 0.5, 2)
        turn = rng.uniform(0, 2 * np.pi, (len(field.hour), 1, 1, len(field.up), 2))
        total += rng.uniform(2, 5) * np.sin(wave[0] * lat + wave[1] * lon + turn)
    return Field(field.hour, field.up, field.lat, field.lon, field.values + total)


def field() -> Field:
    """The formula's, as the reader gives it."""
    up = np.array([altitude_km(one) for one in LEVELS])
    begun = (DAY - np.datetime64("1970-01-01")).astype(int) * 24
    axes = np.meshgrid(HOURS, LAT[::-1], LON, up, indexing="ij")
    hour, lat, lon, high = axes
    values = np.stack([np.stack([wind(name, member, hour, lat, lon, high) for name in SLOPES], -1)
                       for member in MEMBERS])  # fmt: skip
    return Field(begun + np.array(HOURS, float), up, LAT[::-1], LON, values)


def message(name, member, hour, level, values=None, **keys):
    """One GRIB 1 message of the formula's wind, or of other values; NaN is a hole in its bitmap."""
    import eccodes

    if values is None:
        values = wind(name, member, hour, LAT[:, None], LON[None], altitude_km(level))
    handle = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib1")
    grid = {
        "Nj": len(LAT),
        "Ni": len(LON),
        "latitudeOfFirstGridPointInDegrees": LAT[0],
        "latitudeOfLastGridPointInDegrees": LAT[-1],
        "longitudeOfFirstGridPointInDegrees": LON[0],
        "longitudeOfLastGridPointInDegrees": LON[-1],
        "iDirectionIncrementInDegrees": 1.0,
        "jDirectionIncrementInDegrees": 1.0,
        "jScansPositively": 0,
        "shortName": name,
        "level": level,
        "number": member,
        "dataDate": 20160207,
        "dataTime": 100 * hour,
        "bitsPerValue": 24,
        "bitmapPresent": int(np.isnan(values).any()),
        "missingValue": 9999.0,
    }
    try:
        for key, value in {**grid, **keys}.items():
            eccodes.codes_set(handle, key, value)
        eccodes.codes_set_values(handle, np.where(np.isnan(values), 9999.0, values).ravel())
        return eccodes.codes_get_message(handle)
    finally:
        eccodes.codes_release(handle)


def messages():
    """Every message of the formula's file, by (name, member, hour, level)."""
    return {
        (name, member, hour, level): message(name, member, hour, level)
        for name in SLOPES
        for member in MEMBERS
        for hour in HOURS
        for level in LEVELS
    }
