"""The answer of a nowcast, and the forms in which people take it away: a table to read, JSON, CSV,
parquet, NetCDF by the CF conventions, a picture.

Vectors are u east and v north, blowing towards, m/s; the direction told is the one the wind comes
FROM, degrees true. Altitudes are feet of the pressure altitude.
"""

import io
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from stages import files
from stages.errors import InputError
from stages.units import KNOT_M_S
from stages.winds.nowcast.points import Point
from stages.winds.nowcast.refusals import counted, iso, moment

SUFFIXES = (".csv", ".json", ".parquet", ".nc")


@dataclass(frozen=True)
class Wind:
    """The answer at one point; speeds in m/s, `spread_m_s` per component (None: not known) and
    where it comes from."""

    point: Point
    u_m_s: float
    v_m_s: float
    spread_m_s: tuple[float, float] | None
    spread_from: str
    nearest_km: float
    context: tuple[float, float, int]  # begin and end in Unix seconds, number of winds
    model: str
    lead_s: float
    known: int | None = None  # winds of all contexts of the call, each counted once
    why: str = ""  # this model was asked, where none was named
    newest_s: float | None = None  # Unix seconds of the newest wind of all contexts of the call
    dropped: dict[str, int] = field(default_factory=dict)  # of the capture, by reason
    own_spread: bool = False  # not recalibrated: too few winds around (spread.py)

    @property
    def speed_m_s(self) -> float:
        """Length of the vector."""
        return math.hypot(self.u_m_s, self.v_m_s)

    @property
    def from_deg(self) -> float:
        """Direction the wind comes from, degrees true, 0 <= d < 360; 0 for calm."""
        if not self.speed_m_s:
            return 0.0
        # a hair west of north is 360.0 after the first remainder
        return math.degrees(math.atan2(-self.u_m_s, -self.v_m_s)) % 360.0 % 360.0


def table(rows: list[Wind]) -> pl.DataFrame:
    """A row a wind, units in the names, null for a spread that is not known; times in ISO 8601,
    with a fraction of a second where one was asked for."""
    return pl.DataFrame(
        [
            {
                "time": moment(row.point.ts_s),
                "lat_deg": row.point.lat_deg,
                "lon_deg": row.point.lon_deg,
                "alt_ft": row.point.alt_ft,
                "u_m_s": row.u_m_s,
                "v_m_s": row.v_m_s,
                "speed_m_s": row.speed_m_s,
                "speed_kn": row.speed_m_s / KNOT_M_S,
                "from_deg": row.from_deg,
                "u_spread_m_s": row.spread_m_s and row.spread_m_s[0],
                "v_spread_m_s": row.spread_m_s and row.spread_m_s[1],
                "nearest_km": row.nearest_km,
                "context_begin": iso(row.context[0]),
                "context_end": iso(row.context[1]),
                "context_winds": row.context[2],
            }
            for row in rows
        ],
        schema_overrides={"u_spread_m_s": pl.Float64, "v_spread_m_s": pl.Float64},
    )


def unlike(rows: list[Wind]) -> str:
    """Of how many places the spread is not recalibrated for lack of winds, in words; '' of none."""
    count = sum(row.own_spread for row in rows)
    if not count:
        return ""
    every = "the point" if count == 1 else "the points"
    near = every if count == len(rows) else f"{count:,} of {len(rows):,} points"
    there = "" if count == len(rows) else " there"
    return f"too few winds lie near {near}, so the spread was not recalibrated{there}"


def spread_words(rows: list[Wind]) -> str:
    """Where the spread of all rows comes from."""
    return "; ".join(filter(None, (rows[0].spread_from, unlike(rows))))


def about(rows: list[Wind]) -> dict[str, Any]:
    """What holds for all rows: the model, why it, its lead, where the spread comes from."""
    first = rows[0]
    return {
        "model": first.model,
        "why": first.why or "named",
        "lead_s": first.lead_s,
        "spread": spread_words(rows),
    }


def as_json(rows: list[Wind], route: dict[str, Any] | None = None) -> str:
    """One JSON object: what holds for all, what of the capture was `dropped` by reason (counts of
    rows, frames or replies), `route` where one was asked for (route.flown), and `winds`."""
    dropped = {reason: count for reason, count in sorted(rows[0].dropped.items()) if count}
    told = {**about(rows), "dropped": dropped, **({"route": route} if route else {})}
    return files.json_text({**told, "winds": table(rows).to_dicts()})


def as_csv(rows: list[Wind]) -> str:
    """A line a wind, under a head."""
    return table(rows).write_csv()


def check_suffix(path: Path) -> None:
    """InputError for a file whose name does not tell a known form."""
    if path.suffix not in SUFFIXES:
        raise InputError(
            "the form of the answer is not known by that name",
            where=str(path),
            found=path.suffix or "no suffix",
            expected=" | ".join(SUFFIXES),
        )


def write(
    rows: list[Wind], path: Path, route: dict[str, Any] | None = None, *, gridded: bool = False
) -> None:
    """The answer in the form that the file's suffix tells; the old file or the new one, whole.
    `route`: as of as_json; `gridded`: the rows are those of points.level."""
    check_suffix(path)
    if path.suffix in (".csv", ".json"):
        text = as_csv(rows) if path.suffix == ".csv" else as_json(rows, route)
        content = text.encode()
    else:
        stream = io.BytesIO()
        if path.suffix == ".parquet":
            table(rows).write_parquet(stream)
        else:
            from stages.winds.nowcast import netcdf

            netcdf.write(table(rows), about(rows), stream, gridded)
        content = stream.getvalue()
    try:
        with files.atomic_file(path) as file:
            file.write(content)
    except OSError as error:
        raise InputError(
            "the answer cannot be written", where=str(path), found=error.strerror or str(error)
        ) from None


def render(rows: list[Wind]) -> str:
    """A table for a person; 360 is north, and 000 is said of a calm below half a knot."""
    first = rows[0]
    contexts = sorted({row.context for row in rows})
    known = sum(n for _, _, n in contexts) if first.known is None else first.known
    newest_s = max(end for _, end, _ in contexts) if first.newest_s is None else first.newest_s
    lines = [
        (
            f"model {first.model}, lead {first.lead_s / 60:g} min; winds known: "
            f"{known:,} from {iso(contexts[0][0])} to {iso(newest_s)}"
        ),
        *([f"dropped: {told}"] if (told := counted(first.dropped)) else []),
        *([f"chosen: {first.why}"] if first.why else []),
        (
            "from: degrees true the wind comes FROM; u, v: east and north, blowing towards; "
            "spread: one standard deviation of u and of v; nearest: of the last slice's winds"
        ),
        f"spread: {spread_words(rows)}",
        "",
        (
            f"{'time (UTC)':20}  {'lat':>8}  {'lon':>9}  {'alt ft':>6}  {'from':>4}  "
            f"{'speed':>18}  {'u, v m/s':>14}  {'spread kn':>11}  {'m/s':>11}  nearest"
        ),
    ]
    return "\n".join([*lines, *map(line, rows)])


def line(row: Wind) -> str:
    """One wind of the table."""
    p, knots = row.point, row.speed_m_s / KNOT_M_S
    degrees = 0 if knots < 0.5 else round(row.from_deg) or 360

    def pair(unit: float) -> str:
        s = row.spread_m_s
        return f"{s[0] / unit:.1f}, {s[1] / unit:.1f}" if s else "not known"

    return (
        f"{iso(p.ts_s):20}  {p.lat_deg:8.4f}  {p.lon_deg:9.4f}  {p.alt_ft:6.0f}  "
        f"{degrees:03d}°  {knots:5.1f} kn {row.speed_m_s:5.1f} m/s  {row.u_m_s:+6.1f}, "
        f"{row.v_m_s:+6.1f}  {pair(KNOT_M_S):>11}  {pair(1.0):>11}  {row.nearest_km:4.0f} km"
    )
