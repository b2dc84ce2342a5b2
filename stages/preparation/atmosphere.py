"""The ICAO standard atmosphere (Doc 7488) to 20 km and the three airspeeds in it.

Pressure altitude gives pressure exactly; temperature is the standard one, so a true airspeed computed here is off by the
square root of the real temperature's ratio to it (2 % for 9 K). Calibrated airspeed is the speed that has the same impact
pressure at sea level; subsonic, compressible (the isentropic relation of a gas with ratio of heats 1.4).
Arrays of any shape, numpy broadcasting; speeds in kn, altitudes in ft, NaN outside [-5 km, 20 km] and for negative speeds.
"""

import numpy as np

KNOT_M_S = 1852.0 / 3600.0
FOOT_M = 0.3048

SEA_LEVEL_TEMPERATURE_K = 288.15
SEA_LEVEL_PRESSURE_PA = 101_325.0
LAPSE_K_M = 0.0065
GRAVITY_M_S2 = 9.80665
GAS_CONSTANT = 287.05287  # J/(kg K), dry air
HEAT_RATIO = 1.4
TROPOPAUSE_M = 11_000.0
FLOOR_M, CEILING_M = -5_000.0, 20_000.0
SEA_LEVEL_SOUND_M_S = float(np.sqrt(HEAT_RATIO * GAS_CONSTANT * SEA_LEVEL_TEMPERATURE_K))


def _metres(alt_ft) -> np.ndarray:
    height = np.asarray(alt_ft, dtype=np.float64) * FOOT_M
    return np.where((height >= FLOOR_M) & (height <= CEILING_M), height, np.nan)


def temperature_k(alt_ft) -> np.ndarray:
    """Standard temperature in K at a pressure altitude in ft: 6.5 K/km down to 216.65 K at 11 km, then constant."""
    return SEA_LEVEL_TEMPERATURE_K - LAPSE_K_M * np.minimum(_metres(alt_ft), TROPOPAUSE_M)


def pressure_pa(alt_ft) -> np.ndarray:
    """Static pressure in Pa at a pressure altitude in ft."""
    height, temperature = _metres(alt_ft), temperature_k(alt_ft)
    below = SEA_LEVEL_PRESSURE_PA * (temperature / SEA_LEVEL_TEMPERATURE_K) ** (GRAVITY_M_S2 / (LAPSE_K_M * GAS_CONSTANT))
    above = np.maximum(height - TROPOPAUSE_M, 0.0)
    return below * np.exp(-GRAVITY_M_S2 * above / (GAS_CONSTANT * temperature))


def sound_kt(alt_ft) -> np.ndarray:
    """Speed of sound in kn at a pressure altitude in ft."""
    return np.sqrt(HEAT_RATIO * GAS_CONSTANT * temperature_k(alt_ft)) / KNOT_M_S


def mach_from_cas(cas_kt, alt_ft) -> np.ndarray:
    """Mach number of a calibrated airspeed (kn) at a pressure altitude (ft). Needs no temperature: it is a pressure ratio."""
    cas = np.asarray(cas_kt, dtype=np.float64) * KNOT_M_S
    cas = np.where(cas >= 0, cas, np.nan)
    impact = SEA_LEVEL_PRESSURE_PA * ((1 + 0.2 * (cas / SEA_LEVEL_SOUND_M_S) ** 2) ** 3.5 - 1)
    return np.sqrt(5 * ((impact / pressure_pa(alt_ft) + 1) ** (1 / 3.5) - 1))


def tas_from_mach(mach, alt_ft) -> np.ndarray:
    """True airspeed (kn) of a Mach number at a pressure altitude (ft), at the standard temperature."""
    mach = np.asarray(mach, dtype=np.float64)
    return np.where(mach >= 0, mach, np.nan) * sound_kt(alt_ft)


def tas_from_cas(cas_kt, alt_ft) -> np.ndarray:
    """True airspeed (kn) of a calibrated airspeed (kn) at a pressure altitude (ft), at the standard temperature."""
    return tas_from_mach(mach_from_cas(cas_kt, alt_ft), alt_ft)


def cas_from_mach(mach, alt_ft) -> np.ndarray:
    """Calibrated airspeed (kn) of a Mach number at a pressure altitude (ft); the inverse of `mach_from_cas`."""
    mach = np.asarray(mach, dtype=np.float64)
    mach = np.where(mach >= 0, mach, np.nan)
    impact = pressure_pa(alt_ft) * ((1 + 0.2 * mach**2) ** 3.5 - 1)
    return SEA_LEVEL_SOUND_M_S * np.sqrt(5 * ((impact / SEA_LEVEL_PRESSURE_PA + 1) ** (1 / 3.5) - 1)) / KNOT_M_S
