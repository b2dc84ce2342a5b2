"""Register 6,0, heading and speed report (Doc 9871 table A-2-96).

Status 1, magnetic heading 2-12 (90/512 deg); status 13, indicated airspeed 14-23 (1 kn); status 24,
Mach 25-34 (2.048/512); status 35, barometric vertical rate 36-45 and status 46, inertial vertical
rate 47-56 (32 ft/min). Two's complement where signed. Words [N] uint64.
"""

import numpy as np

from stages.winds.modes.bits import flag, signed, status_rule, unsigned, where

_FIELDS = ((1, 12), (13, 23), (24, 34), (35, 45), (46, 56))
AIRSPEED_MAX_KT = 500.0
MACH_MAX = 1.0
RATE_MAX_FPM = 6000.0
RATE_DIFFERENCE_MAX_FPM = 2000.0  # two measurements of one climb; at most 768 in 3,343 real replies
MACH_STEP = 2.048 / 512.0
_HEADING_DEG, _RATE_FPM = 90.0 / 512.0, 32.0


def possible(mb: np.ndarray) -> np.ndarray:
    """Mask [N] of the words that can be register 6,0: status rule; airspeed, Mach, vertical
    rates within limits."""
    good = (mb != 0) & status_rule(mb, _FIELDS)
    row = np.flatnonzero(good)
    word = mb[row]
    baro, inertial = signed(word, 36, 45) * _RATE_FPM, signed(word, 47, 56) * _RATE_FPM
    within = (unsigned(word, 14, 23) <= AIRSPEED_MAX_KT) & (
        unsigned(word, 25, 34) * MACH_STEP <= MACH_MAX
    )
    within &= (np.abs(baro) <= RATE_MAX_FPM) & (np.abs(inertial) <= RATE_MAX_FPM)
    within &= ~(flag(word, 35) & flag(word, 46)) | (
        np.abs(baro - inertial) <= RATE_DIFFERENCE_MAX_FPM
    )
    good[row] = within
    return good


def decode(mb: np.ndarray) -> dict[str, np.ndarray]:
    """Columns hdg_mag_deg, ias_kt, mach, vr_baro, vr_ins (ft/min); NaN where the status bit is
    0."""
    return {
        "hdg_mag_deg": where(signed(mb, 2, 12) * _HEADING_DEG % 360.0, flag(mb, 1)),
        "ias_kt": where(unsigned(mb, 14, 23), flag(mb, 13)),
        "mach": where(unsigned(mb, 25, 34) * MACH_STEP, flag(mb, 24)),
        "vr_baro": where(signed(mb, 36, 45) * _RATE_FPM, flag(mb, 35)),
        "vr_ins": where(signed(mb, 47, 56) * _RATE_FPM, flag(mb, 46)),
    }
