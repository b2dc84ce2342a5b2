"""What a wind error costs in time where nobody's track is known."""

from stages.units import KNOT_M_S
from stages.winds.metrics import REFERENCE_KT

ANY_TRACK = "any track, RMS [s/100 NM]"


def any_track_seconds(rmse_m_s: float) -> float:
    """The root mean square time error in s over 100 NM flown at REFERENCE_KT along tracks in all
    directions alike, to first order, from an RMSE per component in m/s.

    Half of the mean square of an error vector lies along such a track, which is the mean square of
    a component, whatever the directions of the errors.
    """
    return 3600.0 * 100.0 * rmse_m_s / KNOT_M_S / REFERENCE_KT**2
