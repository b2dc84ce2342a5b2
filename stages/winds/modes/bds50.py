"""Register 5,0, track and turn report (Doc 9871 table A-2-80).

Status 1, roll 2-11 (45/256 deg); status 12, true track 13-23 (90/512 deg); status 24, ground speed
25-34 (2 kn); status 35, track rate 36-45 (8/256 deg/s); status 46, true airspeed 47-56 (2 kn).
Signed fields are two's complement. Words [N] uint64.
"""

import numpy as np

from stages.winds.modes.bits import flag, signed, status_rule, unsigned, where

_FIELDS = ((1, 11), (12, 23), (24, 34), (35, 45), (46, 56))
ROLL_MAX_DEG = 50.0  # no transport aircraft banks further in service
GROUND_MAX_KT, AIR_MAX_KT = (
    700.0,
    600.0,
)  # a strong jet stream has given airliners more than 600 kn over ground
WIND_MAX_KT = 250.0  # |ground speed - true airspeed|
TURN_TOLERANCE_DEG_S = (
    2.0  # rolling in or out, and the wind's part; 0.2 holds for 99 % of 2,353 real replies
)
_GRAVITY_KT_S = 9.80665 * 3600.0 / 1852.0
_ROLL_DEG, _TRACK_DEG, _RATE_DEG_S, _SPEED_KT = 45.0 / 256.0, 90.0 / 512.0, 8.0 / 256.0, 2.0


def possible(mb: np.ndarray) -> np.ndarray:
    """Mask [N] of the words that can be register 5,0: status rule, and roll, speeds and their
    difference within limits."""
    good = (mb != 0) & status_rule(mb, _FIELDS)
    row = np.flatnonzero(good)
    word = mb[row]
    ground, air = unsigned(word, 25, 34) * _SPEED_KT, unsigned(word, 47, 56) * _SPEED_KT
    within = np.abs(signed(word, 2, 11)) * _ROLL_DEG <= ROLL_MAX_DEG
    within &= (ground <= GROUND_MAX_KT) & (air <= AIR_MAX_KT)
    within &= ~(flag(word, 24) & flag(word, 46)) | (np.abs(ground - air) <= WIND_MAX_KT)
    good[row] = within
    return good


def turn_possible(mb: np.ndarray) -> np.ndarray:
    """Mask [N]: track rate is that of a level turn at this bank and ground speed, rate = g
    tan(roll) / V, or one of the three is absent.

    A rate at the end of its range is a default of some transponders, not a measurement, and counts
    as absent.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.degrees(
            _GRAVITY_KT_S
            * np.tan(np.radians(signed(mb, 2, 11) * _ROLL_DEG))
            / (unsigned(mb, 25, 34) * _SPEED_KT)
        )
    rate = signed(mb, 36, 45)
    known = (
        flag(mb, 1)
        & flag(mb, 24)
        & flag(mb, 35)
        & (rate > -512)
        & (rate < 511)
        & (unsigned(mb, 25, 34) > 0)
    )
    return ~known | (np.abs(rate * _RATE_DEG_S - turn) <= TURN_TOLERANCE_DEG_S)


def decode(mb: np.ndarray) -> dict[str, np.ndarray]:
    """Columns roll_deg (right wing down positive), trk50_deg (true), gs50_kt, track_rate
    (deg/s), tas_kt; NaN without status."""
    return {
        "roll_deg": where(signed(mb, 2, 11) * _ROLL_DEG, flag(mb, 1)),
        "trk50_deg": where(signed(mb, 13, 23) * _TRACK_DEG % 360.0, flag(mb, 12)),
        "gs50_kt": where(unsigned(mb, 25, 34) * _SPEED_KT, flag(mb, 24)),
        "track_rate": where(signed(mb, 36, 45) * _RATE_DEG_S, flag(mb, 35)),
        "tas_kt": where(unsigned(mb, 47, 56) * _SPEED_KT, flag(mb, 46)),
    }
