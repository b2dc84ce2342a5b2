"""Register 4,0, selected vertical intention (Doc 9871 table A-2-64).

Status 1, selected altitude of the mode control panel 2-13; status 14, of the flight management
system 15-26 (16 ft); status 27, barometric setting less 800 hPa 28-39 (0.1 hPa); 40-47 zero; status
48, modes 49-51; 52-53 zero; status 54, source 55-56. Words [N] uint64.
"""

import numpy as np

from stages.winds.modes.bits import flag, mask, status_rule, unsigned, where

_FIELDS = ((1, 13), (14, 26), (27, 39), (48, 51), (54, 56))
_ZERO = np.uint64(mask(40, 47) | mask(52, 53))


def possible(mb: np.ndarray) -> np.ndarray:
    """Mask [N] of the words that can be register 4,0: reserved bits zero, no value without its
    status bit."""
    return ((mb & _ZERO) == 0) & (mb != 0) & status_rule(mb, _FIELDS)


def decode(mb: np.ndarray) -> dict[str, np.ndarray]:
    """Columns sel_mcp_ft, sel_fms_ft (ft) and qnh_hpa; NaN where the status bit is 0."""
    return {
        "sel_mcp_ft": where(unsigned(mb, 2, 13) * 16.0, flag(mb, 1)),
        "sel_fms_ft": where(unsigned(mb, 15, 26) * 16.0, flag(mb, 14)),
        "qnh_hpa": where(unsigned(mb, 28, 39) / 10.0 + 800.0, flag(mb, 27)),
    }
