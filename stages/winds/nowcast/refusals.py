"""What a nowcast does not answer: places, times and captures of which its model knows nothing."""

import datetime as dt
import math
from typing import Any

import polars as pl

from stages.errors import InputError
from stages.winds.forecasts import PLACE
from stages.winds.nowcast.points import Point

LONGER = "give a longer capture, or mend what most rows were dropped for"


def refuse_outside(asked: list[Point], area: dict[Any, Any]) -> None:
    """InputError naming every point outside the box of the training rows."""
    problems = [
        f"{name} {plain(getattr(point, name))} of point {i}"
        for i, point in enumerate(asked, 1)
        for name in PLACE
        if not area[name][0] <= getattr(point, name) <= area[name][1]
    ]
    if problems:
        more = [f"and {len(problems) - 5} more"] if len(problems) > 5 else []
        raise InputError(
            "the model knows nothing of that place",
            found="; ".join(problems[:5] + more),
            expected=", ".join(f"{name} {inward(name, *edges)}" for name, edges in area.items()),
            remedy="ask inside the area it was trained on, or choose another --model",
        )


def plain(value: float) -> str:
    """A number as a person writes it: no exponent, no needless zeros."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def inward(name: str, low: float, high: float) -> str:
    """'LOW to HIGH' rounded to the inside, so that what is told can be asked: whole feet,
    thousandths of a degree."""
    scale = 1 if name.endswith("_ft") else 1000
    return f"{plain(math.ceil(low * scale) / scale)} to {plain(math.floor(high * scale) / scale)}"


def refuse_unreached(
    asked: list[Point],
    known: pl.DataFrame,
    windows: tuple[dict[Any, Any], ...],
    prepared: dict[Any, Any],
    where: str,
    dropped: dict[str, int],
) -> None:
    """InputError when the capture holds no wind where the model's lead looks for one. `windows`:
    by slice, winds and edges (Unix s) of the slice that ends one lead before, and of what the model
    reads; `dropped`: how many of the capture's rows gave none for which reason."""
    if known.is_empty():
        told = counted(dropped)
        raise InputError(
            "the capture holds no usable wind",
            where=where,
            found=f"rows dropped: {told}" if told else "no rows",
            remedy=LONGER if told else "give a capture that holds winds",
        )
    empty = [
        (j, edges) for given in windows for j, (winds, edges) in given.items() if winds.is_empty()
    ]
    if not empty:
        return
    w, lead = prepared["slice_s"], prepared["lead_s"]
    first, last = (math.floor(value / w) * w for value in (known["ts_s"][0], known["ts_s"][-1]))
    late = next(p for p in asked if int(p.ts_s // w) == empty[0][0])
    begin, end = empty[0][1]
    raise InputError(
        f"the capture holds no wind {lead / 60:g} minutes before {iso(late.ts_s)}, which is the "
        "model's lead",
        where=where,
        found=f"winds from {iso(known['ts_s'][0])} to {iso(known['ts_s'][-1])}; none between "
        f"{iso(begin)} and {iso(end)}",
        expected=f"a time from {iso(first + w + lead)} to {iso(last + 2 * w + lead)} (end "
        "excluded), where the capture has no gap; that end lies "
        f"{(last + 2 * w + lead - known['ts_s'][-1]) / 60:.1f} minutes after its newest wind",
        remedy=_mended(late.ts_s, first + w + lead, last + 2 * w + lead),
    )


def _mended(ts_s: float, begin: float, end: float) -> str:
    """What to do about a time before, after or between those that the capture reaches."""
    if ts_s < begin:
        return "ask for a later time, or give a capture with older winds"
    if ts_s >= end:
        return "ask for an earlier time, or give a capture with newer winds"
    return "ask for a time before or after the gap, or give a capture without it"


def counted(dropped: dict[str, int]) -> str:
    """'COUNT REASON, ...' of what was dropped, empty where nothing was."""
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(dropped.items()) if count)


def refuse_far(windows: dict[Any, Any], area: dict[Any, Any], where: str) -> None:
    """InputError for a context of which no wind lies in the model's area: neither its answer nor
    its spread would mean anything."""
    inside = pl.all_horizontal(pl.col(name).is_between(*area[name]) for name in PLACE)
    for winds, (begin, end) in windows.values():
        if winds.select(inside.any()).item():
            continue
        spans = ", ".join(
            f"{name} {plain(winds[name].min())} to {plain(winds[name].max())}" for name in PLACE
        )
        raise InputError(
            "the capture's winds all lie outside the model's area",
            where=where,
            found=f"{len(winds):,} winds from {iso(begin)} to {iso(end)}: {spans}",
            expected=", ".join(f"{name} {inward(name, *edges)}" for name, edges in area.items()),
            remedy=exchanged(winds, area)
            or "give a capture of the area the model was trained on, or choose another --model",
        )


def exchanged(winds: pl.DataFrame, area: dict[Any, Any]) -> str:
    """What to do about winds whose latitudes are longitudes and the other way round, as far as an
    area tells; '' where it does not."""
    other = {"lat_deg": "lon_deg", "lon_deg": "lat_deg"}
    inside = pl.all_horizontal(
        pl.col(name).is_between(*area[other.get(name, name)]) for name in PLACE
    )
    share = float(winds.select(inside.mean()).item() or 0.0)
    if share <= 0.5:
        return ""
    return (
        f"exchange latitude and longitude: with them the other way round {100 * share:.0f} % of "
        "the winds lie in the model's area"
    )


def iso(ts_s: float) -> str:
    """ISO 8601 in UTC, whole seconds, rounded down."""
    return dt.datetime.fromtimestamp(math.floor(ts_s), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(ts_s: float) -> str:
    """ISO 8601 in UTC, to the microsecond where the second is no whole one."""
    told = dt.datetime.fromtimestamp(ts_s, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return told.rstrip("0").removesuffix(".") + "Z"
