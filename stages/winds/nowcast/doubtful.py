"""Units that a table of winds does not seem to have: what its distribution says against the names
of its columns.

A column named in feet may hold metres, one in m/s knots: numbers that pass every bound, and answers
that are wrong by a factor. Each test is of a distribution that traffic has: cruise levels of 28,000
to 42,000 ft, where flights spend most of their time; jet streams of 110 m/s at most; Unix seconds
from 1990 to 2100. Where a model answers, the winds it was trained on are known, too: knots of
ordinary winds stay below every jet stream, but above these. It is a doubt and no proof: it is told,
with the remedy, and nothing is changed.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from stages.units import FOOT_M, KNOT_M_S
from stages.winds.decoding.declared import FRACTIONS, YEARS_S

LEAST = 50  # rows, below which a distribution says nothing
CRUISE_M = (8_500.0, 12_900.0)  # 28,000 to 42,000 ft
HIGHEST_M = 15_500.0  # above every airliner, below most cruises in feet
LEVELS_MOST = 600.0  # above every flight level
JET_M_S = 110.0  # the fastest jet streams
UNUSUAL = 1.6  # times the speed (RMS) of a model's training winds; knots in m/s are 1.94 times
YEAR_1990_S, YEAR_2100_S = YEARS_S


def doubts(winds: pl.DataFrame, usual_m_s: float = np.inf) -> list[str]:
    """A sentence for each of ts_s, alt_ft and the pair u_m_s, v_m_s whose values look like another
    unit's; none for columns that are not there, or hold few numbers. `usual_m_s`: the speed of the
    winds that a model was trained on (`usual`), where one answers."""
    tests: dict[tuple[str, ...], Callable[[Any], str]] = {
        ("ts_s",): time,
        ("alt_ft",): altitude,
        ("u_m_s", "v_m_s"): partial(speed, usual_m_s=usual_m_s),
    }
    found = []
    for names, told in tests.items():
        if set(names) <= set(winds.columns):
            rows = winds.select(pl.col(names).cast(pl.Float64, strict=False)).to_numpy()
            rows = rows[np.isfinite(rows).all(1)]
            found.append(told(rows) if len(rows) >= LEAST else "")
    return [one for one in found if one]


def time(rows: Any) -> str:
    """Whether times (N, 1) are fractions of a second, or count from another moment than 1970."""
    middle = float(np.median(rows))
    if middle < YEAR_1990_S:
        return (
            f"ts_s holds no Unix seconds? Half of them are below {middle:,.0f}, before 1990. Count "
            "the seconds from 1970-01-01T00:00:00Z"
        )
    for factor, unit in FRACTIONS.items():
        if YEAR_2100_S < middle <= YEAR_2100_S * factor:
            return f"ts_s holds Unix {unit}, not seconds? Divide by {factor:,.0f}"
    return ""


def altitude(rows: Any) -> str:
    """Whether altitudes (N, 1) are metres, or flight levels."""
    highest = float(np.quantile(rows, 0.999))
    if 0 < highest < LEVELS_MOST:
        return f"alt_ft holds flight levels, not feet? Nothing is above {highest:,.0f}"
    cruise = float(((rows >= CRUISE_M[0]) & (rows <= CRUISE_M[1])).mean())
    if highest > HIGHEST_M or cruise <= 0.5:
        return ""
    return (
        f"alt_ft holds metres, not feet? {100 * cruise:.0f} % lie between {CRUISE_M[0]:,.0f} and "
        f"{CRUISE_M[1]:,.0f}, nothing above {highest:,.0f}. Name the column alt_m, or divide by "
        f"{FOOT_M}"
    )


def speed(rows: Any, usual_m_s: float = np.inf) -> str:
    """Whether winds (N, 2) are knots: beyond any jet stream, or far above the usual speed and,
    taken for knots, nearer to it."""
    speeds = np.hypot(*rows.T)
    fast = float(np.quantile(speeds, 0.99))
    here = float(np.sqrt(np.mean(speeds[speeds <= fast] ** 2)))  # a few wild rows do not count
    if fast > JET_M_S:
        why = f"One wind of a hundred is above {fast:.0f} m/s, beyond any jet stream"
    elif here > UNUSUAL * usual_m_s and abs(here * KNOT_M_S - usual_m_s) < here - usual_m_s:
        why = (
            f"They blow at {here:.0f} m/s (RMS), {here / usual_m_s:.1f} times the "
            f"{usual_m_s:.0f} m/s that the model was trained on"
        )
    else:
        return ""
    return (
        f"u_m_s and v_m_s hold knots, not m/s? {why}. Name the columns u_kn and v_kn, or multiply "
        f"by {KNOT_M_S:.6f}"
    )


def usual(scaler: Mapping[str, Any]) -> float:
    """The speed, m/s (RMS), of the winds that a model was trained on, by their mean and standard
    deviation."""
    return float(np.hypot(np.linalg.norm(scaler["y_mean"]), np.linalg.norm(scaler["y_std"])))
