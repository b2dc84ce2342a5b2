"""The thing a controller uses: wind and spread at places and times, from a trained model and a
recent capture.

A time belongs to its slice; the model is given exactly the context it was trained with: the slice
(or hour, or day) that ends one lead before that slice begins, or all winds before that end. What
lies outside the model's area or beyond its lead is refused, not extrapolated: whatever a model
reads, in training and evaluation the slice one lead before always held winds. Vectors are u east
and v north, blowing towards, m/s; the direction told is the one the wind comes FROM, degrees true.
The spread is a standard deviation per component (spread.py), and it is said where it comes from.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from stages.errors import DataError, InputError
from stages.params import Inference, Params
from stages.training import store
from stages.winds import breakdown, slices
from stages.winds.contexts.nearby import KINDS, MeasuredWinds, Nearby
from stages.winds.forecasts import PLACE, ask, local
from stages.winds.nowcast import capture, choice, doubtful, spread
from stages.winds.nowcast import route as routes
from stages.winds.nowcast.answers import Wind
from stages.winds.nowcast.listed import read_points
from stages.winds.nowcast.points import Point, level, parse, parse_level
from stages.winds.nowcast.refusals import refuse_far, refuse_outside, refuse_unreached


def nowcast(
    context: str | Path,
    *,
    at: list[str] | None = None,
    points: str | Path | None = None,
    grid: str | None = None,
    route: str | None = None,
    model: str | Path | None = None,
    settings: Inference,
    called: str = "",
) -> list[Wind]:
    """Winds at `at` ("LAT,LON,ALT,TIME" each), at the rows of a CSV, in the order asked, along a
    route (route.py), or on a grid ("ALT,TIME,STEP": degrees apart) over the model's area, from
    south to north and from west to east. `called` is the context's name in errors, where it has
    another than its file's.

    InputError (exit status 2) for what cannot be asked: a place outside the model's area, a time
    its lead does not reach from this capture, a text that is no point; DataError for files that are
    not what they should be.
    """
    asked = written(at=at, points=points, grid=grid, route=route)
    folder, why = chosen(model, settings)
    net, meta = load(folder)
    prepared = meta["prepared"]
    asked = over(prepared["area"], asked, grid)
    called = called or str(context)
    usual_m_s = doubtful.usual(prepared["scaler"])
    read = capture.read(Path(context), settings.decode, called, usual_m_s=usual_m_s)
    given = (*read, called)
    if route and len(read[0]):
        ends = (float(read[0]["ts_s"][0]), float(read[0]["ts_s"][-1]))
        lead = (prepared["slice_s"], prepared["lead_s"])
        routes.refuse_late(routes.read(route), ends, *lead, called)
    return answer(net, prepared, asked, given, settings=settings, folder=folder, why=why)


def chosen(model: str | Path | None, settings: Inference) -> tuple[Path, str]:
    """The folder of the cell that answers, and why it does where none was named. InputError where
    none is named and there are no cells to choose from."""
    if model is not None:
        return Path(model), ""
    if isinstance(settings, Params):
        return choice.best(settings.run.profile, settings.run.wind)
    raise InputError("no model was named", remedy="name a trained cell")


def places(
    area: dict[Any, Any],
    *,
    at: list[str] | None,
    points: str | Path | None,
    grid: str | None,
    route: str | None,
) -> list[Point]:
    """What is asked for, as `nowcast` takes it, inside a model's area; InputError as there."""
    return over(area, written(at=at, points=points, grid=grid, route=route), grid)


def written(
    *,
    at: list[str] | None = None,
    points: str | Path | None = None,
    grid: str | None = None,
    route: str | None = None,
) -> list[Point]:
    """The points of what is written, as `nowcast` takes it, but of a grid, which asks for a model's
    area. InputError, before any model is read, for what is no point, grid or route."""
    asked = read_points(points) if points is not None else [parse(text) for text in at or []]
    if grid is not None:
        parse_level(grid)
    return asked + (routes.read(route).points if route else [])


def over(area: dict[Any, Any], asked: list[Point], grid: str | None) -> list[Point]:
    """Points and those of a grid over a model's area. InputError for none, and for one outside."""
    asked = asked + (level(grid, area) if grid is not None else [])
    if not asked:
        raise InputError("no point was asked for", remedy="give --at, --points, --grid or --route")
    refuse_outside(asked, area)
    return asked


def answer(
    net: Any,
    prepared: dict[Any, Any],
    asked: list[Point],
    given: tuple[pl.DataFrame, dict[str, int], str],
    *,
    settings: Inference,
    folder: Path,
    why: str = "",
    spreads: Callable[..., spread.CellSpread] = spread.of_cell,
) -> list[Wind]:
    """Winds at points inside the model's area. `given`: the context's usable winds in order of
    time, its dropped rows by reason (capture.read gives both), what it is called in errors;
    `folder`: the cell; `spreads`: what finds out how its spread is told. InputError as
    `nowcast`."""
    known, dropped, where = given
    wanted = sorted({int(p.ts_s // prepared["slice_s"]) for p in asked})
    windows = {j: window(known, j, prepared, net.context) for j in wanted}
    latest = {j: window(known, j, prepared, "slice") for j in wanted}
    refuse_unreached(asked, known, (latest, windows), prepared, where, dropped)
    refuse_far(windows, prepared["area"], where)
    nearby = around(known, prepared["scaler"], settings) if net.context in KINDS else None
    count = together(known, [edges for _, edges in windows.values()])
    newest_s = max(float(winds["ts_s"][-1]) for winds, _ in windows.values())
    about = (folder.name, prepared["lead_s"], count, why, newest_s, dropped)
    answers: dict[int, Wind] = {}
    told: spread.CellSpread | None = None
    order = sorted(range(len(asked)), key=lambda i: asked[i].ts_s)
    with threads(settings.training.threads):
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
            km = nearest(here, latest[j][0])
            told = told or spreads(folder, own=scale is not None)
            for i, (u, v), pair, stands, near in zip(
                chosen, mean.tolist(), *told.of(scale, km), km.tolist(), strict=True
            ):
                context = (*edges, len(winds))
                answers[i] = Wind(asked[i], u, v, pair, told.words, near, context, *about, stands)
    return [answers[i] for i in range(len(asked))]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch compute with so many threads, and with as many as before afterwards: they are the
    whole process's, which may be another program's."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def nearest(here: np.ndarray, winds: pl.DataFrame) -> np.ndarray:
    """Distance (N,), km, from places (N, 3) to the nearest wind: of the last known slice, as the
    evaluation takes it, whatever else a model reads."""
    return breakdown.nearest_km(here, winds.select(PLACE).to_numpy())


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


def around(known: pl.DataFrame, scaler: dict[Any, Any], settings: Inference) -> Nearby:
    """The capture's winds as local contexts."""
    y_mean, y_std = (np.asarray(scaler[name], np.float64) for name in ("y_mean", "y_std"))
    places: Any = np.float32(known.select(PLACE).to_numpy()).astype(
        np.float64
    )  # as prepared rows are stored
    winds = (
        np.float32(known.select("u_m_s", "v_m_s").to_numpy()).astype(np.float64) - y_mean
    ) / y_std
    measured = MeasuredWinds(
        known["ts_s"].to_numpy(),
        places.__getitem__,
        winds.astype(np.float32).__getitem__,
        tuple(scaler["x_mean"]),
    )
    return Nearby(measured, settings.contexts)
