"""The ICAO standard atmosphere and the airspeeds an air-data computer shows in it (ICAO Doc 7488,
1993).

Pressure altitude is altitude here: the simulated world has no other temperature or pressure than
the standard's.
Units: altitude m, pressure Pa, temperature K, true (TAS) and calibrated (CAS) airspeed m/s, Mach 1.
All functions take arrays of any one shape.
"""

from typing import Any

import numpy as np

G_M_S2 = 9.80665
P0_PA, T0_K, R_J_KG_K, LAPSE_K_M, TROPOPAUSE_M = 101325.0, 288.15, 287.05287, 0.0065, 11000.0
A0_M_S = np.sqrt(1.4 * R_J_KG_K * T0_K)


def temperature(alt_m: float | np.ndarray) -> Any:
    """Temperature in K, 0 to 20 km."""
    return T0_K - LAPSE_K_M * np.minimum(alt_m, TROPOPAUSE_M)


def pressure(alt_m: float | np.ndarray) -> Any:
    """Static pressure in Pa, 0 to 20 km: a power law below the tropopause, an exponential above
    it."""
    warm = temperature(alt_m)
    below = P0_PA * (warm / T0_K) ** (G_M_S2 / (R_J_KG_K * LAPSE_K_M))
    return below * np.exp(-G_M_S2 * np.maximum(alt_m - TROPOPAUSE_M, 0) / (R_J_KG_K * warm))


def sound_speed(alt_m: float | np.ndarray) -> Any:
    """Speed of sound in m/s."""
    return np.sqrt(1.4 * R_J_KG_K * temperature(alt_m))


def tas_of_cas(cas_m_s: float | np.ndarray, alt_m: float | np.ndarray) -> Any:
    """True airspeed from calibrated airspeed: the impact pressure it stands for, at this
    altitude's static pressure."""
    impact = P0_PA * ((1 + 0.2 * (cas_m_s / A0_M_S) ** 2) ** 3.5 - 1)
    return sound_speed(alt_m) * np.sqrt(5 * ((impact / pressure(alt_m) + 1) ** (2 / 7) - 1))


def cas_of_tas(tas_m_s: float | np.ndarray, alt_m: float | np.ndarray) -> Any:
    """Calibrated airspeed from true airspeed: the inverse of `tas_of_cas`."""
    impact = pressure(alt_m) * ((1 + 0.2 * (tas_m_s / sound_speed(alt_m)) ** 2) ** 3.5 - 1)
    return A0_M_S * np.sqrt(5 * ((impact / P0_PA + 1) ** (2 / 7) - 1))
