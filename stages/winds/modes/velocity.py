"""Airborne velocity, ADS-B type code 19 = register 0,9 (DO-260B 2.2.3.2.6, Doc 9871 table A-2-9).

Subtypes 1 and 2 hold the ground vector, 3 and 4 heading and airspeed; 2 and 4 count in 4 kn. A
value of 0 means "not known". Words [N] uint64 (the ME field). Speeds in kn, directions in degrees
clockwise from north, vertical rate in ft/min.
"""

import numpy as np

from stages.winds.modes.bits import flag, unsigned, where


def decode(me: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of type code 19: gs_kt, trk_deg, vertical_rate_fpm, hdg19_deg, ias19_kt, tas19_kt;
    NaN where absent."""
    subtype = unsigned(me, 6, 8)
    scale = np.where((subtype == 2) | (subtype == 4), 4, 1)
    ground, air = (subtype == 1) | (subtype == 2), (subtype == 3) | (subtype == 4)
    west_east, south_north = unsigned(me, 15, 24), unsigned(me, 26, 35)
    east = np.where(flag(me, 14), 1 - west_east, west_east - 1) * scale
    north = np.where(flag(me, 25), 1 - south_north, south_north - 1) * scale
    known = ground & (west_east > 0) & (south_north > 0)
    moving = known & ((east != 0) | (north != 0))  # standing still has no direction
    rate = unsigned(me, 38, 46)
    climb = np.where(flag(me, 37), 1 - rate, rate - 1) * 64
    speed = (south_north - 1) * scale
    has_speed, true = air & (south_north > 0), flag(me, 25)
    return {
        "gs_kt": where(np.hypot(east, north), known),
        "trk_deg": where(np.degrees(np.arctan2(east, north)) % 360.0, moving),
        "vertical_rate_fpm": where(climb, (rate > 0) & (ground | air)),
        "hdg19_deg": where(west_east * (360.0 / 1024.0), air & flag(me, 14)),
        "ias19_kt": where(speed, has_speed & ~true),
        "tas19_kt": where(speed, has_speed & true),
    }
