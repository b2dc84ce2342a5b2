"""The ICAO standard atmosphere (Doc 7488) to 20 km and the three airspeeds in it.

Pressure altitude gives pressure exactly; temperature is the standard one, so a true airspeed
computed here is off by the square root of the real temperature's ratio to it (2 % for 9 K).
Calibrated airspeed is the speed that has the same impact pressure at sea level; subsonic,
compressible (the isentropic relation of a gas with ratio of heats 1.4). Arrays of any shape, numpy
broadcasting; speeds in kn, altitudes in ft, NaN outside [-5 km, 20 km] and for negative speeds.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stages.units import FOOT_M, KNOT_M_S

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SEA_LEVEL_TEMPERATURE_K = 288.15
SEA_LEVEL_PRESSURE_PA = 101_325.0
LAPSE_K_M = 0.0065
GRAVITY_M_S2 = 9.80665
GAS_CONSTANT = 287.05287  # J/(kg K), dry air
HEAT_RATIO = 1.4
TROPOPAUSE_M = 11_000.0
TROPOPAUSE_K = SEA_LEVEL_TEMPERATURE_K - LAPSE_K_M * TROPOPAUSE_M
FLOOR_M, CEILING_M = -5_000.0, 20_000.0
SEA_LEVEL_SOUND_M_S = float(np.sqrt(HEAT_RATIO * GAS_CONSTANT * SEA_LEVEL_TEMPERATURE_K))


@dataclass(frozen=True)
class Air:
    """How pressure falls with height: as a power of temperature below the tropopause,
    exponentially above it."""

    pressure_exponent: float
    scale_height_m: float


ICAO = Air(GRAVITY_M_S2 / (LAPSE_K_M * GAS_CONSTANT), GAS_CONSTANT * TROPOPAUSE_K / GRAVITY_M_S2)
# The constants behind the published wind.csv of the meteo-particle model (its exponent belongs to
# R = 287.00, its scale height to R = 287.05): winds differ from ICAO's by up to 0.034 m/s. Used
# only to re-derive that file.
METEO_PARTICLE = Air(5.256848030018761, 6341.552161)


def _metres(alt_ft: "ArrayLike") -> np.ndarray:
    height = np.asarray(alt_ft, dtype=np.float64) * FOOT_M
    return np.where((height >= FLOOR_M) & (height <= CEILING_M), height, np.nan)


def temperature_k(alt_ft: "ArrayLike") -> np.ndarray:
    """Standard temperature in K at a pressure altitude in ft: 6.5 K/km down to 216.65 K at 11
    km, then constant."""
    return SEA_LEVEL_TEMPERATURE_K - LAPSE_K_M * np.minimum(_metres(alt_ft), TROPOPAUSE_M)


def pressure_pa(alt_ft: "ArrayLike", air: Air = ICAO) -> np.ndarray:
    """Static pressure in Pa at a pressure altitude in ft."""
    above_m = np.maximum(_metres(alt_ft) - TROPOPAUSE_M, 0.0)
    ratio = temperature_k(alt_ft) / SEA_LEVEL_TEMPERATURE_K
    return (
        SEA_LEVEL_PRESSURE_PA * ratio**air.pressure_exponent * np.exp(-above_m / air.scale_height_m)
    )


def sound_kt(alt_ft: "ArrayLike") -> np.ndarray:
    """Speed of sound in kn at a pressure altitude in ft."""
    return np.sqrt(HEAT_RATIO * GAS_CONSTANT * temperature_k(alt_ft)) / KNOT_M_S


def _mach(impact_ratio: np.ndarray) -> np.ndarray:
    """Mach number from impact pressure over static pressure."""
    return np.sqrt(5 * ((impact_ratio + 1) ** (1 / 3.5) - 1))


def _impact_ratio(mach: "ArrayLike") -> np.ndarray:
    mach = np.asarray(mach, dtype=np.float64)
    return (1 + 0.2 * np.where(mach >= 0, mach, np.nan) ** 2) ** 3.5 - 1


def mach_from_cas(cas_kt: "ArrayLike", alt_ft: "ArrayLike", air: Air = ICAO) -> np.ndarray:
    """Mach number of a calibrated airspeed (kn) at a pressure altitude (ft). Needs no
    temperature: it is a pressure ratio."""
    impact_pa = SEA_LEVEL_PRESSURE_PA * _impact_ratio(
        np.asarray(cas_kt, dtype=np.float64) * KNOT_M_S / SEA_LEVEL_SOUND_M_S
    )
    return _mach(impact_pa / pressure_pa(alt_ft, air))


def cas_from_mach(mach: "ArrayLike", alt_ft: "ArrayLike") -> np.ndarray:
    """Calibrated airspeed (kn) of a Mach number at a pressure altitude (ft); the inverse of
    `mach_from_cas`."""
    impact_pa = pressure_pa(alt_ft) * _impact_ratio(mach)
    return SEA_LEVEL_SOUND_M_S * _mach(impact_pa / SEA_LEVEL_PRESSURE_PA) / KNOT_M_S


def tas_from_mach(mach: "ArrayLike", alt_ft: "ArrayLike") -> np.ndarray:
    """True airspeed (kn) of a Mach number at a pressure altitude (ft), at the standard
    temperature."""
    mach = np.asarray(mach, dtype=np.float64)
    return np.where(mach >= 0, mach, np.nan) * sound_kt(alt_ft)


def tas_from_cas(cas_kt: "ArrayLike", alt_ft: "ArrayLike", air: Air = ICAO) -> np.ndarray:
    """True airspeed (kn) of a calibrated airspeed (kn) at a pressure altitude (ft), at the
    standard temperature."""
    return tas_from_mach(mach_from_cas(cas_kt, alt_ft, air), alt_ft)
