"""Register 4,4, meteorological routine air report (Doc 9871 table A-2-68): wind and temperature as
the aircraft's own systems measured them.

Source of the navigation 1-4 (0 is invalid); status 5, wind speed 6-14 (1 kn) and the direction that
it blows from 15-23 (180/256 deg); static air temperature 24-34 (0.25 degrees C); status 35, static
pressure 36-46 (1 hPa); status 47, turbulence 48-49; status 50, humidity 51-56 (100/64 %).
Temperature is two's complement and has no status. Words [N] uint64; `identify.is_44` says which
words can be this register.
"""

import numpy as np

from stages.winds.modes.bits import flag, signed, unsigned, where

ZERO_CELSIUS_K = 273.15


def decode(mb: np.ndarray) -> dict[str, np.ndarray]:
    """Columns source (0-4), wind_kt, from_deg (true), temperature_k, pressure_hpa, turbulence (0
    nil to 3 severe), humidity_percent; NaN where the status bit is 0."""
    blows = flag(mb, 5)
    return {
        "source": unsigned(mb, 1, 4).astype(np.float64),
        "wind_kt": where(unsigned(mb, 6, 14).astype(np.float64), blows),
        "from_deg": where(unsigned(mb, 15, 23) * (180.0 / 256.0), blows),
        "temperature_k": signed(mb, 24, 34) * 0.25 + ZERO_CELSIUS_K,
        "pressure_hpa": where(unsigned(mb, 36, 46).astype(np.float64), flag(mb, 35)),
        "turbulence": where(unsigned(mb, 48, 49).astype(np.float64), flag(mb, 47)),
        "humidity_percent": where(unsigned(mb, 51, 56) * (100.0 / 64.0), flag(mb, 50)),
    }
