"""The thing a controller uses: wind and spread at places and times, from a trained model and a
recent capture.

A time belongs to its slice; the model is given exactly the context it was trained with: the slice
(or hour, or day) that ends one lead before that slice begins. What lies outside the model's area or
beyond its lead is refused, not extrapolated. Vectors are u east and v north, blowing towards, m/s;
the direction told is the one the wind comes FROM, degrees true. The spread is a standard deviation
per component: the model's own, or, without one, its error on the test minutes, and said which.
"""

import math
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from stages import files
from stages.errors import DataError, InputError
from stages.params import Params
from stages.training import store
from stages.units import KNOT_M_S
from stages.winds import breakdown, slices
from stages.winds.contexts.nearby import KINDS, Measured, Nearby
from stages.winds.forecasts import PLACE, ask, local
from stages.winds.nowcast import capture
from stages.winds.nowcast.points import Point, parse, read_points
from stages.winds.nowcast.refusals import iso, refuse_far, refuse_outside, refuse_unreached


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

    @property
    def speed_m_s(self) -> float:
        """Length of the vector."""
        return math.hypot(self.u_m_s, self.v_m_s)

    @property
    def from_deg(self) -> float:
        """Direction the wind comes from, degrees true, 0 <= d < 360; 0 for calm."""
        return math.degrees(math.atan2(-self.u_m_s, -self.v_m_s)) % 360.0 if self.speed_m_s else 0.0


def nowcast(
    context: str | Path,
    *,
    at: list[str] | None = None,
    points: str | Path | None = None,
    model: str | Path | None = None,
    settings: Params,
) -> list[Wind]:
    """Winds at `at` ("LAT,LON,ALT_FT,TIME" each) or at the rows of a CSV, in the order asked.

    InputError (exit status 2) for what cannot be asked: a place outside the model's area, a time
    its lead does not reach from this capture, a text that is no point; DataError for files that are
    not what they should be.
    """
    asked = read_points(points) if points is not None else [parse(text) for text in at or []]
    if not asked:
        raise InputError(
            "no point was asked for", expected="LAT,LON,ALT_FT,TIME", remedy="give --at or --points"
        )
    folder = Path(model) if model is not None else usual(settings)
    net: Any
    net, meta = load(folder)
    prepared = meta["prepared"]
    refuse_outside(asked, prepared["area"])
    known, dropped = capture.read(Path(context), settings.decode)
    wanted = sorted({int(p.ts_s // prepared["slice_s"]) for p in asked})
    windows = {j: window(known, j, prepared, net.context) for j in wanted}
    refuse_unreached(asked, known, windows, prepared, str(context), dropped)
    refuse_far(windows, prepared["area"], str(context))
    count = together(known, [edges for _, edges in windows.values()])
    instead, told = (None, own(folder)) if net.head == "gaussian" else residual(folder)
    torch.set_num_threads(settings.training.threads)
    nearby = around(known, prepared["scaler"], settings) if net.context in KINDS else None
    answers: dict[int, Wind] = {}
    order = sorted(range(len(asked)), key=lambda i: asked[i].ts_s)
    for j, group in groupby(order, key=lambda i: int(asked[i].ts_s // prepared["slice_s"])):
        chosen = list(group)
        winds, edges = windows[j]
        here = np.array([[getattr(asked[i], name) for name in PLACE] for i in chosen])
        times = np.array([asked[i].ts_s for i in chosen])
        mean, scale = (
            ask(net, winds, here, scaler=prepared["scaler"])
            if nearby is None
            else local(net, nearby, prepared["scaler"], times, edges[1])(here)
        )
        nearest = breakdown.nearest_km(here, winds.select(PLACE).to_numpy())
        for row, i in enumerate(chosen):
            spread = instead if scale is None else tuple(scale[row].tolist())
            answers[i] = Wind(
                asked[i],
                *mean[row].tolist(),
                spread,
                told,
                float(nearest[row]),
                (*edges, len(winds)),
                folder.name,
                prepared["lead_s"],
                count,
            )
    return [answers[i] for i in range(len(asked))]


def usual(settings: Params) -> Path:
    """The Gaussian cell asked by default: of the profile's first data set that has one, first by
    name, then by seed. InputError if none.

    The times of the files do not matter: they are those of a checkout or a pull as often as those
    of a training.
    """
    runs = Path("reports/wind_nowcast") / settings.run.profile / "runs"
    for dataset in settings.run.wind:
        cells = [
            file.parent for file in (runs / dataset).glob("[!.]*-gaussian-*/weights.safetensors")
        ]
        if cells:
            return min(
                cells, key=lambda cell: (cell.name.rpartition("-s")[0], len(cell.name), cell.name)
            )  # s2 before s10
    raise InputError(
        "no model with a Gaussian head has been trained",
        where=str(runs),
        expected=f"one of {', '.join(settings.run.wind)}",
        remedy="run `make repro` first, or name a cell with --model",
    )


def load(folder: Path) -> tuple[torch.nn.Module, dict[Any, Any]]:
    """The model of a cell and what it knows of its training data (scaler, slices, lead, area)."""
    weights = folder / "weights.safetensors"
    if not weights.is_file():
        raise InputError(
            "that is not a trained cell",
            where=str(folder),
            expected="a folder with weights.safetensors",
            remedy="name one of reports/<experiment>/<profile>/runs/<data set>/<cell>",
        )
    net, meta = store.load(str(weights))
    missing = [
        name
        for name in ("scaler", "slice_s", "lead_s", "area")
        if name not in meta.get("prepared", {})
    ]
    if missing:
        raise DataError(
            "the checkpoint does not say what it was trained on",
            where=str(weights),
            found=f"no {', '.join(missing)}",
            remedy="train it again",
        )
    return net, meta


def window(
    known: pl.DataFrame, j: int, prepared: dict[Any, Any], context: str
) -> tuple[pl.DataFrame, tuple[float, float]]:
    """The context of slice `j` (counted from 1970) and its edges in Unix seconds."""
    begin, end = slices.context_window(
        0.0, j, prepared["slice_s"], prepared["lead_s"], "slice" if context in KINDS else context
    )
    if context in KINDS and len(known):  # whatever was measured before
        begin = min(begin, known["ts_s"][0])
    low, high = np.searchsorted(known["ts_s"].to_numpy(), (begin, end))
    return known[int(low) : int(high)], (begin, end)


def together(known: pl.DataFrame, edges: list[tuple[float, float]]) -> int:
    """How many winds lie in one or more of some windows [begin, end)."""
    times, count, end = known["ts_s"].to_numpy(), 0, 0
    for window_edges in sorted(edges):
        low, high = map(int, np.searchsorted(times, window_edges))
        count += max(high - max(low, end), 0)
        end = max(high, end)
    return count


def around(known: pl.DataFrame, scaler: dict[Any, Any], settings: Params) -> Nearby:
    """The capture's winds as local contexts."""
    y_mean, y_std = (np.asarray(scaler[name], np.float64) for name in ("y_mean", "y_std"))
    places: Any = np.float32(known.select(PLACE).to_numpy()).astype(
        np.float64
    )  # as prepared rows are stored
    winds = (
        np.float32(known.select("u_m_s", "v_m_s").to_numpy()).astype(np.float64) - y_mean
    ) / y_std
    measured = Measured(
        known["ts_s"].to_numpy(),
        places.__getitem__,
        winds.astype(np.float32).__getitem__,
        tuple(scaler["x_mean"]),
    )
    return Nearby(measured, settings.contexts)


def measured(folder: Path) -> dict[Any, Any] | None:
    """The metrics of a cell on the test minutes (of a champion, on those by which it won), by
    name; None if it was not evaluated."""
    if (folder / "reference.json").exists():
        return files.read_json(folder / "reference.json")["measured"]
    metrics = folder.parent.parent.parent / "evaluated" / folder.parent.name / "metrics.json"
    found = files.read_json(metrics)["cells"].get(folder.name) if metrics.exists() else None
    return found and found["metrics"]


def own(folder: Path) -> str:
    """What to call a model's own spread, and how far it could be trusted on the test minutes, if
    it was evaluated."""
    coverage = (measured(folder) or {}).get("coverage_90")
    if coverage is None:
        return "the model's own"
    return (
        f"the model's own: its 90 % interval held {100 * coverage['value']:.0f} % of the test winds"
    )


def residual(folder: Path) -> tuple[tuple[float, float] | None, str]:
    """For a model without a spread: its RMSE of u and of v (m/s) on the test minutes, if it was
    evaluated, and what to call it."""
    found = measured(folder)
    if found is None:
        return None, f"not known: {folder.name} gives none and was not evaluated"
    east, north = (found[f"rmse_{axis}_m_s"]["value"] for axis in ("east", "north"))
    return (east, north), "the model gives none: its RMSE on the test minutes, the same everywhere"


def render(rows: list[Wind]) -> str:
    """A table for a person; 360 is north, and 000 is said of a calm below half a knot."""
    first = rows[0]
    contexts = sorted({row.context for row in rows})
    known = sum(n for _, _, n in contexts) if first.known is None else first.known
    lines = [
        (
            f"model {first.model}, lead {first.lead_s / 60:g} min; winds known: "
            f"{known:,} from {iso(contexts[0][0])} to "
            f"{iso(max(end for _, end, _ in contexts))}"
        ),
        (
            "from: degrees true the wind comes FROM; u, v: east and north, blowing towards; "
            "spread: one standard deviation of u and of v"
        ),
        f"spread: {first.spread_from}",
        "",
        (
            f"{'time (UTC)':20}  {'lat':>8}  {'lon':>9}  {'alt ft':>6}  {'from':>4}  "
            f"{'speed':>18}  {'u, v m/s':>14}  {'spread kn':>11}  {'m/s':>11}  nearest"
        ),
    ]
    for row in rows:
        p, knots = row.point, row.speed_m_s / KNOT_M_S
        degrees = 0 if knots < 0.5 else round(row.from_deg) or 360

        def pair(unit, s=row.spread_m_s):
            return f"{s[0] / unit:.1f}, {s[1] / unit:.1f}" if s else "not known"

        lines.append(
            f"{iso(p.ts_s):20}  {p.lat_deg:8.4f}  {p.lon_deg:9.4f}  {p.alt_ft:6.0f}  "
            f"{degrees:03d}°  {knots:5.1f} kn {row.speed_m_s:5.1f} m/s  {row.u_m_s:+6.1f}, "
            f"{row.v_m_s:+6.1f}  {pair(KNOT_M_S):>11}  {pair(1.0):>11}  {row.nearest_km:4.0f} km"
        )
    return "\n".join(lines)
