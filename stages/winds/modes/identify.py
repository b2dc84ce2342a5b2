"""Which register a Comm-B reply holds. The reply does not say: the register is inferred from what
its bits allow.

First by protocol alone (`candidates`): own number in the first byte (1,0 2,0 3,0), status bits,
reserved zeros, physical limits, and for 6,0 the airspeed, Mach and altitude of one reply, which the
standard atmosphere ties together. What then still has several candidates is ambiguous and is used
only if the aircraft's own state decides (`consistent_50`, `consistent_60`). Doc 9871 tables A-2-16,
23, 32, 48, 64, 68, 69, 80, 96. Words [N] uint64, altitudes [N] in ft.
"""

import itertools
from typing import Protocol

import numpy as np

from stages.winds.decoding import atmosphere
from stages.winds.modes import bds20, bds40, bds50, bds60
from stages.winds.modes.bits import flag, mask, signed, status_rule, unsigned

REGISTERS = ("10", "17", "20", "30", "40", "44", "45", "50", "60")
BIT = {register: np.uint16(1 << index) for index, register in enumerate(REGISTERS)}
NAMES = [
    "|".join(itertools.compress(REGISTERS, (code >> i & 1 for i in range(len(REGISTERS)))))
    for code in range(1 << len(REGISTERS))
]
SELF_NAMED = BIT["10"] | BIT["20"] | BIT["30"]
DECODED = BIT["20"] | BIT["40"] | BIT["50"] | BIT["60"]
AIRSPEED_TOLERANCE_KT = 20.0
ALTITUDE_RANGE_FT = (-1000.0, 50_000.0)
WIND_MAX_KT = 250
CELSIUS_RANGE = (-80.0, 60.0)
PRESSURE_TOLERANCE_HPA = 5.0


class Limits(Protocol):
    """The limits of 5,0 against ADS-B; stages.params.Decode is one."""

    track_difference_max_deg: float
    groundspeed_difference_max_kt: float


def is_10(mb: np.ndarray) -> np.ndarray:
    """Data link capability: names itself, bits 10-14 zero."""
    return (unsigned(mb, 1, 8) == 0x10) & (unsigned(mb, 10, 14) == 0)


def is_17(mb: np.ndarray) -> np.ndarray:
    """Common usage capability: register 2,0 (bit 7) is always among those listed, bits 29-56
    zero."""
    return flag(mb, 7) & ((mb & np.uint64(mask(29, 56))) == 0)


def is_30(mb: np.ndarray) -> np.ndarray:
    """Resolution advisory: names itself, threat type is not 3, bits 16-22 are below 48 (ACAS III
    is not assigned)."""
    return (unsigned(mb, 1, 8) == 0x30) & (unsigned(mb, 29, 30) != 3) & (unsigned(mb, 16, 22) < 48)


def is_44(mb: np.ndarray, altitude_ft: np.ndarray) -> np.ndarray:
    """Meteorological routine report: source 1-4 at most 4; wind 5-23, temperature 24-34 (0.25
    degrees C), static pressure 35-46 (hPa), turbulence 47-49, humidity 50-56; the air as
    `_air_possible` says."""
    good = (
        (unsigned(mb, 1, 4) <= 4)
        & (mb != 0)
        & status_rule(mb, ((5, 23), (35, 46), (47, 49), (50, 56)))
    )
    row = np.flatnonzero(good & (unsigned(mb, 6, 14) <= WIND_MAX_KT))
    word = mb[row]
    possible = _air_possible(
        signed(word, 24, 34) * 0.25, unsigned(word, 36, 46), flag(word, 35), altitude_ft[row]
    )
    return _only(row, possible, len(mb))


def is_45(mb: np.ndarray, altitude_ft: np.ndarray) -> np.ndarray:
    """Meteorological hazard report: five two-bit hazards, temperature 16-26 (0.25 degrees C),
    static pressure 27-38 (hPa), radio height 39-51, 52-56 zero; the air as `_air_possible` says."""
    fields = ((1, 3), (4, 6), (7, 9), (10, 12), (13, 15), (16, 26), (27, 38), (39, 51))
    row = np.flatnonzero(
        ((mb & np.uint64(mask(52, 56))) == 0) & (mb != 0) & status_rule(mb, fields)
    )
    word = mb[row]
    celsius = np.where(flag(word, 16), signed(word, 17, 26) * 0.25, np.nan)
    return _only(
        row,
        _air_possible(celsius, unsigned(word, 28, 38), flag(word, 27), altitude_ft[row]),
        len(mb),
    )


def _air_possible(celsius, pressure_hpa, has_pressure, altitude_ft) -> np.ndarray:
    """Mask [N]: temperature within limits, and static pressure the one of the pressure altitude,
    which it defines.

    Where the altitude is unknown, the pressure is one met between ALTITUDE_RANGE_FT; NaN degrees
    mean not reported.
    """
    low, high = _altitude_bounds(altitude_ft)
    above = pressure_hpa >= atmosphere.pressure_pa(high) / 100 - PRESSURE_TOLERANCE_HPA
    below = pressure_hpa <= atmosphere.pressure_pa(low) / 100 + PRESSURE_TOLERANCE_HPA
    return ~((celsius < CELSIUS_RANGE[0]) | (celsius > CELSIUS_RANGE[1])) & (
        (above & below) | ~has_pressure
    )


def _altitude_bounds(altitude_ft) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest altitude [N] in ft an aircraft may be at: its own where it is known."""
    known = np.isfinite(altitude_ft)
    return np.where(known, altitude_ft, ALTITUDE_RANGE_FT[0]), np.where(
        known, altitude_ft, ALTITUDE_RANGE_FT[1]
    )


def _only(row: np.ndarray, keep: np.ndarray, count: int) -> np.ndarray:
    """Mask [count], true at row[keep]."""
    chosen = np.zeros(count, bool)
    chosen[row[keep]] = True
    return chosen


def candidates(mb: np.ndarray, altitude_ft: np.ndarray) -> np.ndarray:
    """Bit set [N] uint16 (see BIT, NAMES) of the registers that words [N] can be; 0 where none,
    also for an all-zero word.

    altitude_ft [N]: the altitude of the same reply (DF20), NaN where it has none (DF21). A register
    that names itself excludes the others: its number and its reserved bits together are at least 10
    fixed bits. Where both 5,0 and 6,0 are possible, a turn that 5,0's own bank cannot fly leaves
    6,0.
    """
    found = np.zeros(len(mb), np.uint16)
    for register, test in (
        ("10", is_10),
        ("17", is_17),
        ("20", bds20.possible),
        ("30", is_30),
        ("40", bds40.possible),
        ("50", bds50.possible),
        ("60", bds60.possible),
    ):
        found[test(mb)] |= BIT[register]
    found[is_44(mb, altitude_ft)] |= BIT["44"]
    found[is_45(mb, altitude_ft)] |= BIT["45"]
    named = found & SELF_NAMED
    found = np.where(named != 0, named, found)
    row = np.flatnonzero(found & BIT["60"])
    found[row[~_airspeed_possible(mb[row], altitude_ft[row])]] &= ~BIT["60"]
    row = np.flatnonzero((found & BIT["50"] != 0) & (found & BIT["60"] != 0))
    found[row[~bds50.turn_possible(mb[row])]] &= ~BIT["50"]
    return found


def _airspeed_possible(mb: np.ndarray, altitude_ft: np.ndarray) -> np.ndarray:
    """Mask [N] of 6,0 candidates whose airspeed and Mach belong to their altitude, or where that
    is unknown, to any altitude flown."""
    ias, mach = unsigned(mb, 14, 23).astype(float), unsigned(mb, 25, 34) * bds60.MACH_STEP
    low, high = _altitude_bounds(altitude_ft)
    within = ias <= atmosphere.cas_from_mach(mach, low) + AIRSPEED_TOLERANCE_KT
    within &= ias >= atmosphere.cas_from_mach(mach, high) - AIRSPEED_TOLERANCE_KT
    return within | ~(flag(mb, 13) & flag(mb, 24))


def consistent_60(
    ias_kt: np.ndarray,
    mach: np.ndarray,
    alt_ft: np.ndarray,
    tolerance: float = AIRSPEED_TOLERANCE_KT,
) -> np.ndarray:
    """Mask [N]: airspeed (kn) is what Mach gives at that pressure altitude (ft) in the standard
    atmosphere, within tolerance (kn).

    False where one of the three is NaN: unknown is no confirmation. A contradiction is ~consistent
    with all three finite.
    """
    with np.errstate(invalid="ignore"):
        return (
            np.abs(np.asarray(ias_kt, float) - atmosphere.cas_from_mach(mach, alt_ft)) <= tolerance
        )


def consistent_50(
    gs50: np.ndarray, trk50: np.ndarray, gs_adsb: np.ndarray, trk_adsb: np.ndarray, limits: Limits
) -> np.ndarray:
    """Mask [N]: ground speed (kn) and true track (deg) of 5,0 agree with ADS-B within limits.
    False where one of them is NaN."""
    with np.errstate(invalid="ignore"):
        turn = np.abs((np.asarray(trk50, float) - trk_adsb + 180.0) % 360.0 - 180.0)
        same_speed = (
            np.abs(np.asarray(gs50, float) - gs_adsb) <= limits.groundspeed_difference_max_kt
        )
        return same_speed & (turn <= limits.track_difference_max_deg)
